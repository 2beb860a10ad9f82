//! Somebody who types what a document says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, Outcome};
use crate::fixture;
use crate::guest::status;
use crate::host::free_port;
use crate::sandbox::Sandbox;
use crate::terminal::Terminal;

/// Commands that end with the guest `web`, which is stopped while they run.
const UNTIL_IT_ENDS: [&str; 2] = ["holm logs -n 20 -f web", "holm wait web"];

/// What a document says, and what it is in a sandbox. A program that takes minutes, or the network,
/// is exchanged for one that does not.
const HERE: [(&str, &str); 17] = [
    // Not every filesystem has the quota that a limit needs.
    ("--size 40G", "--size none"),
    ("base rm NAME", "base rm old"),
    ("base inspect NAME", "base inspect old"),
    (" NAME", " web"),
    (" BASE", " debian13"),
    (" CMD", " true"),
    (" ROOT ", " lab "),
    ("/srv/lab", "lab"),
    ("/srv/data", "/srv"),
    ("ssh host ", "holm exec web -- "),
    ("ssh there ", "holm exec web -- "),
    ("EDITOR=nano", "EDITOR=true"),
    ("import busybox busybox", "import plain busybox"),
    ("'apt-get update'", "'apt-get --version'"),
    ("install gcc", "install nginx"),
    ("make -C /src", "ls /src"),
    ("holm-1", "holm-$INSTANCE"),
];

/// Of the other Holm root that documents speak of, nothing may stay on the host.
impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let lab = self.home.join("lab");
        if lab.exists() {
            let lab = lab.to_str().expect("a path");
            let _ = self.sandbox.holm(&["--root", lab, "release"]);
        }
    }
}

#[derive(Debug)]
pub struct Reader<'a> {
    sandbox: &'a Sandbox,
    pub home: PathBuf,
    /// What the port 8080 is here.
    port: String,
}

impl<'a> Reader<'a> {
    /// A reader with a home in which is what the documents speak of.
    pub fn new(sandbox: &'a Sandbox) -> Self {
        let home = sandbox.root().join("tmp/home");
        for directory in [".ssh", ".config/fish/completions", "site", "src"] {
            fs::create_dir_all(home.join(directory)).expect("a directory");
        }
        fs::write(home.join("site/index.html"), "Hello.\n").expect("a file");
        let reader = Self { sandbox, home, port: free_port().to_string() };
        let key = "ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519";
        reader.shell(key).ok();
        reader
    }

    /// Has the base that the documents call `debian13`, made as their first line says.
    pub fn has_debian(&self) {
        let line = "holm base import debian13 debootstrap:trixie+openssh-server,nginx";
        assert!(self.has_shared_base(line), "a shared base is made so");
    }

    /// Does what a line of `document` says; it must succeed.
    #[track_caller]
    pub fn follow(&self, document: &str, line: &str) {
        let command = self.here(line);
        if self.has_shared_base(&command) {
            return;
        }
        if command.starts_with("holm console") {
            return self.look_at_the_console(&command);
        }
        let outcome = if UNTIL_IT_ENDS.contains(&command.trim()) {
            self.shell(&format!("{command} & holm stop web; wait $! && holm start --wait web"))
        } else {
            self.shell(&command)
        };
        assert!(outcome.status.success(), "{document}: {line}\n{outcome}");
        if command.starts_with("holm launch web") {
            self.wait_until_ready();
        }
    }

    /// The line with ports, addresses, machines and names that are here, and without what it does,
    /// which stands behind three spaces, or where a file of the host would be written.
    pub fn here(&self, line: &str) -> String {
        let line = line.split("   ").next().unwrap_or(line);
        let mut line = self.port_here(line.split(" > /").next().unwrap_or(line));
        for (said, here) in HERE {
            line = line.replace(said, here);
        }
        if line.contains("10.97.0.1") {
            let status = status(self.sandbox, "web");
            let address = status["addresses"][0].as_str().expect("an address");
            line = line.replace("10.97.0.1", address);
        }
        line
    }

    /// The text with the port that is free here.
    pub fn port_here(&self, text: &str) -> String {
        text.replace("8080", &self.port)
    }

    /// Whether the line imports a base from the source of a shared one, which then appears by the
    /// name that the line gives it.
    fn has_shared_base(&self, line: &str) -> bool {
        let words = line.strip_prefix("holm base import ").and_then(|rest| rest.split_once(' '));
        let Some((name, source)) = words else { return false };
        let Some(base) = fixture::made_from(source).filter(|base| *base != "busybox") else {
            return false;
        };
        fixture::base(&self.sandbox.options, base).expect("a shared base");
        if !self.sandbox.root().join("bases").join(name).exists() {
            self.sandbox.share(base, name).expect("a link");
        }
        true
    }

    pub fn wait_until_ready(&self) {
        self.sandbox.wait_for("web is ready", || {
            (status(self.sandbox, "web")["state"] == "ready").then_some(())
        });
    }

    /// Runs a script in a shell where `holm` is ours, and `ssh` uses the reader's key.
    pub fn shell(&self, script: &str) -> Outcome {
        command::run(&mut self.bash(script), b"", self.sandbox.limit().max(fixture::IMPORT_LIMIT))
    }

    fn bash(&self, script: &str) -> Command {
        let mut bash = Command::new("bash");
        let script = format!(
            "holm() {{ \"$HOLM\" \"$@\"; }}
            ssh() {{ command ssh -F none -i ~/.ssh/id_ed25519 -o BatchMode=yes -o LogLevel=ERROR \
             -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \"$@\"; }}
            {script}"
        );
        bash.args(["-c", &script]).current_dir(&self.home).env("HOME", &self.home);
        let absolute = |path: &Path| std::path::absolute(path).expect("a path");
        bash.env("HOLM", absolute(&self.sandbox.options.holm));
        bash.env("HOLM_IMPORT", absolute(&self.sandbox.options.import));
        bash.env("HOLM_ROOT", self.sandbox.root()).env("EDITOR", "true").env("NAMES", "web");
        bash.env("INSTANCE", self.sandbox.instance().unwrap_or_default().to_string());
        for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            bash.env_remove(variable);
        }
        bash
    }

    /// Attaches to the console of web until it shows something, and leaves by the keys that the
    /// documents name.
    fn look_at_the_console(&self, line: &str) {
        let keys = if line.contains("--read-only") { "\x03" } else { "\x1dq" };
        let mut terminal = Terminal::start(&self.bash(&format!("exec \"$HOLM\" {}", &line[5..])));
        self.sandbox.wait_for("the console shows what the guest writes", || {
            self.shell("holm exec web -- sh -c 'echo seen > /dev/console'").ok();
            terminal.text().contains("seen").then_some(())
        });
        terminal.type_in(keys);
        assert_eq!(terminal.end(self.sandbox), Some(0), "{line}\n{}", terminal.text());
    }
}

//! The lines with `make`: what they install, and that their targets are there.

use std::path::Path;
use std::process::Command;

use super::reader::Reader;
use super::{CONTRIBUTING, DOCUMENTS, OTHER_DOCUMENTS, README, blocks, inline};
use crate::sandbox::Sandbox;

fn make(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let path = |path: &Path| std::path::absolute(path).expect("a path").display().to_string();
    let mut make = Command::new("make");
    make.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).args(arguments);
    make.arg(format!("HOLM={}", path(&sandbox.options.holm)));
    make.arg(format!("IMPORT={}", path(&sandbox.options.import)));
    sandbox.run(&mut make).ok().stdout
}

/// The files below `directory`.
fn files(reader: &Reader, directory: &str) -> String {
    reader.shell(&format!("find {directory} -type f -printf '%P\\n' | sort")).ok().stdout
}

/// What README.md says that is installed: two programs, completion, a page, a unit.
const INSTALLED: &str = "\
usr/local/bin/holm
usr/local/lib/sysctl.d/60-holm.conf
usr/local/lib/systemd/system/holm-guests.service
usr/local/lib/systemd/system/holm-unify.service
usr/local/lib/systemd/system/holm-unify.timer
usr/local/libexec/holm/holm-import
usr/local/share/bash-completion/completions/holm
usr/local/share/fish/vendor_completions.d/holm.fish
usr/local/share/man/man1/holm.1
usr/local/share/zsh/site-functions/_holm
";

/// The lines of getting-started.md, and that of guests.md that enables the unit.
pub fn what_make_install_makes(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    let to = format!("DESTDIR={}", reader.home.join("host").display());
    make(sandbox, &["install", &to]);
    assert_eq!(files(&reader, "host"), INSTALLED);

    sandbox.holm(&["launch", "--wait", "web", "--base", "debian13"]).ok();
    reader.shell("tar -c -C host usr | holm exec web -- tar -x --no-same-owner -C /").ok();
    let blocks = DOCUMENTS.iter().flat_map(|(_, text)| blocks(text, ""));
    let mut lines = blocks.filter(|block| block.starts_with("systemctl enable "));
    let line = lines.next().expect("guests.md enables the unit").trim();
    reader.shell(&format!("holm exec web -- {line}")).ok();
    let unit = line.split(' ').next_back().expect("the unit");
    let is = reader.shell(&format!("holm exec web -- systemctl is-enabled {unit}")).ok();
    assert_eq!(is.stdout, "enabled\n");
    sandbox.holm(&["rm", "--force", "web"]).ok();

    make(sandbox, &["uninstall", &to]);
    make(sandbox, &["install", &to, "PREFIX=/opt/holm"]);
    let installed = files(&reader, "host");
    assert!(installed.contains("etc/systemd/system/holm-guests.service\n"), "{installed}");
    assert!(installed.contains("opt/holm/bin/holm\n"), "{installed}");
    make(sandbox, &["uninstall", &to, "PREFIX=/opt/holm"]);
    assert_eq!(files(&reader, "host"), "");
}

/// Each `make TARGET` of a document says what it would do.
pub fn every_target_of_make_is_there(sandbox: &mut Sandbox) {
    let mut lines = Vec::new();
    for (_, text) in DOCUMENTS.into_iter().chain(OTHER_DOCUMENTS).chain([("README.md", README)]) {
        lines.extend(inline(text));
        lines.extend(blocks(text, "").iter().flat_map(|block| block.lines()));
    }
    let words = |line: &str| line.split("   ").next().map(str::to_owned).unwrap_or_default();
    let mut commands: Vec<_> = lines.into_iter().map(words).collect();
    commands.retain(|line| line.starts_with("make "));
    commands.sort();
    commands.dedup();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let goals = command["make ".len()..].split(' ');
        // Options for the tests themselves may have quotes.
        let goals = goals.take_while(|word| !word.starts_with("ARGS="));
        for goal in goals.filter(|word| !word.contains('=')) {
            let makefile = include_str!("../../../../Makefile");
            assert!(makefile.contains(&format!("\n## {goal}: ")), "{command}");
        }
    }
    assert!(
        CONTRIBUTING.contains("make help") && make(sandbox, &["help"]).contains("make test-vm")
    );
}

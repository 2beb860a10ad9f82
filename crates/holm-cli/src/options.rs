//! The options that describe a guest, for `create`, `launch` and `run`.

use std::path::{Path, PathBuf};

use clap::Args;
use holm::Code;
use holm::config::{Change, edit_text};

use crate::failure::Failure;

/// Each is short for `--set KEY=VALUE` with the key that its help names.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings of the guest")]
pub struct Options {
    /// The base it stands on (base)
    #[arg(long, short, visible_alias = "image")]
    base: Option<String>,
    /// Set any key; may be given more than once (holm help set lists them)
    #[arg(long, short, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Process 1: system or minimal (init)
    #[arg(long, value_name = "KIND")]
    init: Option<String>,
    /// Publish a port: 8080:80, 127.0.0.1:53:53/udp (net.publish)
    #[arg(long, short, value_name = "HOST:GUEST")]
    publish: Vec<String>,
    /// Bind a directory or file of the host: /srv/data:/data[:ro] (mounts); or mount a volume:
    /// `pg:/var/lib/postgresql[:ro]` (volumes)
    #[arg(long, short = 'v', visible_alias = "volume", value_name = "SOURCE:TARGET")]
    mount: Vec<String>,
    /// Limit memory: 512M, 2G (memory.limit)
    #[arg(long, short, value_name = "SIZE")]
    memory: Option<String>,
    /// Limit CPU time: 1.5, 25% (cpu.cap)
    #[arg(long, visible_alias = "cpus", value_name = "CPUS")]
    cpu: Option<String>,
    /// Network: private, none or host (net.mode)
    #[arg(long, visible_alias = "network", value_name = "MODE")]
    net: Option<String>,
    /// Set an environment variable (env.NAME)
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Host name inside (hostname)
    #[arg(long, value_name = "NAME")]
    hostname: Option<String>,
    /// Let the public keys in this file log in as root (ssh.keys)
    #[arg(long, value_name = "FILE")]
    ssh_key: Vec<PathBuf>,
}

impl Options {
    /// The text of a guest.toml with these settings, which runs `command` if there is one.
    pub fn text(&self, command: &[String]) -> Result<String, Failure> {
        Ok(edit_text("", &self.changes(command)?)?)
    }

    /// The settings one by one, with `command` if there is one.
    pub fn changes(&self, command: &[String]) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        let single = [
            ("base", &self.base),
            ("init", &self.init),
            ("hostname", &self.hostname),
            ("memory.limit", &self.memory),
            ("cpu.cap", &self.cpu),
            ("net.mode", &self.net),
        ];
        for (key, value) in single {
            changes.extend(value.iter().map(|value| Change::set(key, value)));
        }
        changes.extend(self.publish.iter().map(|p| Change::add("net.publish", p)));
        for mount in &self.mount {
            let key = if names_a_volume(mount) { "volumes" } else { "mounts" };
            let value = if key == "volumes" { mount.clone() } else { absolute(mount)? };
            changes.push(Change::add(key, &value));
        }
        for variable in &self.env {
            let (name, value) = variable.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--env {variable}: write NAME=VALUE")).object("--env")
            })?;
            changes.push(Change::set(&format!("env.{name}"), value));
        }
        for file in &self.ssh_key {
            let keys = keys_in(file)?;
            changes.extend(keys.iter().map(|key| Change::add("ssh.keys", key)));
        }
        if !command.is_empty() {
            changes.push(Change::items("command", command));
        }
        for change in &self.set {
            changes.push(Change::parse(change)?);
        }
        if !changes.iter().any(|c| c.key == "base") {
            return Err(Failure::usage("no base is given")
                .object("--base")
                .help("--base NAME; holm base ls lists them"));
        }
        Ok(changes)
    }
}

/// Whether the source of a mount is the name of a volume, as other tools tell it from a path: by
/// having no slash. `./data` is a directory.
fn names_a_volume(mount: &str) -> bool {
    let source = mount.split(':').next().unwrap_or_default();
    !source.contains('/') && !matches!(source, "" | "." | "..")
}

/// A relative source of a mount as an absolute one: a shell completes relative paths.
fn absolute(mount: &str) -> Result<String, Failure> {
    let Some((source, rest)) = mount.split_once(':') else { return Ok(mount.to_owned()) };
    if source.starts_with('/') || source.is_empty() {
        return Ok(mount.to_owned());
    }
    let full = std::fs::canonicalize(source).map_err(|e| {
        let message = format!("cannot find {source}, to be bound into the guest: {e}");
        Failure::new(Code::MountSourceUnusable, message).object(source).reason(e)
    })?;
    Ok(format!("{}:{rest}", full.display()))
}

/// The keys in a `.pub` or `authorized_keys` file.
fn keys_in(file: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        let message = format!("cannot read the key file {}: {e}", file.display());
        Failure::new(Code::SystemError, message).object(file.display()).reason(e)
    })?;
    let lines = text.lines().map(str::trim);
    let keys: Vec<String> =
        lines.filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned).collect();
    if keys.is_empty() {
        let message = format!("{} holds no public key", file.display());
        return Err(Failure::new(Code::ChangeInvalid, message).object(file.display()));
    }
    Ok(keys)
}

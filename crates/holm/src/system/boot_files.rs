use super::file::{Content, File};
use super::identity::{RESOLV_CONF, uuid};
use super::kind::Kind;
use super::systemd;

/// What the boot files of a start depend on.
#[derive(Debug, Clone, Copy)]
pub struct BootFiles<'a> {
    /// The guest's init.
    pub kind: Kind,
    /// The guest's machine id.
    pub machine_id: &'a str,
    /// /dev/console is a terminal.
    pub console: bool,
    /// The text of resolv.conf(5), if the guest has a network.
    pub resolv_conf: Option<&'a str>,
    /// The names and texts of systemd-networkd's `.network` files.
    pub networkd: &'a [(String, String)],
}

/// The boot files, all in /run and each directory before what is in it; /run itself is there and
/// empty.
pub fn boot_files(boot: &BootFiles<'_>) -> Vec<File> {
    let mut files = vec![File::new("/run/host", Content::Directory(0o755))];
    files.push(File::text("/run/host/container-manager", "holm\n"));
    files.push(File::text("/run/host/container-uuid", uuid(boot.machine_id) + "\n"));
    if let Some(text) = boot.resolv_conf {
        files.push(File::new("/run/holm", Content::Directory(0o755)));
        files.push(File::text(RESOLV_CONF, text));
    }
    if let Kind::Systemd(version) = boot.kind {
        files.extend(systemd::files(version, boot.console, boot.networkd));
    }
    files
}

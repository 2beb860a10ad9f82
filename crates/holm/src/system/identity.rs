use super::file::{Content, File};

/// The resolv.conf(5) of this start. In a new guest /etc/resolv.conf is a link to it, so a change
/// of `net.dns` or of the host's servers takes effect at the guest's next start, unless the guest
/// has replaced the link.
pub const RESOLV_CONF: &str = "/run/holm/resolv.conf";

/// Makes a guest's SSH host keys as `systemd.rs` does, if that is still to be done, then executes
/// init, whose path is `$0`. Init starts even if that fails.
pub const SSH_KEYS_THEN_INIT: &str = "\
stamp=/etc/ssh/.holm-make-host-keys
if [ -e $stamp ] && [ -x /usr/bin/ssh-keygen ]; then
  rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub
  for type in ed25519 ecdsa; do
    ssh-keygen -q -t $type -N '' -f /etc/ssh/ssh_host_${type}_key </dev/null
  done && rm $stamp
fi
unset stamp
exec \"$0\"
";

/// What distinguishes a guest from others made from the same base.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The host name.
    pub hostname: &'a str,
    /// The machine id, of [`random_id128`]. With `uninitialized` systemd would run its first-boot
    /// setup, which asks on the console (machine-id(5)).
    pub machine_id: &'a str,
}

impl Identity<'_> {
    /// The files that a new guest's private layer begins with, each directory before what is in it.
    pub fn files(&self) -> Vec<File> {
        let name = self.hostname;
        vec![
            File::new("/etc", Content::Directory(0o755)),
            File::text("/etc/hostname", format!("{name}\n")),
            File::new("/etc/machine-id", Content::Text(format!("{}\n", self.machine_id), 0o444)),
            File::text("/etc/hosts", hosts(name)),
            File::link("/etc/resolv.conf", RESOLV_CONF),
            File::new("/etc/ssh", Content::Directory(0o755)),
            File::text("/etc/ssh/.holm-make-host-keys", ""),
        ]
    }
}

/// Root's `authorized_keys` with `keys`, in place of those that an earlier start wrote.
pub fn ssh_keys(keys: &[String]) -> Vec<File> {
    let mut files = Vec::new();
    if !keys.is_empty() {
        files.push(File::new("/root", Content::Directory(0o700)));
        files.push(File::new("/root/.ssh", Content::Directory(0o700)));
    }
    let lines = keys.iter().fold(String::new(), |text, key| text + key.trim() + "\n");
    files.push(File::new("/root/.ssh/authorized_keys", Content::ManagedBlock(lines, 0o600)));
    files
}

/// The files with the host name that the settings give, for each start. Without one the guest may
/// change its name, and keeps it.
pub fn host_name(name: Option<&str>) -> Vec<File> {
    let line = name.map_or(String::new(), |name| format!("127.0.1.1 {name}\n"));
    let mut files = vec![File::new("/etc/hosts", Content::ManagedBlock(line, 0o644))];
    files.extend(name.map(|name| File::text("/etc/hostname", format!("{name}\n"))));
    files
}

fn hosts(name: &str) -> String {
    // 127.0.1.1 as Debian does it: the name resolves without a network, and not to localhost's
    // address.
    format!(
        "127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost ip6-loopback\n\
         ff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n"
    )
}

/// A random 128-bit id: 32 hexadecimal digits of a version 4 UUID, as machine ids and boot ids are
/// (`machine-id(5)`).
pub fn random_id128() -> Result<String, std::io::Error> {
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Such an id in the form of a UUID.
pub fn uuid(id: &str) -> String {
    let parts: Vec<&str> =
        [0..8, 8..12, 12..16, 16..20, 20..32].into_iter().filter_map(|part| id.get(part)).collect();
    parts.join("-")
}

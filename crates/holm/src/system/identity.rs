use super::{Content, File};

/// The resolver's configuration of this start; /etc/resolv.conf of a new guest points there, so a
/// change of `net.dns` or of the host's servers reaches the guest at its next start, unless the
/// guest has put a file of its own in place.
pub const RESOLV_CONF: &str = "/run/holm/resolv.conf";

/// Makes a guest's host keys as `systemd.rs` does, if it has yet to, then becomes init, whose path is
/// `$0`. Whatever fails, init starts.
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

/// What tells a guest from the others of its base.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The host name.
    pub hostname: &'a str,
    /// The machine id, of [`machine_id`]. A real one: after `uninitialized` systemd's first boot
    /// wants a console to ask on.
    pub machine_id: &'a str,
}

impl Identity<'_> {
    /// The files that a new guest's private layer begins with, folders before what is in them.
    pub fn files(&self) -> Vec<File> {
        let name = self.hostname;
        vec![
            File::new("/etc", Content::Folder(0o755)),
            File::text("/etc/hostname", format!("{name}\n")),
            File::new("/etc/machine-id", Content::Text(format!("{}\n", self.machine_id), 0o444)),
            File::text("/etc/hosts", hosts(name)),
            File::link("/etc/resolv.conf", RESOLV_CONF),
            File::new("/etc/ssh", Content::Folder(0o755)),
            File::text("/etc/ssh/.holm-make-host-keys", ""),
        ]
    }
}

/// What lets `keys`, and none that earlier starts have let, log in as root.
pub fn ssh_keys(keys: &[String]) -> Vec<File> {
    let mut files = Vec::new();
    if !keys.is_empty() {
        files.push(File::new("/root", Content::Folder(0o700)));
        files.push(File::new("/root/.ssh", Content::Folder(0o700)));
    }
    let lines = keys.iter().fold(String::new(), |text, key| text + key.trim() + "\n");
    files.push(File::new("/root/.ssh/authorized_keys", Content::Section(lines, 0o600)));
    files
}

/// A host name that the settings give, at each start. One that they do not give is the guest's own after the first.
pub fn host_name(name: Option<&str>) -> Vec<File> {
    let line = name.map_or(String::new(), |name| format!("127.0.1.1 {name}\n"));
    let mut files = vec![File::new("/etc/hosts", Content::Section(line, 0o644))];
    files.extend(name.map(|name| File::text("/etc/hostname", format!("{name}\n"))));
    files
}

fn hosts(name: &str) -> String {
    // 127.0.1.1 as Debian does it: the name resolves without a network, and is not plain localhost.
    format!(
        "127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost ip6-loopback\n\
         ff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n"
    )
}

/// A new machine id: 32 hexadecimal digits of a random (version 4) UUID, as `machine-id(5)` wants it.
pub fn machine_id() -> Result<String, std::io::Error> {
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// The machine id in the form of a UUID.
pub fn uuid(id: &str) -> String {
    let parts: Vec<&str> =
        [0..8, 8..12, 12..16, 16..20, 20..32].into_iter().filter_map(|part| id.get(part)).collect();
    parts.join("-")
}

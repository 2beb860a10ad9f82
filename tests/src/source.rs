//! Directories that bases are imported from.

use std::path::Path;

use crate::sandbox::Sandbox;

/// A directory that can be imported: a shell, and whatever `fill` adds.
pub fn system(sandbox: &Sandbox, fill: impl FnOnce(&Path)) -> String {
    let dir = sandbox.root().join("source");
    let _ = std::fs::remove_dir_all(&dir);
    for directory in ["bin", "sbin", "etc"] {
        std::fs::create_dir_all(dir.join(directory)).expect("a directory in the sandbox");
    }
    std::fs::copy("/bin/busybox", dir.join("bin/busybox")).expect("the host has busybox");
    for name in ["sh", "sleep", "mkdir", "mount"] {
        std::os::unix::fs::symlink("busybox", dir.join("bin").join(name)).expect("a link");
    }
    fill(&dir);
    dir.to_string_lossy().into_owned()
}

/// Installs a script as `/sbin/systemd`: Holm takes it for an init that reports readiness.
pub fn fake_systemd(dir: &Path, script: &str) {
    program(&dir.join("sbin/systemd"), script);
    std::os::unix::fs::symlink("systemd", dir.join("sbin/init")).expect("a link");
}

/// Writes an executable file.
pub fn program(path: &Path, bytes: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, bytes).expect("a program");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
}

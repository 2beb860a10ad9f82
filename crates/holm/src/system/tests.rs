use std::path::{Path, PathBuf};

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn boot(kind: Kind) -> BootFiles<'static> {
    BootFiles {
        kind,
        machine_id: ID,
        console: true,
        resolv_conf: Some("nameserver 10.0.0.1\n"),
        networkd: Box::leak(Box::new([("10-holm.network".to_owned(), "[Match]\n".to_owned())])),
    }
}

fn find<'a>(files: &'a [File], path: &str) -> Option<&'a Content> {
    files.iter().find(|file| file.path == Path::new(path)).map(|file| &file.content)
}

#[test]
fn kinds() {
    for (text, kind) in [
        ("systemd 257", Kind::Systemd(257)),
        ("systemd", Kind::Systemd(247)),
        ("sysvinit", Kind::SysVinit),
        ("openrc", Kind::OpenRc),
        ("runit", Kind::Runit),
        ("s6", Kind::Other),
    ] {
        assert_eq!(Kind::parse(text), kind, "{text}");
    }
    assert_eq!(Kind::Systemd(252).stop_signal(), Some(37));
    assert_eq!(Kind::Runit.stop_signal(), None);
}

#[test]
fn a_shell_makes_the_keys_of_those_without_units() {
    assert_eq!(Kind::Systemd(257).command("/sbin/init"), ["/sbin/init"]);
    let argv = Kind::OpenRc.command("/sbin/init");
    assert_eq!(argv[0], "/bin/sh");
    assert_eq!(argv[3], "/sbin/init");
    // The script names the stamp that a new guest gets, and ends as init.
    let identity = Identity { hostname: "web", machine_id: ID };
    let stamp = "/etc/ssh/.holm-make-host-keys";
    assert!(find(&identity.files(), stamp).is_some() && argv[2].contains(stamp));
    assert!(argv[2].ends_with("exec \"$0\"\n"));
}

#[test]
fn directories_come_before_their_files() {
    let identity = Identity { hostname: "web", machine_id: ID };
    for (files, have) in [
        (boot_files(&boot(Kind::Systemd(257))), vec!["/", "/run"]),
        (boot_files(&boot(Kind::Systemd(247))), vec!["/", "/run"]),
        (boot_files(&boot(Kind::Other)), vec!["/", "/run"]),
        (identity.files(), vec!["/"]),
        (ssh_keys(&["ssh-ed25519 AAAA me".to_owned()]), vec!["/"]),
    ] {
        let mut directories: Vec<PathBuf> = have.into_iter().map(PathBuf::from).collect();
        for file in &files {
            let parent = file.path.parent().unwrap();
            assert!(
                directories.iter().any(|directory| directory == parent),
                "{}",
                file.path.display()
            );
            if matches!(file.content, Content::Directory(_)) {
                directories.push(file.path.clone());
            }
        }
    }
}

#[test]
fn units_depend_on_the_version_and_the_console() {
    let new = boot_files(&boot(Kind::Systemd(257)));
    let null = Content::Link("/dev/null".to_owned());
    assert_eq!(find(&new, "/run/systemd/system/proc-sys-fs-binfmt_misc.automount"), Some(&null));
    assert_eq!(find(&new, "/run/systemd/system/sys-kernel-debug.mount"), None);
    assert_eq!(find(&new, "/run/systemd/system/console-getty.service"), None);
    assert!(find(&new, "/run/systemd/system/service.d/10-holm.conf").is_some());
    let old = boot_files(&BootFiles { console: false, ..boot(Kind::Systemd(247)) });
    assert_eq!(find(&old, "/run/systemd/system/sys-kernel-debug.mount"), Some(&null));
    assert_eq!(find(&old, "/run/systemd/system/console-getty.service"), Some(&null));
    assert_eq!(find(&old, "/run/systemd/system/service.d/10-holm.conf"), None);
    let other = boot_files(&boot(Kind::SysVinit));
    assert!(other.iter().all(|file| !file.path.starts_with("/run/systemd")));
    assert_eq!(
        find(&other, "/run/holm/resolv.conf"),
        Some(&Content::Text("nameserver 10.0.0.1\n".to_owned(), 0o644))
    );
}

#[test]
fn identity_is_the_guests_own() {
    let files = Identity { hostname: "web", machine_id: ID }.files();
    assert_eq!(find(&files, "/etc/hostname"), Some(&Content::Text("web\n".to_owned(), 0o644)));
    let Some(Content::Text(hosts, _)) = find(&files, "/etc/hosts") else { panic!() };
    assert!(hosts.contains("127.0.1.1 web\n"));
    let keys = ssh_keys(&["  key one \n".to_owned()]);
    let lines = Content::ManagedBlock("key one\n".to_owned(), 0o600);
    assert_eq!(find(&keys, "/root/.ssh/authorized_keys"), Some(&lines));
    assert_eq!(find(&ssh_keys(&[]), "/root"), None);
}

#[test]
fn random_ids_differ_and_are_uuids() {
    let (one, two) = (random_id128().unwrap(), random_id128().unwrap());
    assert_ne!(one, two);
    assert_eq!(one.len(), 32);
    assert_eq!(&one[12..13], "4");
    assert_eq!(uuid(ID), "01234567-89ab-cdef-0123-456789abcdef");
}

#[test]
fn environment_tells_systemd_more() {
    let env = environment(Kind::Systemd(257), ID, Some("/run/host/notify"));
    assert_eq!(env["container"], "holm");
    assert_eq!(env["NOTIFY_SOCKET"], "/run/host/notify");
    assert_eq!(env["container_uuid"], "01234567-89ab-cdef-0123-456789abcdef");
    let env = environment(Kind::Other, ID, Some("/run/host/notify"));
    assert!(!env.contains_key("NOTIFY_SOCKET") && !env.contains_key("container_uuid"));
}

//! A tree with everything that is hard to preserve.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, Timespec, Timestamps, XattrFlags, linkat, lsetxattr, mkfifoat, utimensat,
};

/// `cap_net_raw=ep`, as setcap stores it.
pub const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// `user::rw-,user:1000:r--,group::r--,mask::r--,other::---`, as the kernel has it.
const ACL: [u8; 44] = [
    2, 0, 0, 0, //
    1, 0, 6, 0, 255, 255, 255, 255, //
    2, 0, 4, 0, 0xe8, 3, 0, 0, //
    4, 0, 4, 0, 255, 255, 255, 255, //
    16, 0, 4, 0, 255, 255, 255, 255, //
    32, 0, 0, 0, 255, 255, 255, 255,
];

/// Makes the tree in the new directory `root`.
pub fn make(root: &Path) {
    fs::create_dir(root).unwrap();
    sizes(root);
    links(root);
    names(root);
    attributes(root);
    holes(&root.join("holes"));
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    owners_and_times(root);
}

fn sizes(root: &Path) {
    let dir = root.join("sizes");
    fs::create_dir(&dir).unwrap();
    for size in [0_usize, 1, 63, 64, 65, 511, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 3_333_333] {
        let data: Vec<u8> =
            (0..size).map(|i| (i * 31 + size + i / 4096).to_le_bytes()[0]).collect();
        fs::write(dir.join(size.to_string()), data).unwrap();
    }
    fs::write(dir.join("zeros"), vec![0; 10_000]).unwrap();
    fs::write(dir.join("twin of 65"), fs::read(dir.join("65")).unwrap()).unwrap();
}

fn links(root: &Path) {
    let dir = root.join("links");
    fs::create_dir_all(dir.join("deep")).unwrap();
    fs::write(
        dir.join("one"),
        "three names, long enough not to be inline in the image, sixty-five bytes",
    )
    .unwrap();
    fs::hard_link(dir.join("one"), dir.join("deep/two")).unwrap();
    fs::hard_link(dir.join("one"), root.join("three")).unwrap();
    fs::write(dir.join("small"), "inline").unwrap();
    fs::hard_link(dir.join("small"), dir.join("deep/small")).unwrap();
    symlink("one", dir.join("to one")).unwrap();
    symlink("/etc/passwd", dir.join("absolute")).unwrap();
    symlink("../../../../../nowhere", dir.join("dangling")).unwrap();
    // XFS takes 1023 bytes.
    let long = |length| symlink("x".repeat(length), dir.join("long"));
    long(1500).or_else(|_| long(1000)).unwrap();
    symlink(OsStr::from_bytes(b"\xff\xfe"), dir.join("odd")).unwrap();
    linkat(CWD, dir.join("odd"), CWD, dir.join("odd too"), AtFlags::empty()).unwrap();
    mkfifoat(CWD, dir.join("fifo"), Mode::from_raw_mode(0o640)).unwrap();
    fs::hard_link(dir.join("fifo"), dir.join("fifo too")).unwrap();
}

fn names(root: &Path) {
    let dir = root.join("names");
    fs::create_dir(&dir).unwrap();
    for name in [
        &b"\xff\xfe\x80"[..],
        b"-rf",
        b"new\nline",
        b"\\ \"'*",
        "ü 漢".as_bytes(),
        &[b'n'; 255],
        b".wh.x",
    ] {
        fs::write(dir.join(OsStr::from_bytes(name)), name).unwrap();
    }
    // The image has entries of its own by such names in its root.
    for name in ["00", "ab", "ff"] {
        fs::write(root.join(name), "mine").unwrap();
    }
    let many = root.join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..1500 {
        fs::write(many.join(format!("entry number {n}")), "").unwrap();
    }
    let mut deep = root.join("down");
    fs::create_dir(&deep).unwrap();
    for _ in 0..60 {
        deep.push("down");
        fs::create_dir(&deep).unwrap();
    }
    fs::write(deep.join("bottom"), "here").unwrap();
}

fn attributes(root: &Path) {
    let dir = root.join("attributes");
    fs::create_dir(&dir).unwrap();
    let set = |file: &str, name: &str, value: &[u8]| {
        let path = dir.join(file);
        if file != "." && !path.exists() {
            fs::write(&path, "x".repeat(100)).unwrap();
        }
        lsetxattr(&path, name, value, XattrFlags::empty())
            .unwrap_or_else(|e| panic!("{file} {name}: {e}"));
    };
    set("user", "user.empty", b"");
    set("user", "user.binary", b"\0\xff\n=7");
    set("user", "user.long", &[b'v'; 1000]);
    set("user", "trusted.other", b"kept");
    set(".", "user.directory", b"f");
    set("acl", "system.posix_acl_access", &ACL);
    set(".", "system.posix_acl_default", &ACL);
    set("capable", "security.capability", &CAPABILITY);
    // Revision 3, as a container with root 100000 leaves it.
    let mut third = [&CAPABILITY[..], &100_000_u32.to_le_bytes()].concat();
    third[3] = 3;
    set("capable in a namespace", "security.capability", &third);
    symlink("user", dir.join("link")).unwrap();
    lsetxattr(dir.join("link"), "trusted.on_a_link", b"1", XattrFlags::empty()).unwrap();
}

/// 30 MiB with three pieces of data.
pub fn holes(path: &Path) {
    let file = File::create(path).unwrap();
    for (at, data) in [(4096, "first"), (10 << 20, "second"), ((20 << 20) + 123, "third")] {
        file.write_all_at(data.repeat(1000).as_bytes(), at).unwrap();
    }
    file.set_len(30 << 20).unwrap();
}

fn owners_and_times(root: &Path) {
    let dir = root.join("owners");
    fs::create_dir(&dir).unwrap();
    for (n, (mode, uid, gid)) in [
        (0o644, 0, 0),
        (0o4755, 33, 44),
        (0o2755, 1000, 1000),
        (0o000, 65_534, 65_534),
        (0o7777, 3_000_000_000, 4_000_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.join(format!("file {n}"));
        fs::write(&path, "").unwrap();
        lchown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let directory = dir.join(format!("directory {n}"));
        fs::create_dir(&directory).unwrap();
        lchown(&directory, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
    }
    symlink("x", dir.join("link")).unwrap();
    lchown(dir.join("link"), Some(7), Some(8)).unwrap();
    for (n, (seconds, nanoseconds)) in
        [(0, 0), (1, 999_999_999), (1_700_000_000, 123_456_789), (5_000_000_000, 1)]
            .into_iter()
            .enumerate()
    {
        let path = dir.join(format!("file {n}"));
        set_time(&path, seconds, nanoseconds);
    }
    set_time(&dir.join("link"), 1_234_567_890, 987_654_321);
    set_time(&dir, 1_600_000_000, 42);
    fs::set_permissions(root, Permissions::from_mode(0o751)).unwrap();
    set_time(root, 1_500_000_000, 1);
}

fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

//! Sources that must be refused, and that must reach nothing outside the base while they are read.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};

use super::listing::list;
use super::{objects, stages, tool, view, work};
use crate::command::on_a_terminal;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(archives_that_are_refused),
    test!(attributes_above_the_limits),
    test!(holes_cost_neither_memory_nor_time),
    test!(archives_that_are_damaged),
    test!(escape_attempts_stay_inside),
    test!(directories_that_are_refused),
    test!(invalid_sources),
    test!(a_base_cannot_control_a_terminal),
];

fn a_base_cannot_control_a_terminal(sandbox: &mut Sandbox) {
    let tree = work(sandbox).join("tree");
    fs::create_dir_all(tree.join("etc")).expect("a directory");
    let name = "PRETTY_NAME=\"Fine\x1b[2J\x1b]0;title\x07 OS\"\n";
    fs::write(tree.join("etc/os-release"), name).expect("a file");
    let source = tree.to_string_lossy();
    let shown = on_a_terminal(sandbox.command().args(["base", "import", "odd", &source]));
    assert!(shown.contains("Fine^[[2J^[]0;title^G OS"), "{shown:?}");
    let shown = on_a_terminal(sandbox.command().args(["base", "ls"]));
    assert!(shown.contains("Fine^[[2J^[]0;title^G OS"), "{shown:?}");
}

/// One entry of a tar: its header, and its data padded.
fn entry(kind: u8, name: &str, link: &str, data: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", data.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, link.as_bytes());
    put(257, b"ustar\x0000");
    put(329, b"0000001\0");
    put(337, b"0000003\0");
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// An extended header for the entry after it.
fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    entry(b'x', "pax", "", format!("{length}{rest}").as_bytes())
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Imports an archive that must be refused with an error that contains all of `message`, and leave
/// nothing.
#[track_caller]
fn refused(sandbox: &Sandbox, bytes: &[u8], message: &[&str]) {
    let file = work(sandbox).join("hostile.tar");
    fs::write(&file, bytes).unwrap();
    sandbox.holm(&["base", "import", "hostile", file.to_str().unwrap()]).refused(message);
    nothing_left(sandbox);
}

#[track_caller]
fn nothing_left(sandbox: &Sandbox) {
    assert_eq!(stages(sandbox.root()), [""; 0]);
    assert_eq!(objects(sandbox.root()), [""; 0]);
    assert_eq!(sandbox.holm(&["base", "ls", "--json"]).ok().stdout.trim(), "[]");
}

fn archives_that_are_refused(sandbox: &mut Sandbox) {
    let file = |name: &str| entry(b'0', name, "", b"data");
    let long = "n".repeat(300);
    let deep = "d/".repeat(1500);
    for (entries, message) in [
        (vec![file("../outside")], &["../outside", "`..`"][..]),
        (vec![file("a/../../outside")], &["`..`"]),
        (vec![entry(b'2', "out", "/", b""), file("out/tmp/x")], &["out/tmp/x", "not a directory"]),
        (vec![entry(b'1', "passwd", "/etc/passwd", b"")], &["hard link", "/etc/passwd"]),
        (vec![entry(b'1', "x", "../../etc/passwd", b"")], &["hard link"]),
        (vec![entry(b'3', "devices/null", "", b"")], &["devices/null", "device node", "--exclude"]),
        (vec![entry(b'4', "dev", "", b"")], &["device node"]),
        (vec![entry(b'4', "dev/sda", "", b"")], &["no files"]),
        (vec![file("a"), entry(b'5', "a", "", b"")], &["a file and a directory"]),
        (vec![file("a/b"), file("a")], &["a file and a directory"]),
        (vec![entry(b'2', "empty", "", b"")], &["empty", "0 bytes"]),
        (vec![entry(b'M', "rest", "", b"")], &["type `M`"]),
        (vec![pax("path", &long), file("x")], &["255 bytes"]),
        (vec![pax("path", &deep), file("x")], &["too long"]),
        (vec![pax("uid", "4294967296"), file("x")], &["owner 4294967296", "not a user id"]),
        (
            vec![pax("SCHILY.xattr.trusted.overlay.redirect", "/etc/shadow"), file("x")],
            &["trusted.overlay.redirect", "overlay"],
        ),
        (
            vec![pax("SCHILY.xattr.trusted.overlay.opaque", "y"), entry(b'5', "d", "", b"")],
            &["overlay"],
        ),
        (
            vec![pax("SCHILY.xattr.security.capability", "short"), file("x")],
            &["capability", "damaged"],
        ),
        (
            vec![pax("SCHILY.acl.access", "user::rwx,user:joe:r--"), file("x")],
            &["joe", "--xattrs-include"],
        ),
    ] {
        refused(sandbox, &archive(&entries), message);
    }
}

/// What the image has no room for would be cut off there, and read as something else by the kernel.
fn attributes_above_the_limits(sandbox: &mut Sandbox) {
    let with = |attributes: Vec<(String, String)>| {
        let headers =
            attributes.iter().map(|(name, value)| pax(&format!("SCHILY.xattr.{name}"), value));
        headers.chain([entry(b'5', "d", "", b"")]).collect::<Vec<_>>()
    };
    let (long, large) = (format!("user.{}", "n".repeat(256)), "v".repeat(60_000));
    let many = |count: usize, value: &str| -> Vec<(String, String)> {
        (0..count).map(|n| (format!("user.{n}"), value.into())).collect()
    };
    for (attributes, message) in [
        (vec![(long, "v".repeat(512))], &["d: ", "261 bytes", "1 to 255", "setfattr -x"][..]),
        (vec![("user.a\0trusted.b".into(), "v".into())], &["zero byte"]),
        (vec![(String::new(), "v".into())], &["0 bytes"]),
        (vec![("user.v".into(), "v".repeat(65_536))], &["user.v", "65536 bytes", "65535"]),
        (many(129, "v"), &["128", "--xattrs-exclude"]),
        (many(5, &large), &["user.2", "131072"]),
    ] {
        refused(sandbox, &archive(&with(attributes)), message);
    }
    // As much as there may be is kept as it is, also where a second file shares all of it.
    let most: Vec<_> =
        [many(127, "value"), vec![(format!("user.{}", "l".repeat(250)), "w".repeat(65_535))]]
            .concat();
    let file = entry(b'0', "f", "", b"data");
    let again = with(most.clone()).into_iter().take(most.len());
    let bytes =
        archive(&with(most.clone()).into_iter().chain(again).chain([file]).collect::<Vec<_>>());
    let tar = work(sandbox).join("most.tar");
    fs::write(&tar, bytes).unwrap();
    sandbox.holm(&["base", "import", "most", tar.to_str().unwrap()]).ok();
    let want = most.iter().map(|(name, value)| (name.into(), value.clone().into_bytes())).collect();
    view::with(sandbox.root(), "most", |tree| {
        let found = list(tree);
        for name in ["d", "f"] {
            assert!(found[Path::new(name)].xattrs == want, "{name}");
        }
        assert_eq!(fs::read(tree.join("f")).unwrap(), b"data");
    });
}

/// A file that is all hole but for its first bytes, as archives have it.
fn mostly_hole(name: &str, size: u64, start: &str) -> Vec<u8> {
    let map = pax("GNU.sparse.map", &format!("0,{}", start.len()));
    let size = pax("GNU.sparse.size", &size.to_string());
    [size, map, entry(b'0', name, "", start.as_bytes())].concat()
}

fn holes_cost_neither_memory_nor_time(sandbox: &mut Sandbox) {
    // Far more than the memory and the processors of any host would do.
    let release = mostly_hole("etc/os-release", 8 << 40, "PRETTY_NAME=Hollow\n");
    let tar = work(sandbox).join("hollow.tar");
    fs::write(&tar, archive(&[release])).unwrap();
    sandbox.holm(&["base", "import", "hollow", tar.to_str().unwrap()]).ok();
    let printed = sandbox.holm(&["base", "inspect", "hollow", "--json"]).ok().json();
    assert_eq!(printed["os"], "Hollow", "{printed}");
    assert_eq!(printed["size_bytes"], 8_u64 << 40, "{printed}");
    sandbox.holm(&["base", "rm", "hollow"]).ok();
    for size in [(16 << 40) + 1, 1 << 62] {
        let bytes = archive(&[mostly_hole("large", size, "data")]);
        refused(sandbox, &bytes, &["large: ", "17592186044416 are possible", "leave it out"]);
    }
    // What each later entry would have to read again.
    let comment = entry(b'g', "all", "", b"17 comment=words\n");
    let bytes = archive(&[vec![comment; 300].concat(), entry(b'0', "x", "", b"data")]);
    refused(sandbox, &bytes, &["too long"]);
}

fn archives_that_are_damaged(sandbox: &mut Sandbox) {
    let dir = work(sandbox);
    let good = archive(&[entry(b'0', "file", "", &[b'x'; 3000])]);
    refused(sandbox, &good[..2000], &["cut off"]);
    let mut other_name = archive(&[entry(b'0', "one", "", b"data"), entry(b'0', "two", "", b"")]);
    other_name[1024] ^= 1;
    refused(sandbox, &other_name, &["checksum"]);
    refused(sandbox, &[], &["it is empty"]);
    refused(sandbox, &[0; 10_240], &["empty"]);
    refused(sandbox, &vec![b'?'; 5000], &["neither a tar"]);
    refused(sandbox, b"BZh91AY", &["bzip2"]);
    // The size of the first piece of data, and what the file says of its holes.
    for map in ["0,10,5,10", "0,99999999999999999999", "1,18446744073709551615", "7"] {
        let sparse = [pax("GNU.sparse.map", map), entry(b'0', "file", "", b"data")].concat();
        let sparse = [pax("GNU.sparse.size", "100"), sparse];
        refused(sandbox, &archive(&sparse), &[]);
    }
    let plain = dir.join("good.tar");
    fs::write(&plain, &good).unwrap();
    for program in ["gzip", "xz"] {
        tool(sandbox, program, &["-k", "-f", plain.to_str().unwrap()]);
        let ending = if program == "gzip" { "gz" } else { "xz" };
        let packed = fs::read(dir.join(format!("good.tar.{ending}"))).unwrap();
        refused(sandbox, &packed[..packed.len() - 5], &[]);
        let mut wrong = packed.clone();
        let middle = wrong.len() / 2;
        wrong[middle] ^= 0x55;
        refused(sandbox, &wrong, &[]);
    }
}

fn escape_attempts_stay_inside(sandbox: &mut Sandbox) {
    let outside = work(sandbox).join("outside");
    fs::write(&outside, "host").unwrap();
    let path = outside.to_str().unwrap();
    let bytes = archive(&[
        entry(b'2', "link", path, b""),
        entry(b'0', "link", "", b"guest"), // unpacked on the host it would follow the link
        entry(b'2', "to", "..", b""),
        entry(b'0', "/absolute", "", b"inside"),
        entry(b'1', "absolute too", "/absolute", b""),
        entry(b'0', "./dot/./file", "", b"inside"),
        entry(b'0', "twice", "", b"first"),
        entry(b'0', "twice", "", b"second"),
    ]);
    let tar = work(sandbox).join("odd.tar");
    fs::write(&tar, bytes).unwrap();
    sandbox.holm(&["base", "import", "odd", tar.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "host");
    view::with(sandbox.root(), "odd", |tree| {
        let read = |name: &str| fs::read_to_string(tree.join(name)).unwrap();
        assert_eq!(read("link"), "guest");
        assert_eq!(read("twice"), "second");
        assert_eq!(read("absolute too"), "inside");
        assert_eq!(read("dot/file"), "inside");
        let found = list(tree);
        let names: Vec<_> = found.keys().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["", "absolute", "absolute too", "dot", "dot/file", "link", "to", "twice"]
        );
    });
}

fn directories_that_are_refused(sandbox: &mut Sandbox) {
    let refuse = |what: &str, make: &dyn Fn(&Path), message: &[&str]| {
        let dir = work(sandbox).join(what);
        fs::create_dir_all(dir.join("below")).unwrap();
        make(&dir.join("below"));
        sandbox.holm(&["base", "import", "x", dir.to_str().unwrap()]).refused(message);
        nothing_left(sandbox);
    };
    let node = |path: &Path, kind, number| {
        mknodat(CWD, path.join("node"), kind, Mode::from_raw_mode(0o600), number).unwrap();
    };
    refuse(
        "null",
        &|p| node(p, FileType::CharacterDevice, makedev(1, 3)),
        &["below/node", "device"],
    );
    refuse("whiteout", &|p| node(p, FileType::CharacterDevice, makedev(0, 0)), &["below/node"]);
    refuse("block", &|p| node(p, FileType::BlockDevice, makedev(7, 0)), &["device"]);
    let set = |path: &Path, name| setxattr(path, name, b"y", XattrFlags::empty()).unwrap();
    refuse("opaque", &|p| set(p, "trusted.overlay.opaque"), &["below", "trusted.overlay.opaque"]);
    refuse("redirect", &|p| set(p, "trusted.overlay.redirect"), &["trusted.overlay.redirect"]);
}

fn invalid_sources(sandbox: &mut Sandbox) {
    let empty = work(sandbox).join("empty");
    fs::create_dir(&empty).unwrap();
    for (source, message) in [
        ("/no/such/thing", &["/no/such/thing", "No such file"][..]),
        ("/etc/passwd", &["/etc/passwd", "neither a tar"]),
        ("/dev/null", &["it is empty"]),
        (empty.to_str().unwrap(), &["no files"]),
        ("debootstrap:", &["suite"]),
        ("trixie", &["No such file", "Did you mean debootstrap:trixie?", "busybox", "./rootfs"]),
        ("docker:alpine", &["docker create alpine", "debootstrap:trixie"]),
        ("http://example.org/x.tar", &["curl -L http://example.org/x.tar", "import NAME -"]),
        ("debootstrap:trixie+--help", &["--help"]),
    ] {
        sandbox.holm(&["base", "import", "x", source]).refused(message);
        nothing_left(sandbox);
    }
    for name in ["../x", "a/b", "-x-", ".new", &"x".repeat(300)] {
        let outcome = sandbox.holm(&["base", "import", "--", name, empty.to_str().unwrap()]);
        outcome.refused(&["cannot be a name"]);
    }
    for verb in ["inspect", "rm"] {
        sandbox.holm(&["base", verb, "nothing"]).refused(&["no base", "nothing"]);
    }
}

//! Changes keep comments and order, and are checked.

use super::*;

/// `text` after one change.
fn edited(text: &str, change: &str) -> String {
    let change = match change.strip_prefix("unset ") {
        Some(key) => Change::unset(key),
        None => Change::parse(change).unwrap(),
    };
    edit_text(text, &[change]).unwrap_or_else(|e| panic!("{e}"))
}

/// The error of one change to a small file.
fn refused(change: &str) -> String {
    let text = "base = \"b\"\nnet.publish = [\"80:80\"]\n";
    edit_text(text, &[Change::parse(change).unwrap()]).map(|_| ()).expect_err(change).to_string()
}

const FILE: &str = "\
# The web server.
base = \"debian13\" # never change

[memory] # bytes
# as little as it takes
limit = \"512M\" # see ticket 7

[net]
publish = [
  \"8080:80\", # http
  \"8443:443\", # https
]
";

#[test]
fn values_change_in_their_place() {
    assert_eq!(edited(FILE, "memory.limit=1G"), FILE.replace("512M", "1G"));
    assert_eq!(edited(FILE, "memory.limit=4096"), FILE.replace("\"512M\"", "4096"));
    assert_eq!(edited(FILE, "base=debian12"), FILE.replace("debian13", "debian12"));
    assert_eq!(
        edited(FILE, "memory.shm=1G"),
        FILE.replace("ticket 7\n", "ticket 7\nshm = \"1G\"\n")
    );
    assert_eq!(
        edited(FILE, "cpu.cap=150%"),
        FILE.replace("never change\n", "never change\ncpu.cap = \"150%\"\n")
    );
}

#[test]
fn lists_grow_and_shrink() {
    assert_eq!(
        edited(FILE, "net.publish+=53:53/udp"),
        FILE.replace("# https\n", "# https\n  \"53:53/udp\",\n")
    );
    assert_eq!(
        edited("base = \"b\"\nnet.publish = [\"1:1\"]\n", "net.publish+=2:2"),
        "base = \"b\"\nnet.publish = [\"1:1\", \"2:2\"]\n"
    );
    assert_eq!(
        edited("base = \"b\"\n", "net.publish+=2:2"),
        "base = \"b\"\nnet.publish = [\"2:2\"]\n"
    );
    assert_eq!(
        edited("base = \"b\"\nnet.publish = [\"1:1\"]\n", "net.publish-=1:1/tcp"),
        "base = \"b\"\n"
    );
    let less = edited(FILE, "net.publish-=8080:80");
    assert!(!less.contains("8080") && less.contains("8443"), "{less}");
    assert_eq!(parse(&less, "f").unwrap().net.publish.len(), 1);
}

#[test]
fn unset_leaves_no_empty_group() {
    assert_eq!(edited("base = \"b\"\nmemory.limit = 1\n", "unset memory.limit"), "base = \"b\"\n");
    assert_eq!(
        edited("base = \"b\"\n[memory]\nlimit = 1\n", "unset memory.limit"),
        "base = \"b\"\n"
    );
    assert_eq!(
        edited("base = \"b\"\n[memory]\nlimit = 1\nshm = 2\n", "unset memory"),
        "base = \"b\"\n"
    );
    assert_eq!(
        edited("base = \"b\"\nenv.A = \"1\"\nenv.B = \"2\"\n", "unset env.A"),
        "base = \"b\"\nenv.B = \"2\"\n"
    );
    assert_eq!(edited("base = \"b\"\n", "unset memory.limit"), "base = \"b\"\n");
    let services =
        "base = \"b\"\n[services.a]\ncommand = [\"x\"]\n[services.b]\ncommand = [\"y\"]\n";
    assert_eq!(edited(services, "unset services.a").matches("services").count(), 1);
}

#[test]
fn values_get_the_type_that_people_would_write() {
    let cases = [
        ("protect=true", "protect = true"),
        ("autostart=7", "autostart = 7"),
        ("autostart=true", "autostart = true"),
        ("cpu.cap=1.5", "cpu.cap = 1.5"),
        ("cpu.cap=2", "cpu.cap = 2"),
        ("cpu.cap=25%", "cpu.cap = \"25%\""),
        ("cpu.share=300", "cpu.share = 300"),
        ("memory.limit=1073741824", "memory.limit = 1073741824"),
        ("memory.limit=1G", "memory.limit = \"1G\""),
        ("stop.timeout=5s", "stop.timeout = \"5s\""),
        ("hostname=007", "hostname = \"007\""),
        ("env.A=1=2,3", "env.A = \"1=2,3\""),
        ("env.A=", "env.A = \"\""),
        ("env.A=true", "env.A = \"true\""),
        ("env.Q=\"\\", "env.Q = '\"\\'"),
        ("rlimits.nofile=1024", "rlimits.nofile = 1024"),
        ("rlimits.nofile=1024:4096", "rlimits.nofile = \"1024:4096\""),
        ("net.publish=80:80,81:81", "net.publish = [\"80:80\", \"81:81\"]"),
        ("net.publish=", "net.publish = []"),
        ("net.publish=[\"80:80\"]", "net.publish = [\"80:80\"]"),
        ("command=/bin/sleep 5", "command = [\"/bin/sleep\", \"5\"]"),
        ("command=[\"a\", \"b c\"]", "command = [\"a\", \"b c\"]"),
        ("services.web.command=/bin/httpd", "services.web.command = [\"/bin/httpd\"]"),
    ];
    for (change, line) in cases {
        assert_eq!(edited("base = \"b\"\n", change), format!("base = \"b\"\n{line}\n"), "{change}");
    }
}

#[test]
fn wrong_changes_are_refused() {
    let cases = [
        ("memory.limit=512X", "memory.limit=512X: \"X\" is not a unit of size"),
        ("memory.limt=1", "memory.limt=1: unknown key memory.limt; did you mean memory.limit?"),
        ("memory=1G", "memory=1G: memory is a group of keys; did you mean memory.limit?"),
        ("protect=yes", "protect=yes: \"yes\" is not true or false"),
        (
            "memory.limit+=1",
            "memory.limit+=1: memory.limit is not a list; write memory.limit=VALUE",
        ),
        ("net.publish-=81:81", "net.publish-=81:81: net.publish does not contain it"),
        ("net.publish+=81", "net.publish+=81: \"81\" names only one port"),
        (
            "net.publish+=80:81",
            "guest.toml:2:25: net.publish: the same host port is published twice",
        ),
        ("net.publish=[1]", "net.publish=[1]: lists hold strings only"),
        ("net.publish=[", "net.publish=[: not a TOML list"),
        ("net.mode=none", "guest.toml:2:15: net.publish conflicts with net.mode"),
        ("env.A B=1", "env.A B=1: \"A B\" cannot name a variable"),
        ("command=", "command=: names no program"),
        ("cpu.cap=nan", "cpu.cap=nan: \"nan\" is not an amount"),
    ];
    for (change, expected) in cases {
        let error = refused(change);
        assert!(error.starts_with(expected), "{change}:\n  is  {error}\n  not {expected}");
    }
    assert!(Change::parse("memory.limit").unwrap_err().to_string().contains("write KEY=VALUE"));
}

#[test]
fn a_change_can_mend_a_file() {
    let broken = "base = \"b\"\nnet.mode = \"none\"\nnet.publish = [\"80:80\"]\n";
    assert!(parse(broken, "f").is_err());
    assert!(edited(broken, "net.mode=private").contains("private"));
    assert!(!edited(broken, "unset net.publish").contains("80:80"));
    assert_eq!(
        edit_text("base = ", &[Change::set("base", "b")])
            .unwrap_err()
            .to_string()
            .split(": ")
            .next(),
        Some("guest.toml:1:8")
    );
}

#[test]
fn several_changes_are_made_together() {
    let changes = [
        Change::set("net.mode", "none"),
        Change::unset("net.publish"),
        Change::add("mounts", "/a:/b"),
    ];
    let text = edit_text("base = \"b\"\nnet.publish = [\"80:80\"]\n", &changes).unwrap();
    let config = parse(&text, "f").unwrap();
    assert_eq!((config.net.mode, config.mounts.len()), (NetMode::None, 1));
}

#[test]
fn setting_each_value_in_force_gives_the_same_guest() {
    let text = "\
base = \"b\"
cpu = { share = 3, cap = 0.5, set = \"0,2\" }
memory = { limit = \"3G\", swap = \"1K\", shm = 7, lock = \"8M\" }
stop = { signal = \"INT\", timeout = \"1500ms\" }
net = { publish = [\"1:2/udp\", \"[fd00::1]:3:4\"], dns = [\"::2\"], peers = false, host-access = true }
mounts = [\"/a:/b:ro\"]
rlimits = { nofile = \"1:2\", stack = \"unlimited\" }
security.caps = [\"-net_raw\"]
autostart = 3
env = { A = \"x y\" }
";
    let old = parse(text, "f").unwrap();
    let mut changes = Vec::new();
    for value in effective(text, "f").unwrap() {
        if value.source == Source::File {
            changes.push(Change::set(&value.key, &value.text));
        }
    }
    assert_eq!(parse(&edit_text("", &changes).unwrap(), "f").unwrap(), old);
}

#[test]
fn a_command_is_split_as_a_shell_does() {
    for (typed, written) in [
        ("sh -c 'echo a b'", r#"["sh", "-c", "echo a b"]"#),
        (r#"sh -c "echo a b""#, r#"["sh", "-c", "echo a b"]"#),
        (r#"printf "%s\\n" '' a"b"c\ d"#, r#"["printf", '%s\n', "", "abc d"]"#),
        ("  sleep   5 ", r#"["sleep", "5"]"#),
        (r#"["sh", "-c", "echo 'a'"]"#, r#"["sh", "-c", "echo 'a'"]"#),
    ] {
        let after = edited("base = \"b\"\n", &format!("command={typed}"));
        assert_eq!(after, format!("base = \"b\"\ncommand = {written}\n"), "{typed}");
    }
    for typed in ["sh -c 'echo a", "sh -c \"echo a", "sh \\"] {
        let error = refused(&format!("command={typed}"));
        assert!(error.contains("a list says it plainly, as [\"sh\", \"-c\""), "{error}");
    }
}

#[test]
fn numbers_that_are_too_large_are_told_in_words_of_ours() {
    for change in [
        "memory.limit=99999999999999999999999",
        "memory.limit=99999999T",
        "pids.limit=99999999999999999999",
        "cpu.cap=99999999999999999999",
        "cpu.share=99999999999999999999",
        "autostart=99999999999999999999",
        "rlimits.nofile=99999999999999999999",
        "rlimits.fsize=99999999999999999999",
    ] {
        let error = refused(change);
        assert!(error.contains("out of range") || error.contains("than any host"), "{error}");
    }
    for change in ["memory.limit=-1", "stop.timeout=-1", "cpu.cap=-1", "pids.limit=-1"] {
        let error = refused(change);
        assert!(error.contains(": \"-1") && error.contains(" is not a"), "{error}");
        assert!(!error.contains("unit of size") && !error.contains("unit of time"), "{error}");
    }
}

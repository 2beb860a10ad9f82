//! What a command line says is the same with and without a text of it.

use super::*;

fn changes(arguments: &[&str]) -> Vec<Change> {
    arguments.iter().map(|argument| Change::parse(argument).unwrap()).collect()
}

#[test]
fn the_same_guest() {
    let lines: &[&[&str]] = &[
        &["base=b"],
        &["base=b", "net.mode=none", "command=[\"/bin/true\"]"],
        &["base=b", "command=/bin/sh -c true", "hostname=web"],
        &["base=b", "memory.limit=268435456", "memory.swap=1G", "cpu.cap=1", "cpu.set=0-1"],
        &["base=b", "cpu.cap=25%", "cpu.cap=1.5", "stop.timeout=2min", "autostart=true"],
        &["base=b", "net.publish=8080:80,8443:443", "net.publish+=127.0.0.1:53:53/udp"],
        &["base=b", "env.LANG=C.UTF-8", "env.A=", "rlimits.nofile=10:20", "protect=true"],
        &["base=b", "mounts+=/srv:/srv:ro", "devices=/dev/fuse", "autostart=7", "arch=i686"],
        &["base=b", "services.web.command=httpd -f", "services.web.restart=always"],
    ];
    for line in lines {
        let changes = changes(line);
        let text = edit_text("", &changes).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        assert_eq!(
            from_changes(&changes).unwrap(),
            parse(&text, "guest.toml").unwrap(),
            "{line:?}"
        );
    }
}

#[test]
fn the_same_mistakes() {
    let lines: &[&[&str]] = &[
        &[],
        &["base=b", "memory.limt=1G"],
        &["base=b", "memory.limit=much"],
        &["base=b", "memory.limit=much", "memory.limit=1G"],
        &["base=b", "protect=perhaps"],
        &["base=b", "net.mode=bridge"],
        &["base=b", "net.mode=none", "net.publish=80:80"],
        &["base=b", "memory.swap=1G"],
        &["base=b", "net.publish+=80:80", "net.publish+=80:81"],
        &["base=b", "net.publish-=80:80"],
        &["base=b", "hostname=a\0b"],
        &["base=b", "env.A.B=1"],
        &["base=b", "command=[1]"],
    ];
    for line in lines {
        let changes = changes(line);
        let long = edit_text("", &changes).and_then(|text| parse(&text, "guest.toml"));
        let (long, short) = (long.unwrap_err(), from_changes(&changes).unwrap_err());
        assert_eq!(short.to_string(), long.to_string(), "{line:?}");
    }
}

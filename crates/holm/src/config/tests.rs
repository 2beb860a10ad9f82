//! Tests of the whole: from text to [`Config`], to errors, and back to text.

use std::time::Duration;

use super::*;

mod direct;
mod documentation;
mod editing;
mod mistakes;
mod quantities;

/// Parses `text` below a base.
fn good(text: &str) -> Config {
    let whole = format!("base = \"debian13\"\n{text}");
    parse(&whole, "guest.toml").unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The error of `text` below a base, as `line:column: message`.
fn bad(text: &str) -> String {
    let whole = format!("base = \"b\"\n{text}");
    let error = parse(&whole, "f").map(|_| ()).expect_err(text).to_string();
    error.strip_prefix("f:").expect("the origin comes first").to_owned()
}

#[test]
fn defaults_are_the_struct_s() {
    let config = good("");
    assert_eq!(config, Config { base: "debian13".to_owned(), ..Config::default() });
    assert_eq!(config.init, Init::System);
    assert_eq!(config.net.mode, NetMode::Private);
    assert!(config.net.peers && !config.net.host_access);
    assert_eq!(config.stop.timeout, Duration::from_secs(30));
}

#[test]
fn dotted_keys_tables_and_inline_tables_are_the_same() {
    let forms = [
        "memory.limit = \"512M\"\nmemory.swap = 4096\ncpu.cap = 1.5",
        "[memory]\nlimit = \"512M\"\nswap = \"4K\"\n[cpu]\ncap = \"150%\"",
        "memory = { limit = 536870912, swap = \"4KiB\" }\ncpu = { cap = \"1.5 CPUs\" }",
        "\"memory\".\"limit\" = \"0.5G\"\nmemory.swap = \"4_096\"\n[\"cpu\"]\ncap = 1.50",
    ];
    for form in forms {
        assert_eq!(good(form), good(forms[0]), "{form}");
    }
    assert_eq!(good(forms[0]).memory.limit, Some(512 << 20));
}

#[test]
fn every_key_is_read() {
    let config = good(
        r#"
        init = "minimal"
        hostname = "web.example.org"
        restart = "on-failure"
        autostart = 7
        protect = true
        stop = { signal = "SIGRTMIN+3", timeout = "2min" }
        cpu = { share = 200, cap = 0.25, set = "0-1, 3" }
        memory = { limit = "1G", swap = 0, shm = "64M", lock = "8M" }
        pids.limit = 100
        mounts = ["/srv/data:/data:ro", "/home:/home", "/a:/b:rw"]
        devices = ["/dev/fuse", "/dev/net/tun"]
        env = { LANG = "C.UTF-8", EMPTY = "" }
        rlimits = { nofile = "1024:4096", core = "unlimited", stack = "64K" }
        security = { caps = ["net_admin", "-CAP_NET_RAW"], nesting = true, userfaultfd = true, packet-rings = true }
        ssh.keys = ["ssh-ed25519 AAAAC3Nza me"]
        [net]
        address = ["10.97.0.9", "fd00:686f:6c6d:1::9"]
        publish = ["8080:80", "127.0.0.1:53:5353/udp"]
        peers = false
        host-access = true
        dns = ["192.0.2.1"]
        [services.zed]
        command = ["/bin/z"]
        [services.alpha]
        command = ["/bin/a", "-x"]
        restart = "always"
        "#,
    );
    assert_eq!(config.stop, Stop { signal: Some(Signal(37)), timeout: Duration::from_mins(2) });
    assert_eq!(config.autostart, Some(Autostart { order: 7 }));
    assert_eq!(
        config.cpu,
        Cpu { share: Some(200), cap: Some(0.25), set: Some("0-1,3".to_owned()) }
    );
    assert_eq!(config.memory.swap, Some(0));
    assert_eq!(config.net.publish.len(), 2);
    assert!(!config.net.peers && config.net.host_access);
    assert_eq!(config.net.publish[1].proto, Proto::Udp);
    assert_eq!(config.mounts.iter().map(|m| m.read_only).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(config.rlimits["core"].soft, Rlimit::UNLIMITED);
    assert_eq!(config.rlimits["stack"].hard, 65536);
    assert_eq!(config.security.caps, ["CAP_NET_ADMIN", "-CAP_NET_RAW"]);
    let services: Vec<&str> = config.services.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(services, ["zed", "alpha"], "the order of the file");
    assert_eq!(config.services[1].restart, Restart::Always);
}

#[test]
fn a_command_or_a_service_makes_init_minimal() {
    assert_eq!(good("command = [\"/bin/true\"]").init, Init::Minimal);
    assert_eq!(good("services.a.command = [\"/bin/true\"]").init, Init::Minimal);
    assert_eq!(good("init = \"minimal\"").init, Init::Minimal);
}

#[test]
fn a_range_is_one_entry_for_each_port() {
    let publish = good("net.publish = [\"[fd00::1]:8000-8002:9000-9002/udp\"]").net.publish;
    let ports: Vec<(u16, u16)> = publish.iter().map(|p| (p.host_port, p.guest_port)).collect();
    assert_eq!(ports, [(8000, 9000), (8001, 9001), (8002, 9002)]);
    assert!(publish.iter().all(|p| p.host_ip == Some("fd00::1".parse().unwrap())));
}

#[test]
fn effective_values_say_where_they_come_from() {
    let text = "base = \"b\"\n\n[memory]\nlimit = \"1G\"\n[env]\nLANG = \"C\"\n";
    let all = effective(text, "f").unwrap();
    let one = |key: &str| all.iter().find(|e| e.key == key).unwrap_or_else(|| panic!("{key}"));
    let limit = one("memory.limit");
    assert_eq!((limit.source, limit.line, limit.text.as_str()), (Source::File, Some(4), "1G"));
    assert_eq!(limit.value, serde_json::json!(1u64 << 30));
    let shm = one("memory.shm");
    assert_eq!((shm.source, shm.line, shm.text.as_str()), (Source::Default, None, "512M"));
    assert_eq!(one("memory.swap").value, serde_json::Value::Null);
    assert_eq!((one("env.LANG").source, one("env.LANG").line), (Source::File, Some(6)));
    assert_eq!(one("stop.timeout").value, serde_json::json!(30.0));
    assert_eq!(one("net.publish").value, serde_json::json!([]));
    assert!(!all.iter().any(|e| e.key.contains('*')));
}

#[test]
fn changes_are_told_with_their_effect() {
    let old = good("memory.limit = \"1G\"\nenv.A = \"1\"\nenv.B = \"1\"");
    let new = good("memory.limit = \"2G\"\nenv.A = \"2\"\nenv.C = \"1\"\ncpu.cap = 1");
    let expected = [
        ("cpu.cap", Effect::Live),
        ("memory.limit", Effect::Live),
        ("env.A", Effect::NextStart),
        ("env.B", Effect::NextStart),
        ("env.C", Effect::NextStart),
    ];
    assert_eq!(changed(&old, &new), expected.map(|(k, e)| (k.to_owned(), e)));
    assert_eq!(changed(&old, &good("memory.limit = 1073741824\nenv = {A = \"1\", B = \"1\"}")), []);
}

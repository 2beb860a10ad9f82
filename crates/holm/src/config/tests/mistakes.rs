//! Errors: the place, the message, the nearest key.

use super::{bad, parse};

/// Each text (below `base = "b"`, so line 2 is its first) is refused with exactly that beginning.
fn refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let error = bad(text);
        assert!(error.starts_with(expected), "{text:?}:\n  is  {error}\n  not {expected}");
    }
}

#[test]
fn unknown_keys() {
    refused(&[
        ("memory.limt = 3", "2:8: unknown key memory.limt; did you mean memory.limit?"),
        ("[memory]\nlimt = 3", "3:1: unknown key memory.limt; did you mean memory.limit?"),
        (
            "memory = { limit = 1, limt = 3 }",
            "2:23: unknown key memory.limt; did you mean memory.limit?",
        ),
        ("  hostnmae = \"a\"", "2:3: unknown key hostnmae; did you mean hostname?"),
        ("initt = \"minimal\"", "2:1: unknown key initt; did you mean init?"),
        ("\"ini t\" = \"minimal\"", "2:1: unknown key ini t; did you mean init?"),
        ("mount = []", "2:1: unknown key mount; did you mean mounts?"),
        ("[mem]\nlimit = 3", "2:2: unknown key mem; did you mean memory.limit?"),
        ("limit = 3", "2:1: unknown key limit; `holm help set`"),
        ("image = \"x\"", "2:1: unknown key image; did you mean base?"),
        ("volume = []", "2:1: unknown key volume; did you mean volumes?"),
        ("cpu.weight = 3", "2:5: unknown key cpu.weight; did you mean cpu.share?"),
        ("cpu.burst = 3", "2:5: unknown key cpu.burst; there are cpu.share, cpu.cap, cpu.set"),
        ("zzz = 3", "2:1: unknown key zzz; `holm help set` lists all keys"),
        ("zzz.yyy = 3", "2:1: unknown key zzz; `holm help set` lists all keys"),
        (
            "services.a.comand = []",
            "2:12: unknown key services.a.comand; did you mean services.*.command?",
        ),
        ("net.pubish = []", "2:5: unknown key net.pubish; did you mean net.publish?"),
        ("disk.limit = \"10G\"", "2:6: unknown key disk.limit; did you mean disk.size?"),
        ("disk.size = \"1M\"", "2:13: disk.size: 1M is too small for a disk; the least is 16M"),
        ("[io]\nweight = 3", "2:2: unknown key io: Holm neither divides nor bounds"),
        ("cpu.reserve = 1", "2:5: unknown key cpu.reserve: Holm reserves no CPU time yet;"),
        ("net.ports = \"32\"", "2:13: net.ports: \"32\" is not a range of ports; write auto:32"),
        ("net.ports = \"auto:33\"", "2:13: net.ports: auto gives 1 to 32 ports; for more write"),
        ("net.ports = \"9-8\"", "2:13: net.ports: the range 9-8 runs backwards"),
        ("net.ports = \"1-1025\"", "2:13: net.ports: a guest has at most 256 ports"),
        ("include = \"x\"", "2:1: unknown key include: guest.toml cannot take in another"),
        ("iot = 3", "2:1: unknown key iot; `holm help set` lists all keys"),
        ("sshkeys = []", "2:1: unknown key sshkeys; did you mean ssh.keys?"),
        (
            "[stop]\nsignal = \"TERM\"\ntimeuot = \"3s\"",
            "4:1: unknown key stop.timeuot; did you mean stop.timeout?",
        ),
    ]);
}

#[test]
fn groups_are_not_values() {
    refused(&[
        ("memory = \"512M\"", "2:1: memory is a group of keys; did you mean memory.limit?"),
        ("cpu = 2", "2:1: cpu is a group of keys; did you mean cpu.cap?"),
        ("net = \"none\"", "2:1: net is a group of keys; did you mean net.mode?"),
        ("stop = 3", "2:1: stop is a group of keys; they are stop.signal, stop.timeout"),
        ("env = \"A=1\"", "2:1: env is a group of keys; they are env.*"),
        (
            "services = []",
            "2:1: services is a group of keys; they are services.*.command, services.*.restart",
        ),
        ("[[memory]]\nlimit = 1", "2:3: memory is a group of keys"),
        ("services.a = []", "2:10: services.a is a group of keys"),
    ]);
}

#[test]
fn wrong_types() {
    refused(&[
        (
            "memory.limit = true",
            "2:16: memory.limit takes a size such as \"512M\", not true or false",
        ),
        ("memory.limit = []", "2:16: memory.limit takes a size such as \"512M\", not a list"),
        (
            "memory.limit = 0x10",
            "2:16: memory.limit takes a size such as \"512M\", not a number of another base",
        ),
        (
            "memory.limit = 2024-01-01",
            "2:16: memory.limit takes a size such as \"512M\", not a date",
        ),
        ("memory.limit = {}", "2:16: memory.limit takes a size such as \"512M\", not a table"),
        ("protect = \"yes\"", "2:11: protect takes true or false, not a string"),
        ("protect = 1", "2:11: protect takes true or false, not a whole number"),
        ("hostname = 5", "2:12: hostname takes a string, not a whole number"),
        ("init = true", "2:8: init takes one of \"system\", \"minimal\", not true or false"),
        (
            "net.publish = \"80:80\"",
            "2:15: net.publish takes a list of strings such as [\"8080:80/tcp\"], not a string",
        ),
        ("net.publish = [\"80:80\", 81]", "2:25: net.publish takes a string, not a whole number"),
        ("net.publish = [[\"80:80\"]]", "2:16: net.publish takes a string, not a list"),
        (
            "command = \"sleep 5\"",
            "2:11: command takes a program and its arguments such as [\"/bin/sleep\", \"100\"], not a string",
        ),
        ("env.A = 1", "2:9: env.A takes a string, not a whole number"),
        ("env.A.B = 1", "2:5: env.A takes a string, not a table"),
        ("pids.limit = 1.5", "2:14: pids.limit: \"1.5\" is not a whole number"),
        (
            "autostart = \"soon\"",
            "2:13: autostart: \"soon\" is not a whole number from 0 on; write true, false",
        ),
        ("hostname = \"a\\u0000\"", "2:12: hostname must not contain a zero byte"),
    ]);
}

#[test]
fn wrong_values_and_units() {
    refused(&[
        ("memory.limit = \"512X\"", "2:16: memory.limit: \"X\" is not a unit of size"),
        (
            "[memory]\n  swap  =  \"1MB\"",
            "3:12: memory.swap: \"MB\" may mean 1000 or 1024; write 1M (1024)",
        ),
        ("memory.limit = -5", "2:16: memory.limit: \"-5\" is not a size"),
        ("memory.limit = 9223372036854775808", "2:16: memory.limit: 9223372036854775808 is too"),
        ("memory.limit = inf", "2:16: memory.limit: \"inf\" is not a size"),
        ("cpu.cap = 0", "2:11: cpu.cap: 0 is out of range"),
        ("cpu.share = 0", "2:13: cpu.share: 0 is out of range, 1 to 10000"),
        ("cpu.share = -3", "2:13: cpu.share: \"-3\" is not a whole number"),
        ("pids.limit = 0", "2:14: pids.limit: 0 is out of range"),
        ("init = \"systemd\"", "2:8: init: \"systemd\" is not known; did you mean \"system\"?"),
        ("init = \"x\"", "2:8: init: \"x\" is not known; write one of \"system\", \"minimal\""),
        (
            "restart = \"allways\"",
            "2:11: restart: \"allways\" is not known; did you mean \"always\"?",
        ),
        (
            "net.mode = \"bridge\"",
            "2:12: net.mode: \"bridge\" is not known; write one of \"private\", \"native\", \"none\", \"host\"",
        ),
        ("net.publish = [\"80:80\", \"81\"]", "2:25: net.publish: \"81\" names only one port"),
        ("net.publish = [\n  \"80:80\",\n  \"81:0\",\n]", "4:3: net.publish: \"0\" is not a port"),
        ("mounts = [\"/a:b\"]", "2:11: mounts: \"b\" is not an absolute path"),
        ("env.\"A B\" = \"x\"", "2:13: env.A B: \"A B\" cannot name a variable"),
        (
            "rlimits.nofiles = 3",
            "2:19: rlimits.nofiles: there is no resource limit \"nofiles\"; did you mean \"nofile\"?",
        ),
        (
            "services.\"a b\".command = [\"x\"]",
            "2:26: services.a b.command: \"a b\" cannot name a service",
        ),
        ("command = []", "2:11: command: names no program"),
        ("command = [\"\"]", "2:12: command: names no program"),
        ("base2 = 1", "2:1: unknown key base2; did you mean base?"),
    ]);
}

#[test]
fn conflicts() {
    refused(&[
        (
            "net.mode = \"none\"\nnet.publish = [\"80:80\"]",
            "3:15: net.publish conflicts with net.mode = \"none\": the guest has no network",
        ),
        (
            "net.publish = [\"80:80\"]\nnet.mode = \"host\"",
            "2:15: net.publish conflicts with net.mode = \"host\": the guest's ports are the host's",
        ),
        (
            "net = { mode = \"none\", address = [\"10.0.0.1\"] }",
            "2:34: net.address conflicts with net.mode",
        ),
        (
            "net = { mode = \"none\", dns = [\"10.0.0.1\"] }",
            "2:30: net.dns conflicts with net.mode",
        ),
        ("init = \"system\"\ncommand = [\"/bin/true\"]", "3:11: command needs init = \"minimal\""),
        (
            "init = \"system\"\nservices.a.command = [\"/bin/true\"]",
            "3:22: services.a.command needs init = \"minimal\"",
        ),
        (
            "command = [\"a\"]\nservices.a.command = [\"b\"]",
            "2:11: command and services exclude each other",
        ),
        ("services.a.restart = \"always\"", "2:22: services.a.command is missing"),
        ("memory.swap = \"1G\"", "2:15: memory.swap is swap beyond memory.limit, which is not set"),
        (
            "memory.lock = 1\nrlimits.memlock = 1",
            "3:19: rlimits.memlock and memory.lock are the same limit",
        ),
        (
            "net.address = [\"10.0.0.1\", \"10.0.0.2\"]",
            "2:28: net.address: a guest has at most one IPv4 address",
        ),
        (
            "net.address = [\"fd00::1\", \"10.0.0.1\", \"fd00::2\"]",
            "2:39: net.address: a guest has at most one IPv6 address",
        ),
        (
            "net = { mode = \"native\", publish = [\"80:80\"] }",
            "2:36: net.publish conflicts with net.mode = \"native\"",
        ),
        (
            "net = { mode = \"native\", peers = false }",
            "2:34: net.peers = false is for guests that have their own network stack",
        ),
        (
            "net = { mode = \"host\", peers = false }",
            "2:32: net.peers = false is for guests that have their own network stack",
        ),
        (
            "net = { mode = \"native\", address = [\"10.0.0.1\", \"10.0.0.1\"] }",
            "2:49: net.address: the same address is given twice",
        ),
        ("net.address = [\"127.0.0.1\"]", "2:16: net.address: a loopback address reaches nobody"),
        (
            "net.publish = [\"80:80\", \"80:81\"]",
            "2:25: net.publish: the same host port is published twice",
        ),
        (
            "net.publish = [\"1-5:1-5\", \"5:9\"]",
            "2:15: net.publish: the same host port is published twice",
        ),
        ("mounts = [\"/a:/x\", \"/b:/x/\"]", "2:20: mounts: two mounts have the same target"),
        (
            "devices = [\"/dev/fuse\", \"/dev/fuse\"]",
            "2:25: devices: the same device is given twice",
        ),
    ]);
    // Not contradictions: one port for each protocol and for each address.
    super::good("net.publish = [\"80:80\", \"80:80/udp\", \"127.0.0.1:80:81\"]");
    super::good("net = { mode = \"host\", dns = [\"10.0.0.1\"] }");
    super::good("net = { mode = \"none\", publish = [] }");
}

#[test]
fn networks_of_the_host() {
    const ONE: &str = "lan = [\"bridge:br0@192.0.2.7/24\"]";
    let nine = format!("net.lan = [{}]", ["\"bridge:br0\""; 9].join(", "));
    let addresses: Vec<String> = (1..10).map(|n| format!("192.0.2.{n}/24")).collect();
    let many = format!("net.lan = [\"macvlan:eth0\", \"bridge:br0@{}\"]", addresses.join("@"));
    let cases = [
        (
            format!("net = {{ mode = \"host\", {ONE} }}"),
            "2:30: net.lan is for guests that have their own",
        ),
        (
            format!("net = {{ mode = \"native\", {ONE} }}"),
            "2:32: net.lan is for guests that have their",
        ),
        (nine, "2:124: net.lan: a guest has at most 8 of them"),
        (many, "2:28: net.lan: an interface has at most 8 addresses of each family"),
        (format!("[net]\n{ONE}\ndeny = [\"out\"]"), "4:8: net.deny conflicts with net.lan"),
        (
            "net.lan = [\"bridge:br0@192.0.2.7/24\", \"bridge:br1@192.0.2.7/25\"]".to_owned(),
            "2:39: net.lan: the address 192.0.2.7 is given twice",
        ),
        (
            format!("[net]\n{ONE}\ngateway = [\"192.0.2.1\"]"),
            "4:11: net.gateway is for guests that have no network but net.lan",
        ),
        (
            format!("[net]\nmode = \"none\"\n{ONE}\ngateway = [\"192.0.3.1\"]"),
            "5:12: net.gateway: no address in net.lan reaches 192.0.3.1",
        ),
        (
            format!("[net]\nmode = \"none\"\n{ONE}\ngateway = [\"192.0.2.7\"]"),
            "5:12: net.gateway: no address in net.lan reaches 192.0.2.7",
        ),
        (
            format!("[net]\nmode = \"none\"\n{ONE}\ngateway = [\"192.0.2.1\", \"192.0.2.2\"]"),
            "5:25: net.gateway: a guest has at most one of each family",
        ),
    ];
    refused(&cases.each_ref().map(|(text, told)| (text.as_str(), *told)));
    super::good(&format!(
        "[net]\nmode = \"none\"\n{ONE}\ngateway = [\"192.0.2.1\"]\ndns = [\"192.0.2.53\"]"
    ));
}

#[test]
fn broken_toml() {
    refused(&[
        ("memory.limit = \"512M", "2:"),
        ("memory.limit = 512M", "2:"),
        ("memory.limit =", "2:"),
        ("[memory\nlimit = 1", "2:"),
        ("protect = true\nprotect = false", "3:1: duplicate key"),
        ("[net]\n[net]", "3:"),
    ]);
}

#[test]
fn a_base_must_be_given() {
    for text in ["", "# nothing\n", "init = \"minimal\""] {
        let error = parse(text, "guest.toml").unwrap_err().to_string();
        assert!(error.starts_with("guest.toml:1:1: base is missing"), "{error}");
    }
    let error = parse("base = \"a/b\"", "f").unwrap_err().to_string();
    assert!(error.starts_with("f:1:8: base: \"a/b\" is not a valid name"), "{error}");
}

#[test]
fn the_excerpt_points_at_the_place() {
    let text = "base = \"b\"\n\n[memory]\n\tlimit = \"512X\" # ä\n";
    let error = parse(text, "f").unwrap_err();
    let expected = "  |\n4 |  limit = \"512X\" # ä\n  |          ^^^^^^";
    assert_eq!(error.excerpt(), Some(expected));
    let wide = "base = \"b\"\nhostname = \"ää\"\n";
    let expected = "  |\n2 | hostname = \"ää\"\n  |            ^^^^";
    assert_eq!(parse(wide, "f").unwrap_err().excerpt(), Some(expected));
    assert!(
        parse("base = \"b\"\r\nzzz = 1\r\n", "f").unwrap_err().to_string().starts_with("f:2:1")
    );
}

#[test]
fn no_text_makes_the_parser_panic() {
    let text = "base = \"b\"\nnet.publish = [\"8080:80/tcp\", \"é:1\"]\n[memory]\nlimit = \"1.5G\" # ü\n[services.a]\ncommand = [\"x\"]\n";
    for cut in (0..=text.len()).filter(|i| text.is_char_boundary(*i)) {
        // Every prefix, and every text with one piece left out or doubled, is read or refused.
        let (left, right) = text.split_at(cut);
        let _ = parse(left, "f");
        let _ = parse(right, "f");
        for insert in ["\"", "[", "=", ".", "\n", "\0", "\u{1F600}", "#", "{"] {
            let _ = parse(&format!("{left}{insert}{right}"), "f");
        }
    }
}

#[test]
fn a_damaged_file_is_shown_in_part() {
    let nothing = "\0".repeat(3 << 20);
    for text in [nothing.clone(), format!("base = \"b\"\nhostname = \"{nothing}\"")] {
        let error = parse(&text, "f").map(|_| ()).expect_err("damaged");
        let all = format!("{error}{}", error.excerpt().unwrap_or_default());
        assert!(all.chars().count() < 2000 && !all.contains('\0'), "{} bytes", all.len());
    }
    let long = format!("base = \"b\"\nhostname = \"{}\"", "x".repeat(500));
    let error = parse(&long, "f").map(|_| ()).expect_err("too long");
    let excerpt = error.excerpt().expect("of a file").to_owned();
    let (line, carets) = excerpt.rsplit_once('\n').expect("carets are below the line");
    assert!(line.ends_with("xxx...") && carets.ends_with("^^^"), "{excerpt}");
    assert_eq!(line.lines().last().map(str::len), Some(carets.len()), "{excerpt}");
}

#[test]
fn nothing_is_bound_where_holms_mounts_are() {
    for target in
        ["/proc", "/proc/sys", "/sys", "/sys/x", "/dev", "/dev/pts", "/dev//.holm/x", "/run"]
    {
        let error = bad(&format!("mounts = [\"/srv:{target}:ro\"]"));
        assert!(error.contains("in a guest is Holm's"), "{error}");
    }
    for target in ["/dev/log", "/run/socket", "/processes", "/system"] {
        super::good(&format!("mounts = [\"/srv:{target}\"]"));
    }
}

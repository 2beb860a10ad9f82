//! The command line itself: what needs neither root nor a guest.

use std::process::{Command, Output};

/// Runs holm with a root that nothing can make, not even root.
fn holm(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holm"))
        .args(args)
        .env("HOLM_ROOT", "/dev/null/holm")
        .env_remove("NO_COLOR")
        .output()
        .expect("holm runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command line is refused with status 2 and these words.
fn refused(args: &[&str], words: &[&str]) {
    let output = holm(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
    assert!(output.stdout.is_empty(), "{args:?}");
    for word in words {
        assert!(err(&output).contains(word), "{args:?}: no {word:?} in\n{}", err(&output));
    }
}

/// The verbs that `holm --help` lists.
fn verbs() -> Vec<String> {
    let help = out(&holm(&["--help"]));
    let lines = help.lines().take_while(|l| *l != "Options:");
    let verbs: Vec<String> = lines
        .filter(|l| l.starts_with("  "))
        .filter_map(|l| l.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(verbs.len() > 15, "{help}");
    verbs
}

#[test]
fn every_verb_is_explained_with_examples() {
    for verb in verbs() {
        for args in [["help", &verb], [&verb, "--help"], [&verb, "-h"]] {
            let output = holm(&args);
            assert_eq!(output.status.code(), Some(0), "{args:?}");
            let text = out(&output);
            let usage = format!("Usage: holm {verb}");
            let example = format!("\n  holm {verb}");
            for word in [usage.as_str(), "Examples:", &example] {
                assert!(text.contains(word), "{args:?}: no {word:?} in\n{text}");
            }
        }
    }
}

#[test]
fn help_tells_every_key() {
    let text = out(&holm(&["help", "set"]));
    for key in holm::config::keys() {
        assert!(text.contains(key.name), "{}", key.name);
    }
}

#[test]
fn help_of_an_inner_verb() {
    assert!(out(&holm(&["help", "base", "import"])).contains("debootstrap:SUITE"));
    refused(&["help", "base", "nonsense"], &["there is no holm base nonsense"]);
    refused(&["help", "strat"], &["did you mean start?"]);
}

#[test]
fn nothing_and_version() {
    refused(&[], &["Usage: holm"]);
    refused(&["-q"], &["Usage: holm"]);
    let version = format!("holm {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(out(&holm(&["--version"])), version);
    assert_eq!(out(&holm(&["--root", "/x", "-V"])), version);
    assert_eq!(out(&holm(&["-h"])), out(&holm(&["help"])));
}

#[test]
fn unknown_verbs() {
    refused(&["strat"], &["holm has no verb \"strat\"; did you mean start?"]);
    refused(&["--json=1", "lss"], &["did you mean ls?"]);
    refused(&["--root", "start", "frobnicate"], &["\"frobnicate\"; holm --help lists them"]);
}

#[test]
fn words_of_other_tools_name_ours() {
    let cases = [
        ("ps", "holm ls"),
        ("pull", "holm base import"),
        ("images", "holm base ls"),
        ("config", "holm set"),
        ("update", "holm set"),
        ("version", "holm --version"),
    ];
    for (word, ours) in cases {
        refused(&[word], &[ours]);
    }
    let same = [
        ("list", "ls"),
        ("delete", "rm"),
        ("remove", "rm"),
        ("pause", "freeze"),
        ("unpause", "thaw"),
        ("resume", "thaw"),
        ("info", "status"),
        ("show", "inspect"),
        ("mv", "rename"),
        ("reboot", "restart"),
        ("shutdown", "stop"),
    ];
    for (word, ours) in same {
        let output = holm(&[word, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{word}");
        assert!(out(&output).contains(&format!("Usage: holm {ours}")), "{word}: {}", out(&output));
    }
}

#[test]
fn wrong_usage() {
    refused(&["start"], &["<NAME|--all|--autostart>"]);
    refused(&["start", "--all", "web"], &["cannot be used with"]);
    refused(&["stop", "--timeout", "5d", "web"], &["\"d\" is not a unit of time"]);
    refused(&["ls", "--frob"], &["--frob"]);
    refused(&["kill", "--signal", "FOO", "web"], &["\"FOO\" is not a signal"]);
    refused(&["rename", "web"], &["<NEW>"]);
    refused(&["set", "web"], &["<KEY=VALUE>"]);
    refused(&["ls", "--color", "blue"], &["blue"]);
    refused(&["run", "--base", "b"], &["run needs a command", "holm launch"]);
    refused(&["run", "-d", "--base", "b", "true"], &["holm launch"]);
    refused(&["run", "true"], &["no base is given"]);
    refused(&["create", "web", "--base", "b", "stray"], &["stray"]);
}

#[test]
fn settings_on_the_command_line_are_checked() {
    let cases: [(&[&str], &str); 8] = [
        (&["--set", "memory.limt=1G"], "did you mean memory.limit?"),
        (&["--set", "memory.limit"], "write KEY=VALUE"),
        (&["-m", "1MB"], "write 1M (1024)"),
        (&["--cpu", "half"], "is not an amount of CPU time"),
        (&["-p", "80"], "names only one port"),
        (&["-v", "/a:b"], "not an absolute path"),
        (&["-e", "A"], "write NAME=VALUE"),
        (&["--init", "systemd"], "did you mean \"system\"?"),
    ];
    for (options, words) in cases {
        let args = [&["create", "web", "--base", "b"], options].concat();
        refused(&args, &[words]);
    }
}

#[test]
fn errors_in_json() {
    let output = holm(&["--json", "strat"]);
    assert_eq!(output.status.code(), Some(2));
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(error["error"]["message"].as_str().expect("a message").contains("did you mean start?"));
    assert_eq!(error["version"], 1);
    assert_eq!(error["error"]["code"], "verb-unknown");
    assert_eq!(error["error"]["object"], "strat");
    let cases: [(&[&str], &str, &str); 9] = [
        (&["rename", "web"], "<NEW>", "not provided: <NEW>"),
        (&["start", "--all", "web"], "--all", "cannot be used with"),
        (&["ls", "--frob"], "--frob", "--frob"),
        (&["ls", "--columns", "name,size"], "--columns <COLUMN,...>", "there are: name, state"),
        (&["stop", "--timeout", "5d", "web"], "--timeout <TIME>", "5d"),
        (&["base", "lss"], "lss", "lss"),
        (&["run", "--base", "b"], "", "run needs a command"),
        (&["run", "true"], "--base", "no base is given"),
        (&[], "", "no verb is given"),
    ];
    for (args, object, words) in cases {
        let output = holm(&[&["--json"][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}: {}", err(&output));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let error = &told["error"];
        assert_eq!(error["code"], "usage", "{told}");
        assert_eq!(error["object"].as_str().unwrap_or(""), object, "{told}");
        assert!(error["message"].as_str().expect("a message").contains(words), "{told}");
        assert!(error["remedy"].is_string() || object.is_empty(), "{told}");
    }
    let output = holm(&["set", "web", "memory.limit", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["name"], &told["error"]["code"]), (&"web".into(), &"change-invalid".into()));
    let output = holm(&["run", "--base", "b", "--", "prog", "--json"]);
    assert!(output.stdout.is_empty(), "the command's own option is not holm's");
}

#[test]
fn colours_are_for_terminals() {
    assert!(!err(&holm(&["help", "strat"])).contains('\x1b'));
    assert!(
        err(&holm(&["help", "strat", "--color", "always"])).contains("\x1b[1;31merror:\x1b[0m")
    );
}

#[test]
fn completion_scripts() {
    for shell in ["bash", "zsh", "fish"] {
        let output = holm(&["completion", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(out(&output).contains("holm complete --"));
    }
    refused(&["completion", "tcsh"], &["tcsh"]);
    let script = out(&holm(&["completion", "bash"]));
    let checked = Command::new("bash").args(["-n", "-c", &script]).output().expect("bash runs");
    assert!(checked.status.success(), "{}", err(&checked));
}

#[test]
fn completion_knows_verbs_options_and_keys() {
    let words = |typed: &[&str]| {
        let output = holm(&[&["complete", "--"], typed].concat());
        assert_eq!(output.status.code(), Some(0), "{typed:?}");
        out(&output)
    };
    assert_eq!(words(&["sta"]), "start\nstatus\nstat\n");
    assert_eq!(words(&["set", "web", "memory.l"]), "memory.limit=\nmemory.lock=\n");
    assert_eq!(words(&["create", "web", "--set", "cpu.c"]), "cpu.cap=\n");
    assert_eq!(words(&["unset", "web", "pids"]), "pids.limit\n");
    assert_eq!(words(&["base", "im"]), "import\n");
    assert_eq!(words(&["stop", "--ti"]), "--timeout\n");
    assert_eq!(words(&["kill", "--si"]), "--signal\n");
    assert_eq!(words(&["kill", "--signal", "US"]), "USR1\nUSR2\n");
    assert_eq!(words(&["stop", ""]), "", "there is no root, and none is made");
    assert_eq!(words(&["exec", "web", "--", "l"]), "");
    assert_eq!(words(&["exec", "web", "ls", "-"]), "");
    assert_eq!(words(&["doctor", "kernel", "over"]), "overlay\n");
    assert_eq!(words(&["completion", ""]), "bash\nzsh\nfish\n");
    assert_eq!(words(&["create", "web", "--init", ""]), "system\nminimal\n");
    assert_eq!(words(&["run", "--network", "p"]), "private\n");
    assert_eq!(words(&["ls", "--color", "a"]), "auto\nalways\n");
    assert_eq!(words(&["--root", "/x", "sta"]), "start\nstatus\nstat\n");
    assert_eq!(words(&["stop", "--root", "=", "/x", "-q", "--ti"]), "--timeout\n");
    assert!(!words(&[""]).contains("monitor-ended"));
    assert_eq!(
        words(&["ls", "--columns", "name,memory-"]),
        "name,memory-limit\nname,memory-peak\n"
    );
    assert_eq!(words(&["ls", "--sort", "-memory-l"]), "-memory-limit\n");
    assert_eq!(words(&["ls", "--filter", "sta"]), "state=\n");
    assert_eq!(words(&["set", "web", "en"]), "env.\n");
    assert_eq!(words(&["set", "web", "net.mode=p"]), "net.mode=private\n");
    assert_eq!(words(&["set", "web", "protect="]), "protect=true\nprotect=false\n");
    assert_eq!(words(&["set", "web", "stop.signal=US"]), "stop.signal=USR1\nstop.signal=USR2\n");
    assert_eq!(words(&["set", "web", "base=d"]), "", "no base is made up, and no key is offered");
    assert_eq!(words(&["create", "web", "--set", "restart=on"]), "restart=on-failure\n");
    assert_eq!(words(&["create", "web", "--net=h"]), "--net=host\n");
    // As bash divides them: what is completed is the last word alone.
    assert_eq!(words(&["set", "web", "net.mode", "=", "p"]), "private\n");
    assert_eq!(words(&["set", "web", "net.mode", "="]), "private\nnative\nnone\nhost\n");
    assert_eq!(words(&["set", "web", "net.mode", "=", "none", "protect", "=", "t"]), "true\n");
    assert_eq!(words(&["create", "web", "--net", "=", "h"]), "host\n");
}

#[test]
fn the_manual_has_all_verbs_and_keys() {
    let page = out(&holm(&["man"]));
    for part in [
        ".SH FILES\n",
        ".SH ENVIRONMENT\n",
        ".SH EXIT STATUS\n",
        ".B \\-b, \\-\\-base, \\-\\-image",
        ".B \\-n, \\-\\-lines, \\-\\-tail",
        "Also: list.",
        "/var/lib/holm",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.starts_with(".TH HOLM 1"));
    for verb in verbs() {
        assert!(page.contains(&format!(".SS \"holm {verb}\"")), "{verb}");
    }
    for key in holm::config::keys() {
        assert!(page.contains(&format!(".B {}\n", key.name.replace('-', "\\-"))), "{}", key.name);
    }
    let (_, end) = page.split_once(".SH EXIT STATUS").expect("a section");
    let variables = ["HOLM_ROOT", "HOLM_IMPORT", "VISUAL, EDITOR", "NO_COLOR"];
    for word in variables {
        assert!(end.contains(&format!(".TP\n.B {word}\n")), "{word}: {end}");
    }
    assert!(end.contains("doctor ends with 1"), "{end}");
}

#[test]
fn a_mistyped_option_is_no_command() {
    refused(
        &["run", "--base", "b", "--memroy", "1G", "--", "id"],
        &["holm run has no option --memroy", "did you mean --memory?"],
    );
    refused(&["run", "--base", "b", "--memroy=1G", "id"], &["did you mean --memory?"]);
    refused(&["exec", "g", "--usr", "joe", "id"], &["holm exec has no option --usr", "--user"]);
}

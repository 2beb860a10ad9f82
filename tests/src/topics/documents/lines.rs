//! The command lines that stand in blocks.

use super::guests::prepare_files;
use super::reader::Reader;
use super::{DOCUMENTS, blocks};
use crate::sandbox::Sandbox;

/// How lines begin that are not run here, and why.
const NOT_RUN: [(&str, &str); 10] = [
    ("git clone", "fetches the sources"),
    ("make build", "has built what is tested"),
    ("make install", "`install` does it, below another directory"),
    ("systemctl enable", "`install` does it, in a guest"),
    ("iptables ", "`firewalls` does it, in a network namespace"),
    ("ip address add", "`net::native` does it, in a network namespace"),
    ("holm launch --net native", "with that address, likewise"),
    ("holm launch --net none --set net.lan", "`net::lan` does it, on a bridge"),
    ("for base in", "`start_again_from_nothing` does it, in another root"),
    ("error: ", "`mistakes` compares it"),
];

pub fn every_command_line_runs(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    prepare_files(sandbox, &reader);
    reader.has_debian();
    for (document, text) in DOCUMENTS {
        let lines = command_lines(text);
        // A document that makes the guest that it speaks of begins with that.
        if !lines.is_empty() && !lines.iter().any(|line| line.starts_with("holm launch web")) {
            sandbox.holm(&["launch", "--wait", "web", "--base", "debian13"]).ok();
        }
        for line in lines {
            let is_lacking = line.contains("/dev/fuse") && !std::fs::exists("/dev/fuse").unwrap();
            if !is_lacking {
                reader.follow(document, &line);
            }
        }
        sandbox.holm(&["rm", "--force", "--all"]).ok();
    }
}

/// The lines of the blocks that are run; one that ends with `\` goes on in the next.
fn command_lines(text: &str) -> Vec<String> {
    let is_run = |block: &&&str| !NOT_RUN[9..].iter().any(|(begin, _)| block.starts_with(begin));
    let blocks = blocks(text, "");
    let blocks = blocks.iter().filter(is_run).map(|block| block.replace("\\\n  ", ""));
    let lines: Vec<String> =
        blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let wanted = |line: &String| {
        !line.trim().is_empty() && !NOT_RUN.iter().any(|(begin, _)| line.starts_with(begin))
    };
    lines.into_iter().filter(wanted).collect()
}

/// The last block of troubleshooting.md, in a root of its own: nothing is left of it.
pub fn start_again_from_nothing(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    let (_, text) = DOCUMENTS.iter().find(|(name, _)| *name == "troubleshooting.md").unwrap();
    let block = blocks(text, "").pop().expect("the last block");
    let lines: Vec<_> = block.lines().map(|line| line.split("   ").next().unwrap()).collect();
    let script = format!(
        "export HOLM_ROOT=$HOME/again
        holm base import busybox busybox && holm launch box --base busybox
        {}
        holm ls -q; holm base ls -q; ls /run/holm/instances/ -l | grep -F $HOLM_ROOT",
        lines.join("\n")
    );
    let outcome = reader.shell(&script);
    let left = outcome.stdout.split_once('\n').map(|(_, rest)| rest);
    assert_eq!((left, outcome.stderr.as_str()), (Some(""), ""), "nothing is left\n{outcome}");
}

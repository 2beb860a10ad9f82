//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

pub const USAGE: &str = "\
usage: holm-bench [-n ROUNDS] [--guests N] [--memory MIB] [--holm FILE] [--import FILE]
                  [--before FILE] [--scratch DIR] [--out FILE] [SECTION...]
  -n         rounds of each table (100); 5 shows whether everything works
  --guests   how many guests fill the machine in the sections on fleets (200)
  --memory   how much memory they have together in fleet-parallel, file cache included
  --holm     the holm command to measure (target/x86_64-unknown-linux-musl/release/holm)
  --import   the holm-import program (target/release/holm-import)
  --before   another build of holm, with its holm-import beside it: measured in the same rounds,
             in rows of its own with the ratio of its time to that of --holm; so is --holm
             itself once more, which shows what the machine cannot tell apart
  --scratch  a directory for roots and images, kept between runs (target/bench)
  --out      the report (docs/benchmarks/start.md)
Sections: start trace exec boot memory slab many disk, which are measured when none is named;
fleet fleet-parallel growth, which fill the machine, and fleet-disk roots processes copy-up import
unify-cost network hooks modes datagrams apache rates; none of these when none is named, and with a report of their own (--out).
Wants root, and a machine on which nothing else runs.";

pub struct Options {
    pub rounds: usize,
    pub guests: usize,
    pub memory: Option<u64>,
    pub holm: PathBuf,
    pub import: PathBuf,
    pub before: Option<PathBuf>,
    pub scratch: PathBuf,
    pub out: PathBuf,
    pub sections: Vec<String>,
}

impl Options {
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            rounds: 100,
            guests: 200,
            memory: None,
            holm: "target/x86_64-unknown-linux-musl/release/holm".into(),
            import: "target/release/holm-import".into(),
            before: None,
            scratch: "target/bench".into(),
            out: "docs/benchmarks/start.md".into(),
            sections: Vec::new(),
        };
        let mut args = args;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value"));
            match arg.as_str() {
                "-n" => options.rounds = number("-n", &value()?)?,
                "--guests" => options.guests = number("--guests", &value()?)?,
                "--memory" => options.memory = Some(number("--memory", &value()?)?),
                "--holm" => options.holm = value()?.into(),
                "--import" => options.import = value()?.into(),
                "--before" => options.before = Some(value()?.into()),
                "--scratch" => options.scratch = value()?.into(),
                "--out" => options.out = value()?.into(),
                flag if flag.starts_with('-') => return Err(format!("{flag}: unknown option")),
                section => options.sections.push(section.to_owned()),
            }
        }
        if options.rounds == 0 {
            return Err("-n 0 measures nothing".to_owned());
        }
        Ok(options)
    }
}

fn number<T: FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option} {text}: a number"))
}

//! The tour of README.md, with what it prints.

use super::reader::Reader;
use super::{README, blocks, inline};
use crate::sandbox::Sandbox;

pub fn the_tour_prints_what_the_readme_shows(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    let tour = blocks(README, "console").concat();
    let steps: Vec<&str> = tour.split("# ").filter(|step| !step.is_empty()).collect();
    assert_eq!(steps.len(), 10, "a tour in ten commands");
    for step in steps {
        let (line, shown) = step.split_once('\n').unwrap_or((step, ""));
        if line == "holm stop web" {
            nginx_answers(&reader);
        }
        let outcome = reader.shell(&reader.here(line));
        assert!(outcome.stderr.is_empty(), "{line}\n{outcome}");
        assert_eq!(without_numbers(&outcome.stdout), without_numbers(shown), "{line}\n{outcome}");
        if line.starts_with("holm launch web") {
            reader.wait_until_ready();
        }
    }
}

/// The sentence below the tour, true while web runs.
fn nginx_answers(reader: &Reader) {
    let lines: Vec<_> = inline(README).filter(|line| line.starts_with("curl ")).collect();
    assert_eq!(lines.len(), 2, "by the published port and by its address");
    for line in lines {
        let outcome = reader.shell(&reader.here(line)).ok();
        assert!(outcome.stdout.contains("Welcome to nginx!"), "{outcome}");
    }
}

/// What differs from machine to machine: numbers, addresses, and how wide a table is.
fn without_numbers(text: &str) -> Vec<String> {
    let number = |word: &str| {
        let mut plain = String::new();
        for c in word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }) {
            if c != '0' || !plain.ends_with('0') {
                plain.push(c);
            }
        }
        if plain.starts_with("fd0:") {
            return "address".to_owned();
        }
        // A guest that has just started has sent some hundred bytes, or a thousand, and received a
        // packet or several.
        match plain.as_str() {
            "packet" => "packets".to_owned(),
            _ => plain.replace("0.0", "0").replace("0K", "0"),
        }
    };
    let line = |line: &str| line.split_whitespace().map(number).collect::<Vec<_>>().join(" ");
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

//! Tests of the whole: from text to [`Config`], to errors, and back to text.

use super::*;

/// Parses `text` below a base.
fn good(text: &str) -> Config {
    parse(&format!("base = \"debian13\"\n{text}"), "guest.toml")
        .unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The error of `text` below a base, as `line:column: message`.
fn bad(text: &str) -> String {
    let whole = format!("base = \"b\"\n{text}");
    let error = parse(&whole, "f").expect_err(text).to_string();
    error.strip_prefix("f:").expect("the origin comes first").to_owned()
}

#[test]
fn dotted_keys_and_tables_are_the_same() {
    let dotted = good("memory.limit = \"512M\"\nmemory.swap = 4096\ncpu.cap = 1.5");
    let tables = good("[memory]\nlimit = \"512M\"\nswap = \"4K\"\n[cpu]\ncap = \"150%\"");
    assert_eq!(dotted, tables);
    assert_eq!(dotted.memory.limit, Some(512 << 20));
}

#[test]
fn errors_say_where_and_what_was_meant() {
    assert_eq!(
        bad("[memory]\nlimt = 3"),
        "3:1: unknown key memory.limt; did you mean memory.limit?"
    );
}

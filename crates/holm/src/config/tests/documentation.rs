//! docs/config.md contains the table of keys that the code has.

use std::path::Path;

use super::*;

/// The table as it must stand in the document.
fn table() -> String {
    let mut text =
        String::from("| key | value | default | takes effect | |\n|---|---|---|---|---|\n");
    for key in keys() {
        let effect = match key.effect {
            Effect::Live => "at once",
            Effect::NextStart => "next start",
        };
        let row = [&format!("`{}`", key.name), &key.kind.takes(), key.default, effect, key.help];
        let row = row.map(|cell| cell.replace('|', "\\|"));
        text.extend(["| ", &row.join(" | "), " |\n"]);
    }
    text
}

#[test]
fn the_document_tells_the_truth() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let text = std::fs::read_to_string(&path).expect("docs/config.md");
    let (begin, end) = ("<!-- keys: made by the code -->\n", "<!-- end of keys -->");
    let (head, rest) = text.split_once(begin).expect("the mark before the table");
    let (old, tail) = rest.split_once(end).expect("the mark after the table");
    if std::env::var_os("HOLM_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{begin}{}{end}{tail}", table()))
            .expect("docs/config.md");
    } else {
        assert_eq!(
            old,
            table(),
            "run the tests with HOLM_WRITE_DOCS=1 to write docs/config.md anew"
        );
    }
}

#[test]
fn the_example_in_the_document_is_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let text = std::fs::read_to_string(path).expect("docs/config.md");
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|t| t.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        parse(example, "docs/config.md").unwrap_or_else(|e| panic!("{e}\n{example}"));
    }
}

#[test]
fn every_key_is_found_by_its_name_and_explained() {
    for key in keys() {
        let name = key.name.replace('*', "nofile");
        assert_eq!(find(&name).map(|k| k.name), Some(key.name));
        assert!(!key.help.is_empty() && !key.default.is_empty(), "{}", key.name);
        assert!(!key.help.ends_with('.'), "{}", key.name);
    }
}

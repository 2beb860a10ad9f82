//! Words of other tools that are no verbs here.

use holm::config::nearest;

use crate::verb::Table;

/// Words, and what to type instead.
const INSTEAD: [(&str, &str); 23] = [
    ("ps", "holm ls for guests, holm exec NAME ps for what runs in one"),
    ("pull", "holm base import NAME SOURCE"),
    ("import", "holm base import NAME SOURCE"),
    ("load", "holm base import NAME FILE.tar"),
    ("image", "holm base"),
    ("images", "holm base ls"),
    ("rmi", "holm base rm NAME"),
    ("config", "holm set NAME KEY=VALUE, holm inspect NAME"),
    ("update", "holm set NAME KEY=VALUE"),
    ("network", "holm set NAME net.mode=... (holm help set lists all keys)"),
    ("port", "holm inspect NAME net.publish"),
    ("profile", "holm create NAME --base BASE --set KEY=VALUE"),
    ("build", "holm base import NAME FOLDER"),
    ("commit", "holm base import NAME FOLDER"),
    ("volume", "holm set NAME mounts+=SOURCE:TARGET"),
    ("mount", "holm set NAME mounts+=SOURCE:TARGET"),
    ("file", "holm exec NAME cat FILE"),
    ("up", "holm launch NAME --base BASE, or holm start NAME"),
    ("down", "holm stop NAME"),
    ("signal", "holm kill --signal SIGNAL NAME"),
    ("init", "holm create NAME --base BASE"),
    ("version", "holm --version"),
    ("check", "holm doctor"),
];

/// What to type instead of a word of another tool.
pub fn instead(word: &str) -> Option<&'static str> {
    INSTEAD.iter().find(|(w, _)| *w == word).map(|(_, instead)| *instead)
}

/// The sentence for a word that is no verb.
pub fn unknown(table: Table, word: &str) -> String {
    if let Some(instead) = instead(word) {
        return format!("holm has no verb {word:?}; use {instead}");
    }
    let names = table.all().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)).copied();
    match nearest(word, names) {
        Some(near) => format!("holm has no verb {word:?}; did you mean {near}?"),
        None => format!("holm has no verb {word:?}; holm --help lists them"),
    }
}

//! Verbs of other tools, and what Holm has for them.

use holm::Code;
use holm::config::nearest;

use crate::failure::Failure;
use crate::verb::Table;

/// A verb of another tool, and what to type instead.
const EQUIVALENTS: [(&str, &str); 23] = [
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
    ("build", "holm base import NAME DIR"),
    ("commit", "holm base import NAME DIR"),
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

/// What to type instead of a verb of another tool.
pub fn equivalent(verb: &str) -> Option<&'static str> {
    EQUIVALENTS.iter().find(|(v, _)| *v == verb).map(|(_, equivalent)| *equivalent)
}

/// The error of a verb that Holm does not have.
pub fn unknown_verb(table: Table, verb: &str) -> Failure {
    let names = table.all().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)).copied();
    let remedy = match (equivalent(verb), nearest(verb, names)) {
        (Some(equivalent), _) => format!("use {equivalent}"),
        (None, Some(near)) => format!("did you mean {near}?"),
        (None, None) => "holm --help lists them".to_owned(),
    };
    Failure::usage(format!("holm has no verb {verb:?}; {remedy}"))
        .code(Code::VerbUnknown)
        .object(verb)
        .remedy(remedy)
}

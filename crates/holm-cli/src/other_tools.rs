//! Verbs of other tools, and what Holm has for them.

use holm::Code;
use holm::config::nearest;

use crate::failure::Failure;
use crate::verb::Table;

/// A verb of another tool, and what to type instead.
const EQUIVALENTS: [(&str, &str); 40] = [
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
    ("mount", "holm set NAME mounts+=SOURCE:TARGET"),
    ("file", "holm exec NAME cat FILE"),
    ("up", "holm launch NAME --base BASE, or holm start NAME"),
    ("down", "holm stop NAME"),
    ("signal", "holm kill --signal SIGNAL NAME"),
    ("init", "holm create NAME --base BASE"),
    ("version", "holm --version"),
    ("check", "holm doctor"),
    ("cp", COPY),
    ("copy-to", COPY),
    ("copy-from", COPY),
    ("push", COPY),
    ("export", ARCHIVE),
    ("export-tar", ARCHIVE),
    ("save", ARCHIVE),
    ("journal", "holm logs NAME for the console, holm exec NAME journalctl for systemd's journal"),
    ("enable", "holm set NAME autostart=true"),
    ("disable", "holm set NAME autostart=false"),
    ("autostart", "holm set NAME autostart=true; holm start --autostart starts those"),
    ("clean", "holm rm NAME, holm base rm NAME, holm gc"),
    ("upgrade", "holm exec NAME apt-get upgrade for what is in a guest, holm set NAME base=BASE"),
    ("terminate", "holm kill NAME"),
    ("list-images", "holm base ls"),
    ("bind", "holm set NAME mounts+=SOURCE:TARGET"),
    ("device", "holm set NAME devices+=/dev/NAME"),
    ("publish", "holm set NAME net.publish+=HOST:GUEST"),
];

const COPY: &str = "holm exec NAME cat FILE > COPY, and holm exec NAME tee COPY < FILE";
const ARCHIVE: &str = "holm exec NAME tar -c -C / --one-file-system . > FILE.tar";

/// A verb of another tool for which Holm has nothing yet: what is missing, and what to do today.
const MISSING: [(&str, &str); 15] = [
    ("clone", NO_COPY),
    ("copy", NO_COPY),
    ("snapshot", NO_SNAPSHOT),
    ("snapshots", NO_SNAPSHOT),
    ("rollback", NO_SNAPSHOT),
    ("revert", NO_SNAPSHOT),
    ("backup", NO_SNAPSHOT),
    ("checkpoint", NO_CHECKPOINT),
    ("restore", NO_CHECKPOINT),
    ("migrate", NO_CHECKPOINT),
    ("diff", "Holm does not show yet what a guest has changed; its root's guests/NAME/disk has it"),
    ("events", NO_EVENTS),
    ("event", NO_EVENTS),
    ("monitor", NO_EVENTS),
    ("watch", NO_EVENTS),
];

const NO_COPY: &str = "Holm does not copy guests yet; \
     holm exec NAME tar -c -C / --one-file-system . > FILE.tar and \
     holm base import BASE FILE.tar make a base of one";
const NO_SNAPSHOT: &str = "Holm takes no snapshots yet; \
     holm exec NAME tar -c -C / --one-file-system . > FILE.tar keeps what is in a guest";
const NO_CHECKPOINT: &str = "Holm neither saves nor moves running guests yet; \
     holm freeze NAME stops one for a while";
const NO_EVENTS: &str = "Holm reports no events yet; \
     holm wait NAME waits until a guest ends, holm logs -f NAME follows its console";

/// What to do instead of a verb of another tool.
pub fn instead(verb: &str) -> Option<String> {
    let of = |table: &[(&str, &'static str)]| table.iter().find(|(v, _)| *v == verb).map(|v| v.1);
    let missing = || of(&MISSING).map(str::to_owned);
    of(&EQUIVALENTS).map(|equivalent| format!("use {equivalent}")).or_else(missing)
}

/// The error of a verb that Holm does not have.
pub fn unknown_verb(table: Table, verb: &str) -> Failure {
    let names = table.all().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)).copied();
    let near = || nearest(verb, names).map(|near| format!("did you mean {near}?"));
    let remedy = instead(verb).or_else(near).unwrap_or("holm --help lists them".to_owned());
    Failure::usage(format!("holm has no verb {verb:?}; {remedy}"))
        .code(Code::VerbUnknown)
        .object(verb)
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::TABLE;

    /// What is typed by people who know other tools, some of it near the name of another verb.
    const TYPED: &str = "cp clone copy snapshot export journal events enable disable \
                         upgrade checkpoint restore diff clean save";

    #[test]
    fn each_verb_of_another_tool_has_an_answer() {
        for verb in TYPED.split_whitespace() {
            let message = unknown_verb(TABLE, verb).text(false);
            let guessed = ["holm --help", "did you mean"].iter().any(|it| message.contains(it));
            assert!(!guessed, "{message}");
        }
    }

    #[test]
    fn every_answer_names_verbs_that_holm_has() {
        for (_, answer) in EQUIVALENTS.iter().chain(&MISSING) {
            for (at, _) in
                answer.match_indices("holm ").filter(|(at, _)| !answer[..*at].ends_with('/'))
            {
                let verb: String =
                    answer[at + 5..].chars().take_while(|c| !" ,;".contains(*c)).collect();
                assert!(verb.starts_with("--") || TABLE.find(&verb).is_some(), "{answer}");
            }
        }
    }
}

//! Public keys: lines of `authorized_keys`.

use crate::config::units::Parsed;

/// A line of `authorized_keys`.
pub(in crate::config) fn ssh_key(text: &str) -> Parsed<String> {
    const HELP: &str = "write a whole line of a .pub file, as \"ssh-ed25519 AAAA... me@here\"";
    let key = text.trim();
    if key.contains('\n') {
        return Err(format!("a public key is one line; {HELP}"));
    }
    if key.contains("PRIVATE KEY") {
        return Err(format!("this is a private key; {HELP}"));
    }
    let kind = |word: &str| ["ssh-", "ecdsa-", "sk-"].iter().any(|prefix| word.starts_with(prefix));
    let words: Vec<&str> = key.split_whitespace().collect();
    if words.windows(2).any(|w| kind(w[0]) && w[1].starts_with("AAAA")) {
        Ok(key.to_owned())
    } else {
        Err(format!("{text:?} is not a public key; {HELP}"))
    }
}

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use holm_sys::command_line::overwrite_command_line;

/// Removes the values of these variables from this process's command line, as far as arguments end
/// in `NAME=VALUE`. A copy of the process, which has the same command line until it executes a
/// program, is about to appear in a guest, whose every user may read it.
pub fn hide_values(env: &BTreeMap<String, String>) -> io::Result<()> {
    if env.is_empty() {
        return Ok(());
    }
    let shown: Vec<OsString> = std::env::args_os().map(|argument| shown(argument, env)).collect();
    overwrite_command_line(shown.join(OsStr::new("\0")).as_bytes())
}

fn shown(argument: OsString, env: &BTreeMap<String, String>) -> OsString {
    for (name, value) in env {
        let bytes = argument.as_bytes();
        if let Some(before) = bytes.strip_suffix(value.as_bytes())
            && before.strip_suffix(b"=").is_some_and(|before| before.ends_with(name.as_bytes()))
        {
            return OsStr::from_bytes(before).to_owned();
        }
    }
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_and_values_go() {
        let env = [("TOKEN", "a=b"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        for (argument, want) in [
            ("TOKEN=a=b", "TOKEN="),
            ("--env=TOKEN=a=b", "--env=TOKEN="),
            ("-eTOKEN=a=b", "-eTOKEN="),
            ("EMPTY=", "EMPTY="),
            ("TOKEN", "TOKEN"),
            ("a=b", "a=b"),
            ("TOKEN=a=b;", "TOKEN=a=b;"),
        ] {
            assert_eq!(shown(argument.into(), &env.clone().into()), want, "{argument}");
        }
    }
}

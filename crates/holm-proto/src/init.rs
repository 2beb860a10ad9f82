//! The arguments of minimal init: `init [--service NAME RESTART COUNT ARG...]... [-- COMMAND...]`.
//!
//! With a command it ends when the command does; with neither command nor services it waits to be
//! told to end.

use crate::Text;

/// As many services as minimal init runs.
pub const SERVICES_MAX: usize = 32;

const NAME: &str = "init";
const SERVICE: &str = "--service";
const COMMAND: &str = "--";

/// When a service that ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Never.
    No,
    /// Unless it exited with 0.
    OnFailure,
    /// Always.
    Always,
}

impl Restart {
    /// As an argument.
    pub fn as_str(self) -> &'static str {
        match self {
            Restart::No => "no",
            Restart::OnFailure => "on-failure",
            Restart::Always => "always",
        }
    }

    /// Reads what [`Restart::as_str`] gives.
    pub fn parse(argument: &[u8]) -> Option<Restart> {
        match argument {
            b"no" => Some(Restart::No),
            b"on-failure" => Some(Restart::OnFailure),
            b"always" => Some(Restart::Always),
            _ => None,
        }
    }
}

/// A service for minimal init.
#[derive(Debug, Clone, Copy)]
pub struct Service<'a, S> {
    /// Its name.
    pub name: &'a str,
    /// What to run, looked up in `PATH`.
    pub command: &'a [S],
    /// When it is started again.
    pub restart: Restart,
}

/// Gives `push` the arguments of a minimal init, one after the other.
pub fn write<'a, S: AsRef<str> + 'a>(
    command: &[S],
    services: impl IntoIterator<Item = Service<'a, S>>,
    mut push: impl FnMut(&str),
) {
    push(NAME);
    for service in services {
        push(SERVICE);
        push(service.name);
        push(service.restart.as_str());
        let mut digits = [0; 20];
        let len = Text::new(&mut digits).number(service.command.len() as u64).len();
        push(core::str::from_utf8(&digits[..len]).unwrap_or_default());
        for argument in service.command {
            push(argument.as_ref());
        }
    }
    if !command.is_empty() {
        push(COMMAND);
        for argument in command {
            push(argument.as_ref());
        }
    }
}

/// A part of the arguments; positions count from the first argument, which is the program's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A service, whose command is the `count` arguments from `first` on.
    Service {
        /// Where its name is.
        name: usize,
        /// When it is started again.
        restart: Restart,
        /// Where its command begins.
        first: usize,
        /// How many arguments its command has.
        count: usize,
    },
    /// The main command: all arguments from `first` on.
    Command {
        /// Where it begins.
        first: usize,
    },
}

impl Part {
    /// Reads the part that begins at position `at` (the first begins at 1); `None` when [`write()`]
    /// writes no such thing. `argument` gives the argument at a position.
    pub fn parse<'a>(at: usize, argument: impl Fn(usize) -> Option<&'a [u8]>) -> Option<Part> {
        let word = argument(at)?;
        if word == SERVICE.as_bytes() {
            let restart = Restart::parse(argument(at + 2)?)?;
            let count = core::str::from_utf8(argument(at + 3)?).ok()?.parse().ok()?;
            Some(Part::Service { name: at + 1, restart, first: at + 4, count })
        } else if word == COMMAND.as_bytes() {
            Some(Part::Command { first: at + 1 })
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Part, Restart, Service, write};
    use std::borrow::ToOwned;
    use std::string::String;
    use std::vec::Vec;

    fn written(command: &[&str], services: &[Service<'_, &str>]) -> Vec<String> {
        let mut arguments = Vec::new();
        write(command, services.iter().copied(), |argument| arguments.push(argument.to_owned()));
        arguments
    }

    fn parse(at: usize, arguments: &[&str]) -> Option<Part> {
        Part::parse(at, |at| arguments.get(at).map(|argument| argument.as_bytes()))
    }

    #[test]
    fn the_arguments_say_how_long_each_service_is() {
        let web =
            Service { name: "web", command: &["httpd", "-f", "--"], restart: Restart::Always };
        let arguments = written(&[], &[web]);
        assert_eq!(arguments, ["init", "--service", "web", "always", "3", "httpd", "-f", "--"]);
        let command = written(&["sh", "--service"], &[]);
        assert_eq!(command, ["init", "--", "sh", "--service"]);
        assert_eq!(written(&[], &[]), ["init"]);
    }

    #[test]
    fn the_arguments_are_read_as_they_are_written() {
        let web = Service { name: "web", command: &["httpd", "-f"], restart: Restart::OnFailure };
        let arguments = written(&["sh"], &[web]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let service = Part::Service { name: 2, restart: Restart::OnFailure, first: 5, count: 2 };
        assert_eq!(parse(1, &arguments), Some(service));
        assert_eq!(parse(7, &arguments), Some(Part::Command { first: 8 }));
    }

    #[test]
    fn other_arguments_are_refused() {
        for arguments in [
            &["init"][..],
            &["init", "sh"],
            &["init", "--service", "web", "sometimes", "1", "httpd"],
            &["init", "--service", "web", "always", "one", "httpd"],
            &["init", "--service", "web"],
        ] {
            assert_eq!(parse(1, arguments), None, "{arguments:?}");
        }
        for restart in [Restart::No, Restart::OnFailure, Restart::Always] {
            assert_eq!(Restart::parse(restart.as_str().as_bytes()), Some(restart));
        }
    }
}

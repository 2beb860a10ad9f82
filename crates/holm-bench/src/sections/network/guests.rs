//! Guests on a wire of which more and more run, with addresses of their own.

use super::holm;
use super::wire::Wire;
use crate::stage::Stage;

/// The kinds of places that are compared; the first is the host itself.
pub const KINDS: [&str; 6] =
    ["host", "host, again", "native", "private", "host-net", "native-plain"];
pub const NATIVE: usize = 2;
pub const PRIVATE: usize = 3;
/// A guest with the host's network: what a guest costs without a network of its own.
pub const HOST_NET: usize = 4;
/// A native guest whose root is no overlay.
pub const PLAIN: usize = 5;

/// The address that number `number` of a kind has on the host.
pub fn address(kind: usize, number: usize) -> String {
    format!("198.18.{}.{}", kind + 1, number + 1)
}

/// Guests of both kinds; removed at the end whatever happens.
pub struct Guests<'a> {
    stage: &'a Stage,
    wire: &'a Wire,
    base: &'a str,
    /// Which there are of them.
    kinds: &'a [usize],
    /// Settings of all, and what one runs.
    settings: &'a [&'a str],
    command: &'a dyn Fn(usize, usize) -> Vec<String>,
    names: Vec<String>,
}

impl<'a> Guests<'a> {
    pub fn new(
        stage: &'a Stage,
        wire: &'a Wire,
        base: &'a str,
        kinds: &'a [usize],
        settings: &'a [&'a str],
        command: &'a dyn Fn(usize, usize) -> Vec<String>,
    ) -> Self {
        Self { stage, wire, base, kinds, settings, command, names: Vec::new() }
    }

    pub fn name(kind: usize, number: usize) -> String {
        format!("bench-{}-{number}", KINDS[kind])
    }

    /// Starts more, until so many of each kind run.
    pub fn start_up_to(&mut self, count: usize) -> Result<(), String> {
        for number in self.names.len() / self.kinds.len()..count {
            self.kinds.iter().try_for_each(|&kind| self.start(kind, number))?;
        }
        Ok(())
    }

    fn start(&mut self, kind: usize, number: usize) -> Result<(), String> {
        let (name, address) = (Self::name(kind, number), address(kind, number));
        let network = match kind {
            NATIVE | PLAIN => vec!["net.mode=native".to_owned(), format!("net.address={address}")],
            // Its server is asked by an address of the host's that leads to it.
            PRIVATE => vec![format!("net.publish={address}:80:80")],
            _ => vec!["net.mode=host".to_owned()],
        };
        let command = (self.command)(kind, number);
        let mut create = vec!["create", &name, "--base", self.base];
        create.extend(self.settings);
        create.extend(network.iter().flat_map(|setting| ["--set", setting]));
        create.push("--");
        create.extend(command.iter().map(String::as_str));
        holm(self.stage, self.wire, &create)?;
        self.names.push(name.clone());
        holm(self.stage, self.wire, &["start", &name]).map(drop)
    }
}

impl Drop for Guests<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = holm(self.stage, self.wire, &["rm", "--force", name]);
        }
    }
}

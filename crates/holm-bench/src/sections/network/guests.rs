//! Guests on a wire of which more and more run, with addresses of their own.

use super::holm;
use super::wire::Wire;
use crate::stage::Stage;

/// The kinds of places that are compared; the first is the host itself.
pub const KINDS: [&str; 4] = ["host", "host, again", "native", "private"];
pub const NATIVE: usize = 2;
pub const PRIVATE: usize = 3;

/// The address that number `number` of a kind has on the host.
pub fn address(kind: usize, number: usize) -> String {
    format!("198.18.{}.{}", kind + 1, number + 1)
}

/// Guests of both kinds; removed at the end whatever happens.
pub struct Guests<'a> {
    stage: &'a Stage,
    wire: &'a Wire,
    base: &'a str,
    /// Settings of all, and what they run.
    settings: &'a [&'a str],
    command: &'a [&'a str],
    names: Vec<String>,
    count: usize,
}

impl<'a> Guests<'a> {
    pub fn new(
        stage: &'a Stage,
        wire: &'a Wire,
        base: &'a str,
        settings: &'a [&'a str],
        command: &'a [&'a str],
    ) -> Self {
        Self { stage, wire, base, settings, command, names: Vec::new(), count: 0 }
    }

    pub fn name(kind: usize, number: usize) -> String {
        format!("bench-{}-{number}", KINDS[kind])
    }

    /// Starts more, until so many of each kind run.
    pub fn start_up_to(&mut self, count: usize) -> Result<(), String> {
        for number in self.count..count {
            let native =
                ["net.mode=native".to_owned(), format!("net.address={}", address(NATIVE, number))];
            // A private guest's server is asked by an address of the host's that leads to it.
            let private = format!("net.publish={}:80:80", address(PRIVATE, number));
            self.start(NATIVE, number, &[&native[0], &native[1]])?;
            self.start(PRIVATE, number, &[&private])?;
        }
        self.count = self.count.max(count);
        Ok(())
    }

    fn start(&mut self, kind: usize, number: usize, network: &[&str]) -> Result<(), String> {
        let name = Self::name(kind, number);
        let mut create = vec!["create", &name, "--base", self.base];
        create.extend(self.settings);
        create.extend(network.iter().flat_map(|setting| ["--set", setting]));
        create.push("--");
        create.extend(self.command);
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

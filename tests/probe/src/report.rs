use std::fmt::Display;
use std::process::ExitCode;

/// What was found so far.
#[derive(Debug, Default)]
pub struct Report {
    holes: u32,
    lines: u32,
}

impl Report {
    /// Something that must be so.
    pub fn check(&mut self, good: bool, what: &str, detail: impl Display) {
        self.lines += 1;
        if good {
            println!("ok    {what}: {detail}");
        } else {
            self.holes += 1;
            println!("HOLE  {what}: {detail}");
        }
    }

    /// Something that must fail.
    pub fn refused<T, E: Display>(&mut self, what: &str, result: Result<T, E>) {
        match result {
            Ok(_) => self.check(false, what, "it worked"),
            Err(error) => self.check(true, what, error),
        }
    }

    /// Something that must work.
    pub fn works<T, E: Display>(&mut self, what: &str, result: Result<T, E>) {
        match result {
            Ok(_) => self.check(true, what, "works"),
            Err(error) => self.check(false, what, error),
        }
    }

    /// Counts what another process found.
    pub fn add(&mut self, what: &str, good: bool) {
        self.check(good, what, if good { "nothing found" } else { "see above" });
    }

    pub fn end(&self) -> ExitCode {
        if self.lines > 0 {
            println!("{} looked at, {} holes", self.lines, self.holes);
        }
        if self.holes == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

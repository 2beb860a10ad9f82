//! `--wait`: until a guest is ready.

use std::time::Duration;

use clap::Args;
use holm::guest::{self, Guest};
use holm::monitor::Logs;
use holm::pool::{Name, Pool};
use holm::{Code, Coded, config};

use crate::failure::Failure;
use crate::output;

/// Whether to wait, and how long.
#[derive(Debug, Args)]
pub struct Ready {
    /// Wait until the guest is ready, at most so long [default: 90s]. An init that never says so,
    /// such as sysvinit, is not waited for
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "90s",
        value_parser = config::duration
    )]
    wait: Option<Duration>,
}

impl Ready {
    /// The error of a guest, which may not be one but the time that `--wait` is to have.
    pub fn explain(&self, error: guest::Error, name: &Name) -> Failure {
        let missing = error.details().code == Code::GuestNotFound;
        let failure = Failure::from(error);
        if missing && self.wait.is_some() && config::duration(name.as_str()).is_ok() {
            return failure
                .help(format!("--wait={name} waits so long; --wait takes no other form"));
        }
        failure
    }

    /// Waits if that was asked for; gives the text and the document to print then.
    pub fn wait(&self, pool: &Pool, guest: &Name) -> Result<(String, String), Failure> {
        let name = guest.as_str();
        let document = |ready| output::json(&output::Ready { name: name.to_owned(), ready });
        let Some(timeout) = self.wait else { return Ok((String::new(), document(None))) };
        let ready = guest::wait_ready(&Guest::new(pool, guest), timeout)
            .map_err(|error| ended(pool, guest, error))?;
        let text = if ready {
            String::new()
        } else {
            format!("{name} runs; its init never reports that it is ready")
        };
        Ok((text, document(Some(ready))))
    }
}

/// The error of a guest that was waited for; if it has ended, with the last that its console said:
/// that is where an init says why it ends.
fn ended(pool: &Pool, guest: &Name, error: guest::Error) -> Failure {
    let ended = error.details().code == Code::GuestEnded;
    let failure = Failure::from(error);
    let directory = pool.guest_dir(guest);
    let logs = Logs { directory: &directory, lines: Some(1), follow_while: None };
    let mut text = Vec::new();
    if ended && logs.write(&mut text).is_ok() {
        let last: String = String::from_utf8_lossy(&text).trim().chars().take(200).collect();
        if !last.is_empty() {
            return failure.help(format!("the last line on its console is: {last}"));
        }
    }
    failure
}

//! `--wait`: until a guest says that it is up.

use std::time::Duration;

use clap::Args;
use holm::config;
use holm::guest;
use holm::pool::{Name, Pool};

use crate::failure::Failure;

/// Whether to wait, and how long.
#[derive(Debug, Args)]
pub struct Ready {
    /// Wait until init says that the guest is up, at most so long [default: 90s]
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
    /// Waits if that was asked for.
    pub fn wait(&self, pool: &Pool, guest: &Name) -> Result<(), Failure> {
        if let Some(timeout) = self.wait {
            guest::wait_ready(pool, guest, timeout)?;
        }
        Ok(())
    }
}

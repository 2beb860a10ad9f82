//! What init is to run.

use super::service::Services;
use core::ffi::CStr;
use holm_proto::init::Part;
use holm_sys::bare::Args;

/// What init's arguments say.
pub struct Arguments {
    /// The main command, with which the guest ends.
    pub main: Option<Args>,
    /// The services.
    pub services: Services,
}

impl Arguments {
    pub fn parse(args: Args) -> Option<Arguments> {
        let mut arguments = Arguments { main: None, services: Services::default() };
        let mut at = 1;
        while at < args.len() {
            match Part::parse(at, |at| args.get(at).map(CStr::to_bytes))? {
                Part::Service { name, restart, first, count } => {
                    let run = args.slice(first, count);
                    arguments.services.add(args.get(name)?, run, restart)?;
                    at = first + run.len();
                }
                Part::Command { first } => {
                    arguments.main = Some(args.slice(first, usize::MAX));
                    break;
                }
            }
        }
        Some(arguments)
    }
}

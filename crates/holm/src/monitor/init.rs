//! The command line of Holm's minimal init.

/// A service for the minimal init.
#[derive(Debug, Clone, Copy)]
pub struct InitService<'a> {
    /// Its name.
    pub name: &'a str,
    /// What to run, looked up in `PATH`.
    pub command: &'a [String],
    /// `no`, `on-failure` or `always`.
    pub restart: &'a str,
}

/// As many services as the minimal init runs.
pub const SERVICES_MAX: usize = 32;

/// The arguments of the minimal init: `init [--service NAME RESTART COUNT ARG...]... [-- COMMAND...]`.
///
/// With a command it ends when the command does; with neither command nor services it waits to be told to end.
pub fn init_args(command: &[String], services: &[InitService<'_>]) -> Vec<String> {
    let mut args = vec!["init".to_owned()];
    for service in services {
        let count = service.command.len().to_string();
        args.extend(["--service", service.name, service.restart, &count].map(str::to_owned));
        args.extend_from_slice(service.command);
    }
    if !command.is_empty() {
        args.push("--".to_owned());
        args.extend_from_slice(command);
    }
    args
}

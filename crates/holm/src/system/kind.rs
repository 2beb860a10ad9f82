use super::identity::SSH_KEYS_THEN_INIT;

/// The inits that Holm knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// systemd of this major version.
    Systemd(u32),
    /// sysvinit, also when it runs `OpenRC`'s scripts, as Debian packages it.
    SysVinit,
    /// `openrc-init`.
    OpenRc,
    /// runit.
    Runit,
    /// Holm's own.
    Minimal,
    /// Any other program.
    Other,
}

impl Kind {
    /// From `init_kind` of a base: `systemd 257`, `sysvinit`, `openrc`, `runit`.
    pub fn parse(text: &str) -> Self {
        let (name, version) = text.split_once(' ').unwrap_or((text, ""));
        match name {
            // A version that cannot be parsed counts as the oldest that Holm supports.
            "systemd" => Self::Systemd(version.parse().unwrap_or(247)),
            "sysvinit" => Self::SysVinit,
            "openrc" => Self::OpenRc,
            "runit" => Self::Runit,
            "minimal" => Self::Minimal,
            _ => Self::Other,
        }
    }

    /// The signal that makes it shut down; `None` if it has none.
    pub fn stop_signal(self) -> Option<i32> {
        match self {
            // SIGRTMIN+3, "halt": systemd(1). The kernel's first real-time signal is 32, but the C
            // libraries keep two for themselves.
            Self::Systemd(_) => Some(34 + 3),
            // No signal makes these power off unless their own files were changed.
            Self::SysVinit | Self::OpenRc | Self::Runit => None,
            Self::Minimal | Self::Other => Some(15),
        }
    }

    /// The argv of process 1, which executes `init`.
    ///
    /// A systemd guest makes its SSH host keys in a unit. sysvinit, `OpenRC` and runit share no
    /// directory of boot scripts that runs before ssh's, so there a shell makes the keys and then
    /// executes init.
    pub fn command(self, init: &str) -> Vec<String> {
        let argv: &[&str] = match self {
            Self::SysVinit | Self::OpenRc | Self::Runit => {
                &["/bin/sh", "-c", SSH_KEYS_THEN_INIT, init]
            }
            Self::Systemd(_) | Self::Minimal | Self::Other => &[init],
        };
        argv.iter().map(|&argument| argument.to_owned()).collect()
    }

    /// Whether it sends READY=1 to `$NOTIFY_SOCKET` (`sd_notify(3)`).
    pub fn notifies(self) -> bool {
        matches!(self, Self::Systemd(_) | Self::Minimal)
    }
}

//! The messages between a process and the one that it cloned, until the child executes its program.

use rustix::io::Errno;

use super::Error;
use super::ptys::no_terminal;

/// One message. After each its sender blocks until the message named here arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// From the child: it has made its namespaces. It goes on with what needs no mounts, and waits
    /// for [`Self::Release`].
    Ready,
    /// From the child: its descriptor of this number is the master of its console. It waits for
    /// [`Self::ConsoleReceived`].
    Console(i32),
    /// From the child: a step of its own failed. It waits for nothing, and ends.
    Failed {
        /// What it could not do.
        step: Step,
        /// The kernel's error.
        errno: i32,
    },
    /// From the parent: everything is assembled. It waits for the child's next message, or for the
    /// end of the channel, which is the exec of the child's program.
    Release,
    /// From the parent: it has a copy of the console. It waits as after [`Self::Release`].
    ConsoleReceived,
}

/// The length of every message: its kind, a step, a number.
pub const LENGTH: usize = 6;

impl Message {
    /// The message as it is sent.
    pub fn to_bytes(self) -> [u8; LENGTH] {
        let (kind, step, number) = match self {
            Self::Ready => (b'r', 0, 0),
            Self::Console(fd) => (b'c', 0, fd),
            Self::Failed { step, errno } => (b'f', step as u8, errno),
            Self::Release => (b'g', 0, 0),
            Self::ConsoleReceived => (b't', 0, 0),
        };
        let [a, b, c, d] = number.to_ne_bytes();
        [kind, step, a, b, c, d]
    }

    /// Reads what was sent; `None` if it is no message.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[kind, step, a, b, c, d] = bytes else { return None };
        let number = i32::from_ne_bytes([a, b, c, d]);
        match kind {
            b'r' => Some(Self::Ready),
            b'c' => Some(Self::Console(number)),
            b'f' => Some(Self::Failed { step: Step::from_number(step)?, errno: number }),
            b'g' => Some(Self::Release),
            b't' => Some(Self::ConsoleReceived),
            _ => None,
        }
    }
}

/// A step of the child, for the message that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Cgroup,
    Namespaces,
    Clocks,
    Credentials,
    MountNamespace,
    HostName,
    Console,
    Personality,
    Capabilities,
    Filter,
    Exec,
    Directory,
    User,
    Join,
    Limits,
    Network,
}

/// Every step, in the order of its numbers, with what it does to what.
const STEPS: [(Step, &str, &str); 16] = [
    (Step::Cgroup, "enter", "the guest's cgroups"),
    (Step::Namespaces, "unshare", "the cgroup and time namespaces"),
    (Step::Clocks, "enter", "the time namespace"),
    (Step::Credentials, "assume", "the credentials of guest root"),
    (Step::MountNamespace, "unshare", "the mount namespace"),
    (Step::HostName, "set", "the host name"),
    (Step::Console, "open", "the guest's console"),
    (Step::Personality, "set", "the personality"),
    (Step::Capabilities, "limit", "the capabilities"),
    (Step::Filter, "load", "the system call filter"),
    (Step::Exec, "run", "init"),
    (Step::Directory, "change to", "the working directory"),
    (Step::User, "find", "the user in the guest's /etc/passwd"),
    (Step::Join, "join", "the guest's namespaces"),
    (Step::Limits, "set", "the resource limits"),
    (Step::Network, "make", "the guest's network namespace"),
];

impl Step {
    fn from_number(number: u8) -> Option<Self> {
        STEPS.get(usize::from(number)).map(|(step, ..)| *step)
    }

    /// The error of a child that could not do this.
    pub fn failed(self, errno: i32) -> Error {
        let (_, what, object) = STEPS[self as usize];
        let error = Errno::from_raw_os_error(errno);
        match self {
            Self::Exec => Error::Exec { errno },
            Self::Join if error == Errno::PERM => Error::Starting,
            Self::User if error == Errno::NOENT => Error::NoUser,
            Self::Directory => Error::Directory(error.into()),
            Self::Filter => Error::Filter(error.into()),
            Self::Console if error == Errno::NOSPC => {
                no_terminal().unwrap_or_else(|| Error::step(what, object, error))
            }
            _ => Error::step(what, object, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_sent() {
        let failures = STEPS.map(|(step, ..)| Message::Failed { step, errno: step as i32 * 7 });
        let others =
            [Message::Ready, Message::Console(0), Message::Console(i32::MAX), Message::Release];
        for message in others.into_iter().chain([Message::ConsoleReceived]).chain(failures) {
            assert_eq!(Message::parse(&message.to_bytes()), Some(message));
        }
    }

    #[test]
    fn other_bytes_are_no_message() {
        let whole = Message::Ready.to_bytes();
        for bytes in
            [&[][..], b"r", &whole[..5], &[whole.as_slice(), b"r"].concat(), b"x\0\0\0\0\0"]
        {
            assert_eq!(Message::parse(bytes), None, "{bytes:?}");
        }
        let unknown = [b'f', u8::try_from(STEPS.len()).unwrap(), 1, 0, 0, 0];
        assert_eq!(Message::parse(&unknown), None);
    }

    #[test]
    fn a_step_has_the_number_of_its_place() {
        for (index, (step, ..)) in STEPS.iter().enumerate() {
            assert_eq!(*step as usize, index);
        }
    }

    #[test]
    fn a_failed_step_is_told_by_its_kind() {
        assert!(matches!(Step::Exec.failed(2), Error::Exec { errno: 2 }));
        assert!(matches!(Step::Join.failed(1), Error::Starting));
        assert!(matches!(Step::Join.failed(2), Error::Failed(_)));
        assert!(matches!(Step::User.failed(2), Error::NoUser));
        let text = Step::Cgroup.failed(13).to_string();
        assert_eq!(text, "cannot enter the guest's cgroups");
    }
}

//! The kernel's version.

use super::finding::Answer;
use super::machine::Machine;

/// The oldest kernel that Holm is tested with: Debian 13's.
const OLDEST: (u32, u32) = (6, 12);

pub(super) fn version(_: &Machine) -> Answer {
    judge(&rustix::system::uname().release().to_string_lossy())
}

pub(super) fn judge(release: &str) -> Answer {
    match parse(release) {
        Some(version) if version >= OLDEST => Answer::Yes(release.to_owned()),
        Some(_) => Answer::No(format!("{release} is older than {}.{}", OLDEST.0, OLDEST.1)),
        None => Answer::Partly(format!("{release}: not a version that can be compared")),
    }
}

/// Major and minor number of a release such as `6.12.107+deb13-cloud-amd64`.
pub(super) fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

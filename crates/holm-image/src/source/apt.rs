//! The Debian mirrors that the host's apt uses.

use std::process::Command;

use super::program::output;
use crate::error::{Error, Result};

/// The suites that have updates and security updates.
const RELEASES: [&str; 7] =
    ["bullseye", "bookworm", "trixie", "forky", "oldstable", "stable", "testing"];
const FORMAT: &str = "$(CREATED_BY)|$(ORIGIN)|$(LABEL)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)";

/// The lines of a sources.list for `suite`, with the host's mirrors.
pub fn sources(suite: &str) -> Result<Vec<String>> {
    let mut apt = Command::new("apt-get");
    let targets = output("apt-get", apt.args(["indextargets", "--format", FORMAT]))?;
    let lines = from_targets(suite, &targets);
    if lines.is_empty() {
        let reason = "apt on this host knows no Debian mirror; run `apt update`, or name one with \
                      --mirror http://deb.debian.org/debian";
        return Err(Error::source(format!("debootstrap:{suite}"), reason));
    }
    Ok(lines)
}

/// Makes those lines from the output of `apt-get indextargets`, which has a line in [`FORMAT`] for
/// each index.
fn from_targets(suite: &str, targets: &str) -> Vec<String> {
    let mirror = |label: &str| {
        targets.lines().find_map(|line| {
            let fields: Vec<&str> = line.split('|').collect();
            match fields.as_slice() {
                ["Packages", "Debian", l, release, "main", uri]
                    // Backports are another archive on many mirrors.
                    if *l == label && !release.contains("backports") => Some((*uri).to_owned()),
                _ => None,
            }
        })
    };
    let Some(main) = mirror("Debian") else { return Vec::new() };
    let mut lines = vec![format!("deb {main} {suite} main")];
    if RELEASES.contains(&suite) {
        lines.push(format!("deb {main} {suite}-updates main"));
        if let Some(security) = mirror("Debian-Security") {
            lines.push(format!("deb {security} {suite}-security main"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::from_targets;

    const TARGETS: &str = "\
Packages|cloud-sdk-bookworm|cloud-sdk-bookworm|cloud-sdk-bookworm|main|https://packages.example/apt/
Packages|Debian Backports|Debian Backports|bookworm-backports|main|http://other.example/debian/
Packages|Debian|Debian|bookworm|main|http://mirror.example/debian/
Translations|Debian|Debian|bookworm|main|http://mirror.example/debian/
Packages|Debian|Debian|bookworm-updates|main|http://mirror.example/debian/
Packages|Debian|Debian-Security|bookworm-security|main|http://security.example/debian-security/
";

    #[test]
    fn the_hosts_mirror_with_another_suite() {
        assert_eq!(
            from_targets("trixie", TARGETS),
            [
                "deb http://mirror.example/debian/ trixie main",
                "deb http://mirror.example/debian/ trixie-updates main",
                "deb http://security.example/debian-security/ trixie-security main",
            ]
        );
        assert_eq!(from_targets("sid", TARGETS), ["deb http://mirror.example/debian/ sid main"]);
    }

    #[test]
    fn no_mirror() {
        assert!(from_targets("trixie", "").is_empty());
        assert!(from_targets("trixie", "Packages|Ubuntu|Ubuntu|noble|main|http://x/\n").is_empty());
    }
}

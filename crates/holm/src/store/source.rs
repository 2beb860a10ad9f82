//! The sources of bases.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use super::error::Error;
use crate::failed::is_there;

/// The SOURCE of `holm base import NAME SOURCE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `debootstrap:SUITE[+PACKAGE,PACKAGE...]`: a Debian system made by mmdebstrap.
    Debootstrap {
        /// `trixie`, `bookworm`, ...
        suite: String,
        /// Packages beyond those that every base gets.
        packages: Vec<String>,
    },
    /// `busybox`: the host's static busybox.
    Busybox,
    /// `-`: a tar on standard input.
    Stdin,
    /// Anything else: a directory, or a tar file.
    Path(PathBuf),
}

impl Source {
    /// Parses the argument `text`. A directory named `busybox` must be given as `./busybox`.
    pub fn parse(text: &OsStr) -> Result<Self, Error> {
        match text.to_str() {
            Some("") => Err(bad("", "it is empty")),
            Some("-") => Ok(Self::Stdin),
            Some("busybox") => Ok(Self::Busybox),
            Some(text) if text.starts_with("debootstrap:") => {
                debootstrap(text, &text["debootstrap:".len()..])
            }
            _ => Ok(Self::Path(PathBuf::from(text))),
        }
    }

    /// Refuses a path where nothing is: it is more often the name of something that Holm has no
    /// source for.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Path(path) if !is_there(path)? => Err(bad(
                &path.to_string_lossy(),
                &format!("No such file or directory.{} {SOURCES}", guess(&path.to_string_lossy())),
            )),
            _ => Ok(()),
        }
    }

    /// As [`Source::check`], for a source that has files of bases that exist.
    pub(super) fn check_as_backup(&self) -> Result<(), Error> {
        match self {
            Self::Stdin => Err(bad("-", "a backup is a directory or a tar; name the file")),
            other => other.check(),
        }
    }

    /// The argument from which [`Source::parse`] makes this source.
    pub fn to_arg(&self) -> OsString {
        match self {
            Self::Path(path) => path.clone().into_os_string(),
            other => other.to_string().into(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debootstrap { suite, packages } if packages.is_empty() => {
                write!(f, "debootstrap:{suite}")
            }
            Self::Debootstrap { suite, packages } => {
                write!(f, "debootstrap:{suite}+{}", packages.join(","))
            }
            Self::Busybox => f.write_str("busybox"),
            Self::Stdin => f.write_str("-"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

fn debootstrap(text: &str, rest: &str) -> Result<Source, Error> {
    let (suite, packages) = match rest.split_once('+') {
        Some((suite, packages)) => (suite, Some(packages)),
        None => (rest, None),
    };
    if !is_identifier(suite, ".-/") {
        return Err(bad(
            text,
            "a suite is a name such as `trixie`, as in `debootstrap:trixie+nginx,curl`",
        ));
    }
    let packages: Vec<String> =
        packages.map_or(Vec::new(), |p| p.split(',').map(str::to_owned).collect());
    // The names are passed to apt, where a leading dash would be an option.
    if let Some(wrong) = packages.iter().find(|p| !is_identifier(p, "+.-:=~_/")) {
        return Err(bad(
            text,
            &format!("`{wrong}` is not a package name; packages are separated by commas"),
        ));
    }
    Ok(Source::Debootstrap { suite: suite.into(), packages })
}

/// Whether `text` consists of letters, digits and the characters of `more`, and starts with a
/// letter or digit.
fn is_identifier(text: &str, more: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

/// All sources, for somebody who has named something else.
const SOURCES: &str = "\
Sources are:
  debootstrap:trixie+nginx  a Debian suite with packages
  busybox                   the host's static busybox
  ./rootfs                  a directory with a root filesystem
  ./rootfs.tar.zst          the same as a tar, also .gz, .xz or not compressed
  -                         a tar on standard input";

const SUITES: [&str; 9] = [
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "sid",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];

/// What somebody has probably meant by a path where nothing is, as a sentence.
fn guess(text: &str) -> String {
    if SUITES.contains(&text) {
        return format!(" Did you mean debootstrap:{text}?");
    }
    match text.split_once(':') {
        Some(("http" | "https" | "ftp", _)) => {
            format!(" Holm fetches nothing: curl -L {text} | holm base import NAME -.")
        }
        Some(("docker" | "podman" | "oci" | "docker-daemon", image)) => {
            let image = image.trim_start_matches('/');
            format!(
                " Holm knows no registry: \
                 docker export $(docker create {image}) | holm base import NAME -."
            )
        }
        Some(("debian", suite)) => format!(" Did you mean debootstrap:{suite}?"),
        _ => String::new(),
    }
}

fn bad(text: &str, reason: &str) -> Error {
    Error::Source { text: text.into(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Source, String> {
        Source::parse(OsStr::new(text)).map_err(|e| e.to_string())
    }

    #[test]
    fn good() {
        let deb = |suite: &str, packages: &[&str]| Source::Debootstrap {
            suite: suite.into(),
            packages: packages.iter().map(ToString::to_string).collect(),
        };
        for (text, want) in [
            ("busybox", Source::Busybox),
            ("-", Source::Stdin),
            ("./busybox", Source::Path("./busybox".into())),
            ("/x/y.tar.gz", Source::Path("/x/y.tar.gz".into())),
            ("debootstrap", Source::Path("debootstrap".into())),
            ("debootstrap:trixie", deb("trixie", &[])),
            ("debootstrap:trixie+nginx", deb("trixie", &["nginx"])),
            ("debootstrap:bookworm+g++,libc6:i386", deb("bookworm", &["g++", "libc6:i386"])),
        ] {
            assert_eq!(parse(text).unwrap(), want, "{text}");
            assert_eq!(want.to_arg(), OsString::from(text));
        }
    }

    #[test]
    fn what_was_meant() {
        for (text, meant) in [
            ("trixie", "debootstrap:trixie?"),
            ("debian:sid", "debootstrap:sid?"),
            ("https://example.org/a.tar.xz", "curl -L https://example.org/a.tar.xz |"),
            ("docker:alpine", "docker create alpine)"),
            ("docker://alpine:3", "docker create alpine:3)"),
            ("./rootfs", ""),
        ] {
            let said = guess(text);
            assert!(said.contains(meant) && (!meant.is_empty() || said.is_empty()), "{said}");
        }
    }

    #[test]
    fn bad_ones_say_why() {
        for (text, reason) in [
            ("", "empty"),
            ("debootstrap:", "suite"),
            ("debootstrap:+nginx", "suite"),
            ("debootstrap:--help", "suite"),
            ("debootstrap:trixie+", "package"),
            ("debootstrap:trixie+a,,b", "package"),
            ("debootstrap:trixie+nginx,-y", "`-y`"),
            ("debootstrap:trixie+ng inx", "`ng inx`"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}

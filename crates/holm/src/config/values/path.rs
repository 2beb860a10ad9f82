//! Bind mounts and devices: absolute paths.

use std::path::{Component, Path, PathBuf};

use crate::config::types::BindMount;
use crate::config::units::Parsed;

/// `SOURCE:TARGET[:ro|:rw]`, both absolute.
pub(in crate::config) fn mount(text: &str) -> Parsed<BindMount> {
    const HELP: &str = "write SOURCE:TARGET or SOURCE:TARGET:ro, as /srv/data:/data:ro";
    let (rest, read_only) = match text.strip_suffix(":ro") {
        Some(rest) => (rest, true),
        None => (text.strip_suffix(":rw").unwrap_or(text), false),
    };
    let (source, target) =
        rest.split_once(':').ok_or_else(|| format!("{text:?} has no target; {HELP}"))?;
    if target.contains(':') {
        return Err(format!("{text:?} has too many parts; {HELP}"));
    }
    Ok(BindMount {
        source: absolute(source).map_err(|e| format!("{e}; {HELP}"))?,
        target: self::target(target).map_err(|e| format!("{e}; {HELP}"))?,
        read_only,
    })
}

/// Where in a guest something can be mounted.
pub(super) fn target(text: &str) -> Parsed<PathBuf> {
    let target = absolute(text)?;
    if target == Path::new("/") {
        return Err("nothing can be bound over the guest's whole root".to_owned());
    }
    if let Some(taken) = taken(&target) {
        return Err(format!(
            "nothing can be bound on {}: {taken} in a guest is Holm's, and init needs it",
            target.display()
        ));
    }
    Ok(target)
}

/// The directory of Holm's own mounts that a bind on `target` would cover or change.
fn taken(target: &Path) -> Option<&'static str> {
    const WITH_ALL_BELOW: [&str; 5] = ["/proc", "/sys", "/dev/pts", "/dev/console", "/dev/.holm"];
    // Below these there may be something of the host's: /dev/log, /run/postgresql.
    const ALONE: [&str; 2] = ["/dev", "/run"];
    let below = WITH_ALL_BELOW.into_iter().find(|path| target.starts_with(path));
    below.or_else(|| ALONE.into_iter().find(|path| target == Path::new(path)))
}

pub(in crate::config) fn show_mount(m: &BindMount) -> String {
    format!("{}:{}{}", m.source.display(), m.target.display(), if m.read_only { ":ro" } else { "" })
}

/// An absolute path without `..`, with `//` and `/./` folded.
fn absolute(text: &str) -> Parsed<PathBuf> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err(format!("{text:?} is not an absolute path"));
    }
    if path.components().any(|c| c == Component::ParentDir) || text.contains('\0') {
        return Err(format!("{text:?} must not contain \"..\""));
    }
    Ok(path.components().collect())
}

/// A device node below `/dev`.
pub(in crate::config) fn device(text: &str) -> Parsed<PathBuf> {
    let path = absolute(text)?;
    if path.starts_with("/dev") && path != Path::new("/dev") {
        Ok(path)
    } else {
        Err(format!("{text:?} is not a device; write a path below /dev, as /dev/fuse"))
    }
}

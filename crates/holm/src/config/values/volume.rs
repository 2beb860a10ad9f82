//! Volumes: `pg:/var/lib/postgresql:20G:ro`.

use super::disk_size;
use super::name::name;
use super::path::target;
use crate::config::types::VolumeMount;
use crate::config::units::{self, Parsed};

/// `NAME:TARGET[:SIZE][:ro|:rw]`.
pub(in crate::config) fn volume(text: &str) -> Parsed<VolumeMount> {
    const HELP: &str =
        "write NAME:TARGET[:SIZE][:ro], as pg:/var/lib/postgresql or pg:/var/lib/postgresql:20G";
    let wrong = |what: String| format!("{what}; {HELP}");
    let (rest, read_only) = match text.strip_suffix(":ro") {
        Some(rest) => (rest, true),
        None => (text.strip_suffix(":rw").unwrap_or(text), false),
    };
    let mut parts = rest.split(':');
    let (Some(volume), Some(path)) = (parts.next(), parts.next()) else {
        return Err(wrong(format!("{text:?} has no target")));
    };
    let size = parts.next();
    if parts.next().is_some() {
        return Err(wrong(format!("{text:?} has too many parts")));
    }
    if volume.starts_with('/') {
        return Err(wrong(format!(
            "{volume:?} is a path; directories of the host are bound by `mounts`"
        )));
    }
    Ok(VolumeMount {
        name: name(volume).map_err(wrong)?,
        target: target(path).map_err(wrong)?,
        size: size.map(disk_size).transpose().map_err(wrong)?,
        read_only,
    })
}

pub(in crate::config) fn show_volume(volume: &VolumeMount) -> String {
    let size = volume.size.map_or(String::new(), |size| format!(":{}", units::show_size(size)));
    let read_only = if volume.read_only { ":ro" } else { "" };
    format!("{}:{}{size}{read_only}", volume.name, volume.target.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["pg:/var/lib/postgresql", "a:/b:20G", "a:/b:ro", "a.b-c_1:/x/y:512M:ro"] {
            assert_eq!(show_volume(&volume(text).unwrap()), text);
        }
    }

    #[test]
    fn what_no_volume_can_be() {
        for (text, reason) in [
            ("pg", "no target"),
            ("/srv/pg:/data", "`mounts`"),
            ("a/b:/data", "not a valid name"),
            ("..:/data", "not a valid name"),
            (":/data", "not a valid name"),
            ("pg:data", "not an absolute path"),
            ("pg:/data/../etc", "must not contain"),
            ("pg:/", "whole root"),
            ("pg:/dev", "is Holm's"),
            ("pg:/proc", "is Holm's"),
            ("pg:/proc/sys", "is Holm's"),
            ("pg:/sys/fs/cgroup", "is Holm's"),
            ("pg:/run", "is Holm's"),
            ("pg:/data:many", "many"),
            ("pg:/data:1M", "1M is too small"),
            ("pg:/data:1G:2G", "too many parts"),
        ] {
            let message = volume(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}

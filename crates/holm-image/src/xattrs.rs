//! The extended attributes that the files of a base may have.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, Result};

/// The attributes of one file.
pub type Xattrs = BTreeMap<Box<OsStr>, Box<[u8]>>;

/// The revisions of `security.capability`, as in its first 32 bits, and their lengths.
const REVISION_MASK: u32 = 0xff00_0000;
const V1: (u32, usize) = (0x0100_0000, 12);
const V2: (u32, usize) = (0x0200_0000, 20);
const V3: (u32, usize) = (0x0300_0000, 24);

/// The longest name on Linux, and in the image, which has one byte for the length.
const NAME_MAX: usize = 255;
/// The longest value: the image has two bytes for its length.
const VALUE_MAX: usize = u16::MAX as usize;
/// How many attributes a file may have: the image counts shared ones in one byte.
const COUNT_MAX: usize = 128;
/// The bytes of all names and values of a file. An image has room for 256 KiB, which includes
/// padding and its own attributes.
const SUM_MAX: usize = 128 << 10;

/// Adds an attribute of the file `path` to `xattrs`.
///
/// `trusted.overlay.*` is refused: overlayfs would obey it in a lower layer, and a redirect can
/// reach any object of the store.
pub fn add(xattrs: &mut Xattrs, path: &[u8], name: &[u8], value: &[u8]) -> Result<()> {
    let shown = OsStr::from_bytes(name).display();
    if name.starts_with(b"trusted.overlay.") {
        let reason = format!(
            "it has the attribute {shown}, which overlayfs would obey; \
             import a mounted tree, not a layer of an overlay, or remove it with `setfattr -x`"
        );
        return Err(Error::refused(path, reason));
    }
    let value = if name == b"security.capability" {
        plain_capability(value)
            .ok_or_else(|| Error::refused(path, format!("its {shown} is damaged")))?
    } else {
        value.to_vec()
    };
    xattrs.insert(OsStr::from_bytes(name).into(), value.into());
    check(xattrs, name).map_err(|what| {
        let reason = format!("{what}; remove it with `setfattr -x`, or `tar --xattrs-exclude`");
        Error::refused(path, reason)
    })
}

/// Checks the limits of the image after `name` was added. The crate that writes the image truncates
/// lengths silently, and the kernel would then parse parts of values as attributes and files.
fn check(xattrs: &Xattrs, name: &[u8]) -> std::result::Result<(), String> {
    if !(1..=NAME_MAX).contains(&name.len()) || name.contains(&0) {
        return Err(format!(
            "it has an attribute whose name has {} bytes or a zero byte; \
             a name has 1 to {NAME_MAX}",
            name.len()
        ));
    }
    let shown = OsStr::from_bytes(name);
    let length = xattrs.get(shown).map_or(0, |value| value.len());
    let shown = shown.display();
    if length > VALUE_MAX {
        return Err(format!(
            "its attribute {shown} has {length} bytes; {VALUE_MAX} are possible in a base"
        ));
    }
    if xattrs.len() > COUNT_MAX {
        return Err(format!(
            "it has {} attributes; {COUNT_MAX} are possible in a base",
            xattrs.len()
        ));
    }
    let sum: usize = xattrs.iter().map(|(name, value)| name.len() + value.len()).sum();
    if sum > SUM_MAX {
        return Err(format!(
            "with {shown} its attributes have {sum} bytes; {SUM_MAX} are possible in a base"
        ));
    }
    Ok(())
}

/// Converts file capabilities of revision 3 to revision 2, which has no user namespace: an image
/// belongs to no user namespace, so the kernel would fail with EOVERFLOW on revision 3.
fn plain_capability(value: &[u8]) -> Option<Vec<u8>> {
    let magic = u32::from_le_bytes(*value.first_chunk()?);
    match (magic & REVISION_MASK, value.len()) {
        V1 | V2 => Some(value.to_vec()),
        V3 => {
            let mut plain = (magic & !REVISION_MASK | V2.0).to_le_bytes().to_vec();
            plain.extend_from_slice(&value[4..V2.1]);
            Some(plain)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities() {
        // cap_net_raw+ep as setcap writes it, and the same from a user namespace with root 100000.
        let v2 = [&[1, 0, 0, 2][..], &[0, 0x20, 0, 0], &[0; 12]].concat();
        let v3 = [&[1, 0, 0, 3][..], &v2[4..], &100_000_u32.to_le_bytes()].concat();
        assert_eq!(plain_capability(&v2).unwrap(), v2);
        assert_eq!(plain_capability(&v3).unwrap(), v2);
        let v1 = [&[0, 0, 0, 1][..], &[7; 8]].concat();
        assert_eq!(plain_capability(&v1).unwrap(), v1);
        for bad in [&v3[..20], &v2[..19], &[], &[1, 0, 0, 4]] {
            assert_eq!(plain_capability(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn overlay_attributes_are_refused() {
        for name in ["trusted.overlay.redirect", "trusted.overlay.opaque", "trusted.overlay."] {
            let error = add(&mut Xattrs::new(), b"etc/x", name.as_bytes(), b"y").unwrap_err();
            let message = error.to_string();
            assert!(message.contains("etc/x") && message.contains(name), "{message}");
        }
        let mut kept = Xattrs::new();
        add(&mut kept, b"x", b"user.overlay.opaque", b"y").unwrap();
        add(&mut kept, b"x", b"trusted.other", b"\0\xff").unwrap();
        assert_eq!(kept.len(), 2);
    }
}

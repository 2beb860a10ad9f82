//! Access control lists: converting the text in archives to the kernel's binary form.

/// From the kernel's `posix_acl_xattr.h`.
const VERSION: u32 = 2;
const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const NO_ID: u32 = u32::MAX;

/// The length of a list with entries for owner, group and others only.
pub const MINIMAL: usize = 4 + 3 * 8;

/// Converts a text such as
/// `user::rwx,user:1000:r--,group::r-x,mask::rwx,other::---` to the value of the attribute.
pub fn encode(text: &str) -> Result<Vec<u8>, String> {
    let mut entries = Vec::new();
    for line in text.split([',', '\n']) {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if !entry.is_empty() {
            entries.push(parse_entry(entry)?);
        }
    }
    // The kernel demands this order.
    entries.sort_unstable();
    let mut value = VERSION.to_le_bytes().to_vec();
    for (tag, id, permissions) in entries {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&permissions.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    Ok(value)
}

/// Parses tag, id and permissions of `user:1000:rwx` or, in the form of star and bsdtar with the id
/// at the end, of `user:joe:rwx:1000`.
fn parse_entry(entry: &str) -> Result<(u16, u32, u16), String> {
    let invalid = || format!("`{entry}` is not an entry of an access control list");
    let mut parts = entry.split(':');
    let mut next = || parts.next();
    let (kind, who, bits) = (next(), next().unwrap_or_default(), next().unwrap_or_default());
    let number = next();
    let named = |without, with| if who.is_empty() { without } else { with };
    let tag = match kind {
        Some("user" | "u") => named(USER_OBJ, USER),
        Some("group" | "g") => named(GROUP_OBJ, GROUP),
        Some("mask" | "m") => MASK,
        Some("other" | "o") => OTHER,
        _ => return Err(invalid()),
    };
    let id = match tag {
        USER | GROUP => number.unwrap_or(who).parse().map_err(|_| {
            format!(
                "its access control list names `{who}`, whose id is not in the archive; \
                 make it with `tar --xattrs --xattrs-include='*'`"
            )
        })?,
        _ => NO_ID,
    };
    let mut permissions = 0;
    for bit in bits.chars() {
        permissions |= match bit {
            'r' => 4,
            'w' => 2,
            'x' => 1,
            '-' => 0,
            _ => return Err(invalid()),
        };
    }
    Ok((tag, id, permissions))
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn as_the_kernel_has_it() {
        // Read back with getfattr from a file on ext4 after setfacl -m u:1000:r,g:50:rx.
        let want = [
            2, 0, 0, 0, //
            1, 0, 6, 0, 255, 255, 255, 255, //
            2, 0, 4, 0, 0xe8, 3, 0, 0, //
            4, 0, 4, 0, 255, 255, 255, 255, //
            8, 0, 5, 0, 50, 0, 0, 0, //
            16, 0, 5, 0, 255, 255, 255, 255, //
            32, 0, 4, 0, 255, 255, 255, 255,
        ];
        for text in [
            "user::rw-\nuser:1000:r--\ngroup::r--\ngroup:50:r-x\nmask::r-x\nother::r--\n",
            "user::rw-,group::r--,other::r--,mask::r-x,group:50:r-x,user:1000:r--",
            "u::rw,u:joe:r:1000,g::r,g:staff:rx:50,m::rx,o::r",
        ] {
            assert_eq!(encode(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn names_are_refused_with_the_remedy() {
        assert!(encode("user:joe:rwx").unwrap_err().contains("--xattrs-include"));
        assert!(encode("nobody:x").is_err());
        assert!(encode("user::rwz").is_err());
    }
}

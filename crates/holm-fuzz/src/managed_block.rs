//! A file of the guest in which Holm keeps lines of its own.

use holm::rootfs::with_section;

/// The file. Writing twice is writing once, and what is not Holm's stays.
pub fn managed_block(data: &[u8]) -> bool {
    let lines = "ssh-ed25519 AAAA me@here\n";
    let once = with_section(data, lines);
    assert_eq!(with_section(&once, lines), once);
    let without = with_section(&once, "");
    assert!(once.ends_with(&without));
    assert!(data.ends_with(&without) || without.len() < data.len());
    without == data
}

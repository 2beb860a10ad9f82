//! A file of the guest in which Holm keeps lines of its own.

use holm::rootfs::with_block;

/// The file. Writing twice is writing once, and what is not Holm's stays.
pub fn managed_block(data: &[u8]) -> bool {
    let lines = "ssh-ed25519 AAAA me@here\n";
    let once = with_block(data, lines);
    assert_eq!(with_block(&once, lines), once);
    let without = with_block(&once, "");
    assert!(once.ends_with(&without));
    assert!(data.ends_with(&without) || without.len() < data.len());
    without == data
}

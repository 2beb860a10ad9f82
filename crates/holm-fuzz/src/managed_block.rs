//! Managed blocks.

use holm::rootfs::with_block;

/// A file with or without a managed block. Writing the block twice has the same result as writing
/// it once, and the other lines stay.
pub fn managed_block(data: &[u8]) -> bool {
    let lines = "ssh-ed25519 AAAA me@here\n";
    let once = with_block(data, lines);
    assert_eq!(with_block(&once, lines), once);
    let without = with_block(&once, "");
    assert!(once.ends_with(&without));
    assert!(data.ends_with(&without) || without.len() < data.len());
    without == data
}

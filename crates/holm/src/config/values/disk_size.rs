use crate::config::units::{Parsed, show_size, size};

/// Less holds no filesystem with a journal, and hardly a guest.
const LEAST: u64 = 16 << 20;

/// A size in bytes that a private layer or a volume can have.
pub fn disk_size(text: &str) -> Parsed<u64> {
    let bytes = size(text)?;
    if bytes < LEAST {
        return Err(format!("{text} is too small for a disk; the least is {}", show_size(LEAST)));
    }
    Ok(bytes)
}

//! A filesystem that a guest serves itself: an empty directory, as long as this process is let run.

use rustix::io::{Errno, read, write};
use rustix::stdio::stdin;

// Requests, by `enum fuse_opcode`.
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

/// Answers on standard input, which is a `/dev/fuse` that something is mounted with, until it is
/// unmounted.
pub fn serve() {
    let mut request = vec![0; 1 << 17];
    loop {
        match read(stdin(), &mut request) {
            Ok(length) if length >= 40 => {}
            Err(Errno::INTR) => continue,
            _ => return,
        }
        let opcode = u32::from_ne_bytes([request[4], request[5], request[6], request[7]]);
        if let Some((error, body)) = answer(opcode) {
            let length = u32::try_from(16 + body.len()).unwrap_or_default();
            let unique = &request[8..16];
            let reply = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), unique, &body].concat();
            let _ = write(stdin(), &reply);
        }
    }
}

/// A negative error and what follows the header; `None` for what wants no answer.
fn answer(opcode: u32) -> Option<(i32, Vec<u8>)> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let body = match opcode {
        FORGET | BATCH_FORGET => return None,
        // Protocol 7.31; nothing read ahead, pages of 4096 bytes, times to the nanosecond.
        INIT => words(&[&[7, 31, 0, 0, 0, 4096, 1][..], &[0; 9]].concat()),
        // Attributes good for no time; inode 1, a directory of root's with two links.
        GETATTR => {
            words(&[&[0, 0, 0, 0, 1][..], &[0; 14], &[0o40_755, 2, 0, 0, 0, 4096, 0]].concat())
        }
        // Blocks of 4096 bytes, names up to 255.
        STATFS => words(&[&[0; 10][..], &[4096, 255, 4096], &[0; 7]].concat()),
        // There is no such file, and nothing else can be done.
        1 => return Some((-2, Vec::new())),
        _ => return Some((-38, Vec::new())),
    };
    Some((0, body))
}

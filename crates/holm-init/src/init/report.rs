//! Messages on the guest's console.

use holm_sys::bare::stderr;
use rustix::io::write;

/// Writes a message, in parts, as a line of its own.
pub fn report(message: &[&[u8]]) {
    // Without a console the message is lost.
    let _ = write(stderr(), b"holm-init: ");
    for part in message {
        let _ = write(stderr(), part);
    }
    let _ = write(stderr(), b"\r\n");
}

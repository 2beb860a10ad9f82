//! Reads what the kernel tells of the connections that a guest opens.
//!
//! Pure and without a heap. The packets in it come from the guest: whatever does not fit is left
//! out, and nothing here panics or loops on it.

mod packet;
#[cfg(test)]
mod tests;

pub use packet::connections;

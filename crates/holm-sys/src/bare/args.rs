//! The command line and the environment, where the kernel put them.

use core::ffi::{CStr, c_char};

/// The program's arguments, valid as long as it runs.
#[derive(Debug, Clone, Copy)]
pub struct Args {
    first: *const *const c_char,
    len: usize,
}

// SAFETY: the strings stay as they are (see `new`), whoever looks at them.
unsafe impl Send for Args {}

impl Args {
    /// # Safety
    /// `first` points to `count` strings and a null, and nobody changes them.
    pub unsafe fn new(count: i32, first: *const *const c_char) -> Args {
        Args { first, len: usize::try_from(count).unwrap_or(0) }
    }

    /// How many there are, the program's name included.
    pub fn len(self) -> usize {
        self.len
    }

    /// No argument, not even a name.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The argument at `index`; 0 is the program's name.
    pub fn get(self, index: usize) -> Option<&'static CStr> {
        if index >= self.len {
            return None;
        }
        // SAFETY: `new` was promised `len` strings that stay as they are.
        Some(unsafe { CStr::from_ptr(*self.first.add(index)) })
    }

    /// At most `len` arguments from `from` on.
    #[must_use]
    pub fn slice(self, from: usize, len: usize) -> Args {
        let from = from.min(self.len);
        // SAFETY: `from` is within the array or at its closing null.
        let first = unsafe { self.first.add(from) };
        Args { first, len: len.min(self.len - from) }
    }

    /// The environment's value of `name`, which ends in `=`.
    pub fn env(name: &CStr) -> Option<&'static CStr> {
        // SAFETY: getenv reads the environment, which nothing in a single-threaded program changes.
        let value = unsafe { libc::getenv(name.as_ptr()) };
        if value.is_null() {
            return None;
        }
        // SAFETY: getenv returned a string of the environment.
        Some(unsafe { CStr::from_ptr(value) })
    }

    pub(super) fn pointers(self) -> impl Iterator<Item = *const c_char> {
        // SAFETY: every index is below `len`.
        (0..self.len).map(move |i| unsafe { *self.first.add(i) })
    }
}

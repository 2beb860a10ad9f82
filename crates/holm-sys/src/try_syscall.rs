//! System calls that cannot have an effect, for tests of whether a filter refuses them.

use std::io;

/// Numbers on `x86_64` of calls that fail at once when every argument is invalid.
const NATIVE: &[u32] = &[
    103, 163, 164, 167, 168, 172, 173, 174, 175, 176, 177, 178, 179, 227, 246, 248, 249, 250, 298,
    304, 313, 320, 321, 323, 425, 426, 427, 443, SOCKET, SETSOCKOPT,
];
/// The same on i386.
const COMPAT: &[u32] = &[
    25, 51, 79, 87, 101, 102, 103, 110, 115, 127, 128, 129, 130, 131, 264, 283, 286, 287, 288, 336,
    342, 350, 357, 359, 366, 374, 404, 425, 426, 427, 443,
];
const SOCKET: u32 = 41;
const SETSOCKOPT: u32 = 54;

/// Makes a system call of the `x86_64` ABI whose first arguments are `first`, at most three, and
/// whose others are all ones.
///
/// # Panics
/// When the call is not in the table of those that then have no effect.
pub fn native(number: u32, first: &[u32]) -> io::Result<()> {
    assert!(NATIVE.contains(&number), "call {number} is not known to be harmless");
    let none = u64::MAX;
    let at = |place: usize| first.get(place).map_or(none, |value| widen(*value));
    // SAFETY: of the calls in the table none touches this process's memory when its pointers are
    // all ones: the kernel finds them bad before it acts.
    let result = unsafe { libc::syscall(i64::from(number), at(0), at(1), at(2), none, none, none) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a system call of the i386 ABI (int 0x80), as a 32-bit program would; `first` as above.
///
/// # Panics
/// When the call is not in the table of those that then have no effect.
#[cfg(target_arch = "x86_64")]
pub fn compat(number: u32, first: &[u32]) -> io::Result<()> {
    assert!(COMPAT.contains(&number), "call {number} is not known to be harmless");
    let at = |place: usize| first.get(place).copied().unwrap_or(u32::MAX);
    // SAFETY: as for `native`.
    unsafe { int_0x80(number, [at(0), at(1), at(2)]) }.map(drop)
}

/// Makes a system call of the i386 ABI with these arguments, and all ones for the others.
///
/// # Safety
///
/// The arguments must be fit for the call.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn int_0x80(number: u32, first: [u32; 3]) -> io::Result<i32> {
    let [first, second, third] = first.map(u64::from);
    let result: u64;
    // SAFETY: for the call the caller answers; rbx, which the compiler keeps for itself, is put
    // back, and what the kernel clears on this entry (r8 to r11) is declared.
    unsafe {
        std::arch::asm!(
            "xchg {first}, rbx",
            "int 0x80",
            "xchg {first}, rbx",
            first = inout(reg) first => _,
            inlateout("rax") u64::from(number) => result,
            in("rcx") second,
            in("rdx") third,
            in("rsi") u64::from(u32::MAX),
            in("rdi") u64::from(u32::MAX),
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    // A 32-bit result, sign in bit 31.
    let result = result as i32;
    if (-4095..0).contains(&result) {
        Err(io::Error::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}

/// All ones stays all ones.
fn widen(value: u32) -> u64 {
    if value == u32::MAX { u64::MAX } else { u64::from(value) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn invalid_arguments_fail() {
        // Without a filter: bad address or bad value, or a kernel that has no such call.
        let (native, compat) = (super::native(321, &[]), super::compat(357, &[]));
        assert!(native.is_err() && compat.is_err(), "{native:?} {compat:?}");
    }
}

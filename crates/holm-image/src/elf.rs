//! ELF headers: the architecture of a program, and whether it needs an interpreter.

/// Architectures, as `uname -m` names them, by ELF class and machine number.
const MACHINES: [(u8, u16, &str); 8] = [
    (2, 62, "x86_64"),
    (1, 3, "i686"),
    (2, 183, "aarch64"),
    (1, 40, "armv7l"),
    (2, 243, "riscv64"),
    (2, 21, "ppc64le"),
    (2, 22, "s390x"),
    (2, 258, "loongarch64"),
];

const PT_INTERP: u32 = 3;

/// The architecture of a program, from its first 20 bytes.
pub fn machine(data: &[u8]) -> Option<&'static str> {
    let class = *data.strip_prefix(b"\x7fELF")?.first()?;
    let little = *data.get(5)? == 1;
    let number: [u8; 2] = data.get(18..20)?.try_into().ok()?;
    let number = if little { u16::from_le_bytes(number) } else { u16::from_be_bytes(number) };
    MACHINES.iter().find(|(c, n, _)| (*c, *n) == (class, number)).map(|(.., name)| *name)
}

/// Whether `data` is a 64-bit little-endian program that runs without an interpreter.
pub fn is_static(data: &[u8]) -> bool {
    headers(data).is_some_and(|types| !types.contains(&PT_INTERP))
}

/// The types of its program headers.
fn headers(data: &[u8]) -> Option<Vec<u32>> {
    data.strip_prefix(b"\x7fELF\x02\x01")?;
    let offset = u64::from_le_bytes(*data.get(32..)?.first_chunk()?);
    let size = u16::from_le_bytes(*data.get(54..)?.first_chunk()?);
    let count = u16::from_le_bytes(*data.get(56..)?.first_chunk()?);
    let offset = usize::try_from(offset).ok()?;
    let header = |n: u16| {
        let at = offset.checked_add(usize::from(n) * usize::from(size))?;
        Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?))
    };
    (0..count).map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines() {
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec();
        assert_eq!(machine(&header), Some("x86_64"));
        header[18] = 183;
        assert_eq!(machine(&header), Some("aarch64"));
        assert_eq!(machine(b"#!/bin/sh\n"), None);
        assert_eq!(machine(&header[..19]), None);
    }

    #[test]
    fn this_test_is_dynamic() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(!is_static(&own));
        assert!(headers(&own).unwrap().contains(&PT_INTERP));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(&own[..40]));
    }
}

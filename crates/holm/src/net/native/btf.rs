//! The kernel's description of its own types (BTF, Documentation/bpf/btf.rst).
//!
//! ```text
//! header    24 bytes: where types and names begin, and how long they are
//! types     each: name, kind and count, size or type; then what its kind has; numbered from 1
//! names     texts that end with NUL
//! ```

/// What was read from `/sys/kernel/btf/vmlinux`.
pub struct Btf<'a> {
    types: &'a [u8],
    names: &'a [u8],
}

const STRUCT: u32 = 4;
const FUNCTION: u32 = 12;

/// A type: its number, its kind, and its name.
struct Type<'a> {
    number: u32,
    kind: u32,
    name: &'a [u8],
    /// The members of a structure.
    members: &'a [u8],
    /// Whether where members are also has their size in bits.
    has_sizes: bool,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

impl<'a> Btf<'a> {
    /// Reads the header; `None` if this is no BTF.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        const MAGIC: [u8; 2] = 0xeb9f_u16.to_ne_bytes();
        let field = |at| number(bytes, at).and_then(|number| usize::try_from(number).ok());
        let body = bytes.strip_prefix(&MAGIC).and(bytes.get(field(4)?..))?;
        let part = |at, length| body.get(field(at)?..)?.get(..field(length)?);
        Some(Self { types: part(8, 12)?, names: part(16, 20)? })
    }

    /// The numbers of functions, if all are there.
    pub fn functions<const N: usize>(&self, names: [&str; N]) -> Option<[u32; N]> {
        let mut numbers = [0; N];
        for found in self.all().filter(|it| it.kind == FUNCTION) {
            if let Some(at) = names.iter().position(|name| name.as_bytes() == found.name) {
                numbers[at] = found.number;
            }
        }
        numbers.iter().all(|number| *number > 0).then_some(numbers)
    }

    /// Where a member is in a structure, in bytes.
    pub fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let found = self.all().find(|it| it.kind == STRUCT && it.name == structure.as_bytes())?;
        let of_member =
            |it: &&[u8]| self.name(number(it, 0)?).filter(|it| *it == member.as_bytes());
        let member = found.members.chunks_exact(12).find(|it| of_member(it).is_some())?;
        let bits = number(member, 8)? & if found.has_sizes { 0xff_ffff } else { u32::MAX };
        Some(bits / 8)
    }

    fn name(&self, at: u32) -> Option<&'a [u8]> {
        self.names.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next()
    }

    /// All types, until one of a kind that is not known here.
    fn all(&self) -> impl Iterator<Item = Type<'a>> {
        let mut rest = self.types;
        (1..).map_while(move |of| {
            let info = number(rest, 4)?;
            let (kind, count) = (info >> 24 & 0x1f, usize::try_from(info & 0xffff).ok()?);
            let length = match kind {
                // Integers, variables and tags of declarations have a number.
                1 | 14 | 17 => 4,
                // Arrays.
                3 => 12,
                // Structures, unions, sections and enumerations of 64 bits.
                STRUCT | 5 | 15 | 19 => count * 12,
                // Enumerations, and prototypes of functions.
                6 | 13 => count * 8,
                2 | 7..=12 | 16 | 18 => 0,
                _ => return None,
            };
            let (own, others) = rest.get(12..)?.split_at_checked(length)?;
            let name = self.name(number(rest, 0)?)?;
            rest = others;
            Some(Type { number: of, kind, name, members: own, has_sizes: info >> 31 != 0 })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer, a structure with two members, and a function.
    fn example() -> Vec<u8> {
        let names = b"\0int\0pair\0first\0second\0work\0";
        let words = |all: &[u32]| all.iter().flat_map(|it| it.to_ne_bytes()).collect::<Vec<_>>();
        let types = [
            words(&[1, 1 << 24, 4, 32]),
            words(&[5, STRUCT << 24 | 2, 8, 10, 1, 0, 16, 1, 32]),
            words(&[23, FUNCTION << 24, 0]),
        ]
        .concat();
        let length = |of: &[u8]| u32::try_from(of.len()).unwrap();
        let mut bytes = 0xeb9f_u16.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(words(&[24, 0, length(&types), length(&types), length(names)]));
        [bytes, types, names.to_vec()].concat()
    }

    #[test]
    fn functions_and_members_are_found_by_their_names() {
        let bytes = example();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.functions(["work"]), Some([3]));
        assert_eq!(btf.functions(["work", "int"]), None);
        assert_eq!((btf.offset("pair", "first"), btf.offset("pair", "second")), (Some(0), Some(4)));
        assert_eq!((btf.offset("pair", "third"), btf.offset("work", "first")), (None, None));
    }

    #[test]
    fn what_is_cut_off_is_passed_over() {
        let bytes = example();
        for length in 0..bytes.len() {
            let found = Btf::parse(&bytes[..length]).and_then(|btf| btf.functions(["work"]));
            assert_eq!(found, None, "{length}");
        }
    }

    /// The kernel that runs the tests, if it describes itself.
    #[test]
    fn this_kernel_has_sockets() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(&bytes).unwrap();
        assert!(
            btf.functions(["vfs_read", "vfs_write"]).is_some_and(|[read, write]| read != write)
        );
        assert!(btf.offset("unix_sock", "addr").is_some_and(|at| at > 100));
        assert_eq!(btf.offset("socket", "sk"), Some(24));
        assert_eq!(btf.offset("unix_address", "name"), Some(8));
    }
}

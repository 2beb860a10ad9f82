//! Maps, which programs and this process share.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use super::{bpf, get_info, open_pinned};

/// What a map is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// Values by key, at most so many.
    Hash(u32),
    /// So many values, by number, all of which are there from the start and 0 then.
    Array(u32),
    /// The same, with a value for each CPU.
    PerCpuArray(u32),
    /// As `Hash`; where there are too many, those that were not used for longest are removed.
    LruHash(u32),
    /// Sockets by key, at most so many.
    SockHash(u32),
    /// A value for each of some sockets, and whether those have it that they accept.
    SkStorage(bool),
}

/// A map. Its keys and values have a fixed size each.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
    /// How many values a key has: one, or one for each CPU that there may be.
    copies: usize,
}

/// The part of `union bpf_attr` that `BPF_MAP_CREATE` reads.
#[repr(C)]
#[derive(Default)]
struct CreateMap {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; 16],
    interface: u32,
    btf: u32,
    btf_key: u32,
    btf_value: u32,
}

/// The part of `union bpf_attr` that the commands on elements read.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The part of `union bpf_attr` that `BPF_BTF_LOAD` reads.
#[repr(C)]
#[derive(Default)]
struct LoadTypes {
    types: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    padding: u32,
}

const PER_CPU_ARRAY: u32 = 6;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP_ELEM: i32 = 1;
const MAP_UPDATE_ELEM: i32 = 2;
const MAP_DELETE_ELEM: i32 = 3;
const MAP_GET_NEXT_KEY: i32 = 4;
const BTF_LOAD: i32 = 18;

impl Map {
    /// Makes a map whose keys and values have these sizes, in bytes.
    pub fn create(name: &str, kind: MapKind, (key, value): (u32, u32)) -> io::Result<Self> {
        const NO_PREALLOC: u32 = 1;
        const CLONE: u32 = 1 << 9;
        let (map_type, max_entries) = match kind {
            MapKind::Hash(entries) => (1, entries),
            MapKind::Array(entries) => (2, entries),
            MapKind::PerCpuArray(entries) => (PER_CPU_ARRAY, entries),
            MapKind::LruHash(entries) => (9, entries),
            MapKind::SockHash(entries) => (18, entries),
            MapKind::SkStorage(_) => (24, 0),
        };
        let mut attr = CreateMap {
            map_type,
            key_size: key,
            value_size: value,
            max_entries,
            ..CreateMap::default()
        };
        // The last byte stays NUL.
        attr.name.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
        let types;
        if let MapKind::SkStorage(accepted_too) = kind {
            types = load_integer_type()?;
            attr.flags = if accepted_too { NO_PREALLOC | CLONE } else { NO_PREALLOC };
            attr.btf = types.as_raw_fd().cast_unsigned();
            (attr.btf_key, attr.btf_value) = (1, 1);
        }
        // SAFETY: there are no addresses in it.
        let fd = unsafe { bpf(MAP_CREATE, &mut attr) }?;
        // SAFETY: a descriptor that the kernel just made, which nothing else has.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let copies = copies(map_type)?;
        Ok(Self { fd, key: key as usize, value: value as usize, copies })
    }

    /// Opens the map that is pinned at a path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::from_fd(open_pinned(path)?)
    }

    /// The map behind a descriptor.
    pub(super) fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        // `struct bpf_map_info` begins with type, id, and the sizes of keys and values.
        let mut info = [0u32; 4];
        // SAFETY: there are no addresses among these numbers.
        unsafe { get_info(fd.as_fd(), &mut info) }?;
        let copies = copies(info[0])?;
        Ok(Self { fd, key: info[2] as usize, value: info[3] as usize, copies })
    }

    /// How many bytes a key and a value have.
    pub fn sizes(&self) -> (u32, u32) {
        (self.key as u32, self.value as u32)
    }

    /// The value of a key, or those of all CPUs, one after another; `None` if it is not there.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        if key.len() != self.key {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut value = vec![0u8; self.value * self.copies];
        let mut attr = self.element(key, value.as_mut_ptr() as u64);
        // SAFETY: the kernel reads a key, whose size was just checked, and writes a value, and
        // `value` is as large as one (or one for each CPU) and outlives the call.
        match unsafe { bpf(MAP_LOOKUP_ELEM, &mut attr) } {
            Ok(_) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the value of a key, on all CPUs. `EINVAL` for a key or value of another size than the
    /// map's.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if key.len() != self.key || value.len() != self.value {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let values = value.repeat(self.copies);
        let mut attr = self.element(key, values.as_ptr() as u64);
        // SAFETY: the kernel reads a key and a value, or one for each CPU, whose sizes were just
        // checked.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attr) }.map(drop)
    }

    /// Removes a key; `false` if it was not there.
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        if key.len() != self.key {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attr = self.element(key, 0);
        // SAFETY: the kernel reads a key, whose size was just checked.
        match unsafe { bpf(MAP_DELETE_ELEM, &mut attr) } {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.key_after(None)?.is_none())
    }

    /// Its keys; of one that is changed meanwhile, some may be missing or be there twice.
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        // After a key that is gone the kernel begins again.
        const MOST: usize = 1 << 16;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while keys.len() < MOST
            && let Some(next) = self.key_after(keys.last().map(Vec::as_slice))?
        {
            keys.push(next);
        }
        Ok(keys)
    }

    /// The key after another, or the first.
    fn key_after(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        if key.is_some_and(|key| key.len() != self.key) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut next = vec![0u8; self.key];
        let mut attr = self.element(key.unwrap_or_default(), next.as_mut_ptr() as u64);
        if key.is_none() {
            attr.key = 0;
        }
        // SAFETY: the kernel reads a key, whose size was just checked, or none, and writes one, and
        // `next` is as large as that and outlives the call.
        match unsafe { bpf(MAP_GET_NEXT_KEY, &mut attr) } {
            Ok(_) => Ok(Some(next)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn element(&self, key: &[u8], value: u64) -> Element {
        let map = self.fd.as_raw_fd().cast_unsigned();
        Element { map, padding: 0, key: key.as_ptr() as u64, value, flags: 0 }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// How many values a key of such a map has. Values of CPUs are a multiple of 8 bytes each.
fn copies(map_type: u32) -> io::Result<usize> {
    if map_type != PER_CPU_ARRAY {
        return Ok(1);
    }
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = possible.trim_end().rsplit([',', '-']).next().and_then(|last| last.parse().ok());
    last.map(|last: usize| last + 1).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Loads a description of one type, `int`, as type 1: maps of sockets want their types described.
fn load_integer_type() -> io::Result<OwnedFd> {
    // Header: magic and version; its length; offset and length of types, and of names.
    // Type 1: name at 1, kind 1 (integer), 4 bytes; signed, 32 bits.
    const WORDS: [u32; 10] = [0x0001_eb9f, 24, 0, 16, 16, 8, 1, 0x0100_0000, 4, 0x0100_0020];
    let mut types: Vec<u8> = WORDS.iter().flat_map(|word| word.to_ne_bytes()).collect();
    types.extend(b"\0int\0\0\0\0");
    let size = types.len() as u32;
    let mut attr = LoadTypes { types: types.as_ptr() as u64, size, ..LoadTypes::default() };
    // SAFETY: the kernel reads `size` bytes of `types`, which outlives the call.
    let fd = unsafe { bpf(BTF_LOAD, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

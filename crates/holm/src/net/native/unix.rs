//! Abstract Unix sockets of native guests, which only BPF as an LSM can keep apart: kernels that
//! have it switched on (`lsm=` with `bpf`, as Debian's do), and describe their types.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use holm_bpf::{Instruction, Map, Program, UNIX_ADDRESS, UNIX_HOOKS};
use holm_sys::bpf::{self, Hook};

use super::btf::Btf;
use super::kinds::used;
use crate::failed::{bytes_if_there, read_if_there};
use crate::net::error::Error;

/// What the programs want to know of this kernel.
pub struct Kernel {
    /// The numbers of the functions, as [`UNIX_HOOKS`].
    functions: [u32; UNIX_HOOKS.len()],
    /// Where `addr` is in `struct unix_sock`, in bytes.
    address: u16,
}

impl Kernel {
    /// Looks at the kernel; `None` if the programs would not be called, or cannot be loaded.
    pub fn look() -> Result<Option<Self>, Error> {
        if !is_lsm()? {
            return Ok(None);
        }
        let bytes = bytes_if_there(Path::new("/sys/kernel/btf/vmlinux"))?;
        Ok(bytes.and_then(|bytes| Self::of(&Btf::parse(&bytes)?)))
    }

    fn of(btf: &Btf<'_>) -> Option<Self> {
        let functions = btf.functions(UNIX_HOOKS.map(|(_, function)| function))?;
        let address = u16::try_from(btf.offset("unix_sock", "addr")?).ok()?;
        Some(Self { functions, address })
    }
}

/// Whether abstract Unix sockets of native guests that start now are apart.
pub fn are_apart() -> Result<bool, Error> {
    Ok(Kernel::look()?.is_some())
}

/// Whether the kernel calls BPF as an LSM.
fn is_lsm() -> Result<bool, Error> {
    let all = read_if_there(Path::new("/sys/kernel/security/lsm"))?;
    Ok(all.is_some_and(|all| all.trim().split(',').any(|lsm| lsm == "bpf")))
}

/// Loads one of the programs.
pub fn load(kernel: &Kernel, program: &Program, maps: &[(Map, bpf::Map)]) -> io::Result<OwnedFd> {
    let mut hooks = UNIX_HOOKS.iter().zip(kernel.functions);
    // Each has one; there is a test.
    let function = hooks.find(|((name, _), _)| *name == program.name).map_or(0, |(_, it)| it);
    let instructions: Vec<_> =
        program.instructions.iter().map(|it| placed(*it, kernel.address)).collect();
    let hook = (Hook::LsmCgroup, function);
    bpf::load_for_function(hook, program.name, &instructions, &used(program, maps))
}

/// An instruction that reads where the kernel has the address of a socket.
fn placed(mut instruction: Instruction, address: u16) -> Instruction {
    /// `BPF_LDX | BPF_MEM | BPF_DW`.
    const READ: u8 = 0x79;
    if instruction[0] == READ && instruction[2..4] == UNIX_ADDRESS.to_ne_bytes() {
        instruction[2..4].copy_from_slice(&address.to_ne_bytes());
    }
    instruction
}

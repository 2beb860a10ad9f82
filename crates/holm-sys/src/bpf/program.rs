//! Loading programs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::{Hook, Map, bpf};

/// One instruction, `struct bpf_insn`.
pub type Instruction = [u8; 8];

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` reads.
#[repr(C)]
#[derive(Default)]
struct LoadProgram {
    program_type: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
    types: [u32; 2],
    functions: [u64; 2],
    lines: u64,
    lines_count: u32,
    function: u32,
}

const PROG_LOAD: i32 = 5;

/// Loads a program for a hook, without attaching it.
pub fn load(hook: Hook, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    try_load((hook, 0), "", instructions, &mut [])
}

/// Loads a program that uses maps, each loaded by the instruction with this index. If the kernel
/// refuses it, the error ends with the verifier's last words.
pub fn load_with_maps(
    hook: Hook,
    name: &str,
    instructions: &[Instruction],
    maps: &[(usize, &Map)],
) -> io::Result<OwnedFd> {
    load_for_function((hook, 0), name, instructions, maps)
}

/// The same for a hook that is a function of the kernel, by its number in the kernel's BTF.
pub fn load_for_function(
    hook: (Hook, u32),
    name: &str,
    instructions: &[Instruction],
    maps: &[(usize, &Map)],
) -> io::Result<OwnedFd> {
    /// `BPF_PSEUDO_MAP_FD`, the source register of an instruction that loads a map.
    const MAP_FD: u8 = 1 << 4;
    let mut instructions = instructions.to_vec();
    for (at, map) in maps {
        let instruction = instructions.get_mut(*at).ok_or(io::ErrorKind::InvalidInput)?;
        instruction[1] |= MAP_FD;
        instruction[4..].copy_from_slice(&map.as_fd().as_raw_fd().to_ne_bytes());
    }
    try_load(hook, name, &instructions, &mut []).map_err(|error| {
        let mut log = vec![0; 1 << 20];
        match try_load(hook, name, &instructions, &mut log) {
            Err(_) => io::Error::new(error.kind(), format!("{name}: {error}: {}", last(&log))),
            Ok(_) => error,
        }
    })
}

/// The last lines of the verifier's log before its statistics.
fn last(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default());
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    lines[lines.len().saturating_sub(2)..].join("; ")
}

fn try_load(
    (hook, function): (Hook, u32),
    name: &str,
    instructions: &[Instruction],
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    let license = c"GPL";
    let mut attr = LoadProgram {
        program_type: hook.program_type(),
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        attach_type: hook.attach_type(),
        function,
        ..LoadProgram::default()
    };
    if !log.is_empty() {
        (attr.log_level, attr.log_size) = (1, log.len() as u32);
        attr.log = log.as_mut_ptr() as u64;
    }
    // The last byte stays NUL.
    attr.name.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
    // SAFETY: `instructions`, `license` and `log` outlive the call. The kernel only reads `count`
    // instructions and a text that ends with NUL, and writes at most `log_size` bytes.
    let fd = unsafe { bpf(PROG_LOAD, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

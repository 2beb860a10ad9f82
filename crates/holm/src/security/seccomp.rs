//! The system call filter: which calls a guest is refused, and why.
//!
//! Refused are calls that the user namespace leaves open, and calls for the host's administrator:
//! the kernel would refuse most of the latter too, but only in code that a guest need not reach.
//! ENOSYS, as of a kernel without the call, is for calls that programs probe and can do without;
//! EPERM is what the kernel itself would return.
//!
//! Where arguments are looked at, the call leaves the kernel's bitmap of calls that are allowed
//! whatever their arguments, and runs the program each time: `socket` and `setsockopt` only.
//!
//! Allowed on purpose: `unshare` and `clone` of user namespaces (nested containers), `personality`,
//! `ptrace`, `reboot` (of the guest's pid namespace), `adjtimex` (reading; the kernel refuses the
//! rest), `ioctl` (an argument check would cost each one; TIOCSTI needs a terminal of the host, and
//! none ever enters a guest).

use holm_sys::seccomp::Instruction;

use super::Error;
use super::bpf::{self, ARCH_I386, ARCH_X86_64, Test, Verdict};
use crate::config::{Arch, Security};

const EPERM: u16 = 1;
const ENOSYS: u16 = 38;
const AF_NETLINK: u32 = 16;
const AF_VSOCK: u32 = 40;
const AF_XDP: u32 = 44;
const NETLINK_SOCK_DIAG: u32 = 4;
const SOL_PACKET: u32 = 263;
const PACKET_RX_RING: u32 = 5;
const PACKET_TX_RING: u32 = 13;
/// The first arguments of socketcall(2) that make a socket, and set an option of one.
const SYS_SOCKET: u32 = 1;
const SYS_SETSOCKOPT: u32 = 14;
/// `__X32_SYSCALL_BIT`: the x32 ABI, which nothing uses and which has kernel bugs of its own.
const X32: u32 = 0x4000_0000;

/// A refused call: its number on `x86_64` and on i386 (where there is one), and what it returns.
struct Rule {
    call: &'static str,
    x86_64: Option<u32>,
    i386: Option<u32>,
    verdict: Verdict,
}

const fn rule(call: &'static str, x86_64: Option<u32>, i386: Option<u32>, errno: u16) -> Rule {
    Rule { call, x86_64, i386, verdict: Verdict::Errno(errno) }
}

/// Sorted by subject. Numbers from the kernel's `syscall_64.tbl` and `syscall_32.tbl`.
const RULES: &[Rule] = &[
    // The host's kernel: its image, its modules, its log.
    rule("kexec_load", Some(246), Some(283), EPERM),
    rule("kexec_file_load", Some(320), None, EPERM),
    rule("create_module", Some(174), Some(127), EPERM),
    rule("init_module", Some(175), Some(128), EPERM),
    rule("finit_module", Some(313), Some(350), EPERM),
    rule("delete_module", Some(176), Some(129), EPERM),
    // Removed from the kernel; listed so that their neighbours form one range.
    rule("get_kernel_syms", Some(177), Some(130), EPERM),
    rule("query_module", Some(178), None, EPERM),
    // With dmesg_restrict=0 anybody may read it: the host's log is not the guest's to see.
    rule("syslog", Some(103), Some(103), EPERM),
    // The host's hardware and clock.
    rule("iopl", Some(172), Some(110), EPERM),
    rule("ioperm", Some(173), Some(101), EPERM),
    rule("settimeofday", Some(164), Some(79), EPERM),
    rule("stime", None, Some(25), EPERM),
    rule("clock_settime", Some(227), Some(264), EPERM),
    rule("clock_settime64", None, Some(404), EPERM),
    // The host's disks and accounting. open_by_handle_at bypasses the permissions of directories.
    rule("swapon", Some(167), Some(87), EPERM),
    rule("swapoff", Some(168), Some(115), EPERM),
    rule("acct", Some(163), Some(51), EPERM),
    rule("quotactl", Some(179), Some(131), EPERM),
    rule("quotactl_fd", Some(443), Some(443), EPERM),
    rule("open_by_handle_at", Some(304), Some(342), EPERM),
    // A key request makes the host's kernel start a program of the host's, and checkpoints lose
    // keys. ENOSYS, because runc and systemd go on without a keyring then; after EPERM runc stops.
    rule("add_key", Some(248), Some(286), ENOSYS),
    rule("request_key", Some(249), Some(287), ENOSYS),
    rule("keyctl", Some(250), Some(288), ENOSYS),
    // Tracing and programming the kernel. systemd takes bpf's EPERM as "no device and address
    // filters"; runc and crun do so inside a user namespace.
    rule("bpf", Some(321), Some(357), EPERM),
    rule("perf_event_open", Some(298), Some(336), EPERM),
    // Its operations bypass the filter (a ring can make the sockets refused below), it has had more
    // exploits than any other call in recent years, and CRIU cannot checkpoint a ring. Programs
    // probe it.
    rule("io_uring_setup", Some(425), Some(425), ENOSYS),
    rule("io_uring_enter", Some(426), Some(426), ENOSYS),
    rule("io_uring_register", Some(427), Some(427), ENOSYS),
];

/// VM sockets are not per network namespace: they reach the hypervisor and other machines on it.
/// The kernel charges the rings of `AF_XDP` sockets to nobody.
const SOCKET: Rule = Rule {
    call: "socket(AF_VSOCK or AF_XDP)",
    x86_64: Some(41),
    i386: Some(359),
    verdict: Verdict::If(&[&[(0, &[AF_VSOCK, AF_XDP])]], EPERM),
};

/// The same, and `sock_diag` (`net.hide-sockets`): it lists the sockets of the network namespace.
const SOCKET_WITHOUT_LISTS: Rule = Rule {
    call: "socket(AF_VSOCK or AF_XDP, or NETLINK_SOCK_DIAG)",
    verdict: Verdict::If(
        &[&[(0, &[AF_VSOCK, AF_XDP])], &[(0, &[AF_NETLINK]), (2, &[NETLINK_SOCK_DIAG])]],
        EPERM,
    ),
    ..SOCKET
};

/// The kernel charges the memory of packet rings to nobody: one guest could take all of the host's,
/// and the OOM killer would not see it.
const PACKET_RINGS: Rule = Rule {
    call: "setsockopt(PACKET_RX_RING or PACKET_TX_RING)",
    x86_64: Some(54),
    i386: Some(366),
    verdict: Verdict::If(&[&[(1, &[SOL_PACKET]), (2, &[PACKET_RX_RING, PACKET_TX_RING])]], EPERM),
};

/// Delaying another thread's page fault at will is a part of many kernel exploits.
const USERFAULTFD: Rule = rule("userfaultfd", Some(323), Some(374), ENOSYS);

/// socketcall hides the address family and the option behind a pointer, which no filter can follow,
/// so making sockets and setting options with it is refused in a guest of the host's own
/// architecture: musl, and glibc built for kernels since 4.3, call socket and setsockopt itself. A
/// 32-bit guest keeps it, since its glibc has no other way: there `AF_VSOCK` is closed only as far
/// as the host has no VM sockets, and packet rings are open.
const SOCKETCALL: Rule = Rule {
    call: "socketcall(SYS_SOCKET or SYS_SETSOCKOPT)",
    x86_64: None,
    i386: Some(102),
    verdict: Verdict::If(&[&[(0, &[SYS_SOCKET, SYS_SETSOCKOPT])]], EPERM),
};

/// The filter of a guest, compiled at each start in a few microseconds. With `hides_sockets` it
/// refuses what lists the sockets of a network namespace, but to 32-bit guests' socketcall.
pub fn seccomp(config: &Security, arch: Arch, hides_sockets: bool) -> Vec<Instruction> {
    let mut rules: Vec<&Rule> = RULES.iter().collect();
    rules.push(if hides_sockets { &SOCKET_WITHOUT_LISTS } else { &SOCKET });
    if !config.userfaultfd {
        rules.push(&USERFAULTFD);
    }
    if !config.packet_rings {
        rules.push(&PACKET_RINGS);
    }
    if arch == Arch::Native {
        rules.push(&SOCKETCALL);
    }
    let pick = |number: fn(&Rule) -> Option<u32>| -> Vec<(u32, Verdict)> {
        rules.iter().filter_map(|rule| Some((number(rule)?, rule.verdict))).collect()
    };
    let mut native = bpf::ranges(&pick(|rule| rule.x86_64));
    native.push(bpf::Range { from: X32, verdict: Verdict::Errno(ENOSYS) });
    let compat = bpf::ranges(&pick(|rule| rule.i386));
    bpf::compile(&[(ARCH_X86_64, native), (ARCH_I386, compat)], Verdict::Errno(ENOSYS))
}

/// Installs the filter for the calling thread and its children; needs `CAP_SYS_ADMIN` in the
/// guest's user namespace, and does not set `no_new_privs`, so that sudo works.
pub fn install(filter: &[Instruction]) -> Result<(), Error> {
    holm_sys::seccomp::install(filter).map_err(Error::Filter)
}

/// A refused call, for tests.
#[derive(Debug)]
pub struct Refused {
    /// Its name, in parentheses the arguments with which it is refused.
    pub call: &'static str,
    /// Its number on `x86_64`.
    pub x86_64: Option<u32>,
    /// Its number on i386.
    pub i386: Option<u32>,
    /// What it fails with.
    pub errno: u16,
    /// First arguments with which it is refused; the others do not matter.
    pub arguments: Vec<Vec<u32>>,
}

/// Every call that a guest is refused by default.
pub fn refused() -> impl Iterator<Item = Refused> {
    RULES.iter().chain([&SOCKET, &USERFAULTFD, &PACKET_RINGS, &SOCKETCALL]).map(|rule| {
        let (lists, errno): (&[&[Test]], u16) = match rule.verdict {
            Verdict::Errno(errno) => (&[&[]], errno),
            Verdict::If(lists, errno) => (lists, errno),
            Verdict::Allow => unreachable!("a rule refuses"),
        };
        let Rule { call, x86_64, i386, .. } = *rule;
        let arguments = lists.iter().copied().flat_map(arguments).collect();
        Refused { call, x86_64, i386, errno, arguments }
    })
}

/// Every combination of arguments that passes the tests.
fn arguments(tests: &[Test]) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for (at, values) in tests {
        let with = |before: &Vec<u32>, value: u32| {
            let mut arguments = before.clone();
            arguments.resize(usize::from(*at), u32::MAX);
            arguments.push(value);
            arguments
        };
        all = all.iter().flat_map(|a| values.iter().map(move |v| with(a, *v))).collect();
    }
    all
}

#[cfg(test)]
mod tests;

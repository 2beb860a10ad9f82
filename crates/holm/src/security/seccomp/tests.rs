use super::*;

/// What the kernel does with a call whose other arguments are 0: the returned value of the filter.
fn run(program: &[Instruction], arch: u32, number: u32, first: u64) -> u32 {
    run_with(program, arch, number, &[first, 0, 0])
}

fn run_with(program: &[Instruction], arch: u32, number: u32, arguments: &[u64]) -> u32 {
    let mut data = Vec::new();
    data.extend(number.to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0u64.to_le_bytes());
    data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
    let (mut at, mut acc) = (0, 0);
    loop {
        let i = program[at];
        at += 1;
        let jump = match i.code {
            0x20 => {
                let from = i.k as usize;
                acc = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                0
            }
            0x15 if acc == i.k => i.jt,
            0x35 if acc >= i.k => i.jt,
            0x15 | 0x35 => i.jf,
            0x06 => return i.k,
            code => panic!("code {code:#x}"),
        };
        at += usize::from(jump);
    }
}

const ALLOW: u32 = 0x7fff_0000;
fn errno(n: u16) -> u32 {
    0x0005_0000 | u32::from(n)
}

fn native() -> Vec<Instruction> {
    seccomp(&Security::default(), Arch::Native, false)
}

#[test]
fn exactly_the_rules_are_refused() {
    let program = native();
    for arch in [ARCH_X86_64, ARCH_I386] {
        for number in 0..600 {
            let rule = refused().find(|r| {
                number == if arch == ARCH_X86_64 { r.x86_64 } else { r.i386 }.unwrap_or(u32::MAX)
            });
            let got = run(&program, arch, number, 0);
            let want = match &rule {
                Some(rule) if !rule.call.contains('(') => errno(rule.errno),
                _ => ALLOW,
            };
            assert_eq!(got, want, "arch {arch:#x} call {number} {rule:?}");
            for arguments in rule.iter().flat_map(|rule| &rule.arguments) {
                let all: Vec<u64> =
                    arguments.iter().copied().map(u64::from).chain([0; 3]).collect();
                let got = run_with(&program, arch, number, &all);
                assert_eq!(got, errno(rule.as_ref().unwrap().errno), "{rule:?} {arguments:?}");
            }
        }
    }
}

#[test]
fn numbers_are_the_headers() {
    // Spot checks against asm/unistd_64.h and asm/unistd_32.h, by hand.
    let program = native();
    let table: &[(&str, u32, u32, u64, u32)] = &[
        ("getpid", ARCH_X86_64, 39, 0, ALLOW),
        ("clone", ARCH_X86_64, 56, 0x1000_0000, ALLOW),
        ("personality", ARCH_X86_64, 135, 8, ALLOW),
        ("mount", ARCH_X86_64, 165, 0, ALLOW),
        ("reboot", ARCH_X86_64, 169, 0, ALLOW),
        ("finit_module", ARCH_X86_64, 313, 0, errno(1)),
        ("seccomp", ARCH_X86_64, 317, 0, ALLOW),
        ("userfaultfd", ARCH_X86_64, 323, 0, errno(38)),
        ("keyctl", ARCH_X86_64, 250, 0, errno(38)),
        ("socket AF_UNIX", ARCH_X86_64, 41, 1, ALLOW),
        ("socket AF_NETLINK", ARCH_X86_64, 41, 16, ALLOW),
        ("socket AF_VSOCK", ARCH_X86_64, 41, 40, errno(1)),
        ("socket AF_VSOCK, dirty upper half", ARCH_X86_64, 41, 0xffff_ffff_0000_0028, errno(1)),
        ("getpid by x32", ARCH_X86_64, 0x4000_0000 + 39, 0, errno(38)),
        ("number -1, which tracers use", ARCH_X86_64, u32::MAX, 0, errno(38)),
        ("getpid", ARCH_I386, 20, 0, ALLOW),
        ("mount", ARCH_I386, 21, 0, ALLOW),
        ("socket AF_XDP", ARCH_X86_64, 41, 44, errno(1)),
        ("socket AF_PACKET", ARCH_X86_64, 41, 17, ALLOW),
        ("socket AF_VSOCK", ARCH_I386, 359, 40, errno(1)),
        ("socketcall setsockopt", ARCH_I386, 102, 14, errno(1)),
        ("socketcall bind", ARCH_I386, 102, 2, ALLOW),
        ("socketcall socket", ARCH_I386, 102, 1, errno(1)),
        ("kexec_load", ARCH_I386, 283, 0, errno(1)),
        ("finit_module", ARCH_I386, 350, 0, errno(1)),
        ("getpid of arm64", 0xc000_00b7, 172, 0, errno(38)),
    ];
    for (call, arch, number, first, want) in table {
        assert_eq!(run(&program, *arch, *number, *first), *want, "{call}");
    }
}

#[test]
fn a_32_bit_guest_makes_sockets_by_socketcall() {
    let program = seccomp(&Security::default(), Arch::I686, false);
    assert_eq!(run(&program, ARCH_I386, 102, 1), ALLOW);
    assert_eq!(run(&program, ARCH_I386, 283, 0), errno(1));
    assert_eq!(run(&program, ARCH_X86_64, 246, 0), errno(1));
}

#[test]
fn packet_rings_by_policy() {
    let (closed, config) = (native(), Security { packet_rings: true, ..Security::default() });
    let open = seccomp(&config, Arch::Native, false);
    for (level, option, want) in [
        (263, 5, errno(1)),                       // PACKET_RX_RING
        (263, 13, errno(1)),                      // PACKET_TX_RING
        (263, 10, ALLOW),                         // PACKET_VERSION
        (263, 4, ALLOW),                          // PACKET_AUXDATA, one less
        (263, 6, ALLOW),                          // PACKET_STATISTICS, one more
        (1, 5, ALLOW),                            // SOL_SOCKET, SO_DONTROUTE
        (6, 13, ALLOW),                           // IPPROTO_TCP, TCP_CONGESTION
        (0x1_0000_0107, 0x7_0000_0005, errno(1)), // the kernel ignores the upper halves
    ] {
        for (arch, number) in [(ARCH_X86_64, 54), (ARCH_I386, 366)] {
            let arguments = [3, level, option];
            assert_eq!(run_with(&closed, arch, number, &arguments), want, "{arguments:?}");
            assert_eq!(run_with(&open, arch, number, &arguments), ALLOW, "{arguments:?}");
        }
    }
}

#[test]
fn userfaultfd_by_policy() {
    let config = Security { userfaultfd: true, ..Security::default() };
    let program = seccomp(&config, Arch::Native, false);
    assert_eq!(run(&program, ARCH_X86_64, 323, 0), ALLOW);
    assert_eq!(run(&program, ARCH_I386, 374, 0), ALLOW);
}

#[test]
fn lists_of_sockets_by_policy() {
    let hidden = seccomp(&Security::default(), Arch::Native, true);
    for (family, protocol, want) in [
        (16, 4, errno(1)), // AF_NETLINK, NETLINK_SOCK_DIAG
        (16, 0, ALLOW),    // NETLINK_ROUTE
        (16, 12, ALLOW),   // NETLINK_NETFILTER
        (2, 4, ALLOW),     // AF_INET, IPPROTO_IPIP
        (40, 0, errno(1)), // AF_VSOCK
        (44, 4, errno(1)), // AF_XDP
    ] {
        for (arch, number) in [(ARCH_X86_64, 41), (ARCH_I386, 359)] {
            let arguments = [family, 3, protocol];
            assert_eq!(run_with(&hidden, arch, number, &arguments), want, "{arguments:?}");
        }
    }
    assert_eq!(run_with(&native(), ARCH_X86_64, 41, &[16, 3, 4]), ALLOW);
    assert_eq!(run(&hidden, ARCH_X86_64, 250, 0), errno(38));
}

#[test]
fn short_enough_to_load_quickly() {
    // 0.8 us per instruction at every start.
    assert!(native().len() < 115, "{}", native().len());
}

#[test]
fn the_kernel_takes_it() {
    // In a thread of its own, which keeps the filter until it ends.
    std::thread::spawn(|| {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        install(&native()).unwrap();
        let family = rustix::net::AddressFamily::from_raw(40);
        let socket = rustix::net::socket(family, rustix::net::SocketType::STREAM, None);
        assert_eq!(socket.unwrap_err(), rustix::io::Errno::PERM);
    })
    .join()
    .unwrap();
}

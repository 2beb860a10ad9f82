/// Where the kernel calls programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the kernel's BPF_CGROUP_*, and of calls")]
pub enum Hook {
    Ingress,
    Egress,
    SockCreate,
    SockRelease,
    SockOps,
    Bind4,
    Bind6,
    Connect4,
    Connect6,
    Sendmsg4,
    Sendmsg6,
    Recvmsg4,
    Recvmsg6,
    Getpeername4,
    Getpeername6,
    Getsockname4,
    Getsockname6,
    SkLookup,
    TcxIngress,
    /// A classifier of a qdisc: these programs are attached by netlink.
    Classifier,
    /// The function of an LSM, for sockets of a cgroup.
    LsmCgroup,
}

impl Hook {
    /// `enum bpf_prog_type`.
    pub(super) fn program_type(self) -> u32 {
        match self {
            Self::TcxIngress | Self::Classifier => 3,
            Self::Ingress | Self::Egress => 8,
            Self::SockCreate | Self::SockRelease => 9,
            Self::SockOps => 13,
            Self::LsmCgroup => 29,
            Self::SkLookup => 30,
            _ => 18,
        }
    }

    /// `enum bpf_attach_type`.
    pub(super) fn attach_type(self) -> u32 {
        match self {
            Self::Ingress | Self::Classifier => 0,
            Self::Egress => 1,
            Self::SockCreate => 2,
            Self::SockOps => 3,
            Self::Bind4 => 8,
            Self::Bind6 => 9,
            Self::Connect4 => 10,
            Self::Connect6 => 11,
            Self::Sendmsg4 => 14,
            Self::Sendmsg6 => 15,
            Self::Recvmsg4 => 19,
            Self::Recvmsg6 => 20,
            Self::Getpeername4 => 29,
            Self::Getpeername6 => 30,
            Self::Getsockname4 => 31,
            Self::Getsockname6 => 32,
            Self::SockRelease => 34,
            Self::SkLookup => 36,
            Self::LsmCgroup => 43,
            Self::TcxIngress => 46,
        }
    }
}

//! What each map and program of [`holm_bpf`] is to the kernel.

use holm_bpf::{Map, Program};
use holm_sys::bpf::{self, Hook, MapKind};

/// How many guests, and how many addresses of all of them: eight of each family, two for loopback.
const GUESTS: u32 = 1024;
const ADDRESSES: u32 = GUESTS * 18;
/// Of 256 guests with as many as one can have.
const LISTENERS: u32 = 1 << 18;
/// That all guests can have made. Of 28232 ports that the kernel chooses from some are left then.
const SOCKETS: u32 = 20480;
const QUESTIONS: u32 = 1 << 14;
/// As many are remembered of what is seldom.
const LAST: u32 = 1 << 12;
/// The program that is attached to interfaces, one by one.
pub const STEER: &str = "steer";

/// What kind of map it is, and how large.
pub fn map_kind(map: Map) -> MapKind {
    match map {
        Map::Guests | Map::Listening | Map::Caps => MapKind::Hash(GUESTS),
        Map::Held => MapKind::Array(GUESTS),
        Map::Counters => MapKind::PerCpuArray(GUESTS),
        Map::Searching => MapKind::PerCpuArray(1),
        Map::Makers => MapKind::Hash(SOCKETS),
        Map::Owners => MapKind::Hash(ADDRESSES),
        Map::Listeners => MapKind::SockHash(LISTENERS),
        Map::Counted | Map::Any | Map::Names => MapKind::SkStorage(false),
        Map::Sharing | Map::Elsewhere => MapKind::SkStorage(true),
        Map::Asked => MapKind::LruHash(QUESTIONS),
        Map::Told | Map::Unserved | Map::Hosts => MapKind::LruHash(LAST),
        // Those of programs at single interfaces are made with them.
        Map::Tracking | Map::Port | Map::Departures => MapKind::Hash(1),
    }
}

/// Where a program is attached; `None` for one of another name.
pub fn hook(program: &str) -> Option<Hook> {
    Some(match program {
        "ingress" => Hook::Ingress,
        "egress" => Hook::Egress,
        "sock_create" => Hook::SockCreate,
        "sock_ops" => Hook::SockOps,
        "sock_release" => Hook::SockRelease,
        "bind4" => Hook::Bind4,
        "bind6" => Hook::Bind6,
        "connect4" => Hook::Connect4,
        "connect6" => Hook::Connect6,
        "sendmsg4" => Hook::Sendmsg4,
        "sendmsg6" => Hook::Sendmsg6,
        "recvmsg4" => Hook::Recvmsg4,
        "recvmsg6" => Hook::Recvmsg6,
        "getpeername4" => Hook::Getpeername4,
        "getpeername6" => Hook::Getpeername6,
        "getsockname4" => Hook::Getsockname4,
        "getsockname6" => Hook::Getsockname6,
        "sk_lookup" => Hook::SkLookup,
        STEER => Hook::TcxIngress,
        _ => return None,
    })
}

/// The maps that a program uses, each with the instruction that loads it.
pub fn used<'a>(program: &Program, maps: &'a [(Map, bpf::Map)]) -> Vec<(usize, &'a bpf::Map)> {
    let find = |wanted| maps.iter().find(|(kind, _)| *kind == wanted);
    let all = program.maps.iter();
    all.filter_map(|(at, wanted)| find(*wanted).map(|(_, map)| (*at, map))).collect()
}

#[cfg(test)]
mod tests {
    use holm_bpf::PROGRAMS;

    use super::*;

    #[test]
    fn each_program_has_a_hook() {
        for program in PROGRAMS {
            assert!(hook(program.name).is_some(), "{}", program.name);
        }
    }
}

//! Forwarding, packet filters, veth pairs.

use std::fs::{OpenOptions, read_to_string};
use std::process::Command;

use holm_sys::process::flags;
use rustix::net::netlink::NETFILTER;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::finding::Answer;
use super::ids::at_least;
use super::machine::Machine;
use crate::net::{self, Hook};
use crate::process::{call_for_output, run_in_child};

pub(super) fn forwarding(_: &Machine) -> Answer {
    const FILE: &str = "/proc/sys/net/ipv4/ip_forward";
    match read_to_string(FILE) {
        Ok(text) if text.trim() == "1" => Answer::Yes("on".to_owned()),
        Ok(_) if OpenOptions::new().write(true).open(FILE).is_ok() => Answer::Yes(
            "off; Holm turns it on for the first guest with a private network".to_owned(),
        ),
        Ok(_) => Answer::No("off, and cannot be turned on from here".to_owned()),
        Err(error) => Answer::No(format!("{FILE}: {error}")),
    }
}

/// Requests the ruleset's generation, which also loads the module, and runs `nft --version`.
pub(super) fn nftables(_: &Machine) -> Answer {
    const GET_GENERATION: u16 = (10 << 8) | 16; // NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN
    let message = message(GET_GENERATION, 0, &[0, 0, 0, 0]);
    if let Err(error) = request(Some(NETFILTER), &message) {
        return Answer::No(error);
    }
    match call_for_output(Command::new("nft").arg("--version")) {
        Ok(nft) => Answer::Yes(nft.printed.trim().to_owned()),
        Err(error) => Answer::No(format!("the kernel has it, but nft cannot be run: {error}")),
    }
}

/// Listens to a group of the kernel's packet log, in a network namespace that ends with the probe.
pub(super) fn packet_log(_: &Machine) -> Answer {
    const CONFIG: u16 = (4 << 8) | 1; // NFNL_SUBSYS_ULOG, NFULNL_MSG_CONFIG
    const BIND: [u8; 1] = [1]; // NFULNL_CFG_CMD_BIND
    Answer::from(run_in_child(flags::NEWNET, None, || {
        let mut body = vec![0; 4]; // struct nfgenmsg: group 0
        body.extend(attribute(1, &BIND)); // NFULA_CFG_CMD
        request(Some(NETFILTER), &message(CONFIG, 0, &body))?;
        Ok("the kernel tells the connections that guests open".to_owned())
    }))
}

/// Whether the kernel calls BPF programs as an LSM, and describes what they want to read.
pub(super) fn unix_names(_: &Machine) -> Answer {
    match net::are_unix_names_apart() {
        Ok(true) => Answer::Yes("BPF is an LSM: they reach their own alone".to_owned()),
        Ok(false) => Answer::No("BPF is no LSM of this kernel".to_owned()),
        Err(error) => Answer::No(error.to_string()),
    }
}

/// Looks for forward chains of others (Docker, ufw) that drop what they do not know.
pub(super) fn other_filters(_: &Machine) -> Answer {
    not_dropped(Hook::Forward, "packets")
}

/// Looks for input chains of others that do, if guests ask the host's own resolver.
pub(super) fn resolver_filters(_: &Machine) -> Answer {
    match net::is_resolver_on_host() {
        Ok(true) => not_dropped(Hook::Input, "queries"),
        Ok(false) => Answer::Yes("guests ask name servers elsewhere".to_owned()),
        Err(error) => Answer::No(error.to_string()),
    }
}

fn not_dropped(hook: Hook, what: &str) -> Answer {
    match net::blockers(hook).first() {
        None => Answer::Yes(format!("no other program's rules stop guests' {what}")),
        Some(blocker) => Answer::Partly(format!(
            "chain {} of table {} drops guests' {what}: {}",
            blocker.chain,
            blocker.table,
            blocker.remedy()
        )),
    }
}

pub(super) fn orphans(_: &Machine) -> Answer {
    // As many need gigabytes, which are charged to the guest.
    at_least("/proc/sys/net/ipv4/tcp_max_orphans", 1 << 20, "for all guests and the host")
}

/// Of the three ceilings of tcp(7) the last, above which the kernel resets connections.
pub(super) fn tcp_memory(_: &Machine) -> Answer {
    // Beyond all memory, so that what each guest is charged for ends it first.
    at_least("/proc/sys/net/ipv4/tcp_mem", 1 << 30, "pages for all guests and the host")
}

/// Makes a veth pair in a network namespace that ends with the probe.
pub(super) fn veth(_: &Machine) -> Answer {
    const NEW_LINK: u16 = 16;
    const CREATE: u16 = 0x400 | 0x200; // NLM_F_CREATE | NLM_F_EXCL
    Answer::from(run_in_child(flags::NEWNET, None, || {
        let mut body = vec![0; 16]; // struct ifinfomsg: any family, any index
        let kind = attribute(1, b"veth\0"); // IFLA_INFO_KIND
        body.extend(attribute(18, &kind)); // IFLA_LINKINFO
        request(None, &message(NEW_LINK, CREATE, &body))?;
        Ok("veth pairs can be made".to_owned())
    }))
}

/// A netlink message that wants an acknowledgement: header, then `body`.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    const REQUEST_ACK: u16 = 1 | 4;
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((flags | REQUEST_ACK).to_ne_bytes());
    message.extend([0; 8]); // sequence, port
    message.extend(body);
    message
}

/// A netlink attribute, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Sends `message` (to the routing family, or the protocol given) and returns the error of the
/// kernel's reply, if it has one.
fn request(protocol: Option<Protocol>, message: &[u8]) -> Result<(), String> {
    let text = |error: rustix::io::Errno| error.to_string();
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .map_err(text)?;
    send(&socket, message, SendFlags::empty()).map_err(text)?;
    let mut reply = [0; 4096];
    let (length, _) = recv(&socket, &mut reply, RecvFlags::empty()).map_err(text)?;
    judge_reply(&reply[..length])
}

/// A reply of type `NLMSG_ERROR` has a negative errno, or 0.
pub(super) fn judge_reply(reply: &[u8]) -> Result<(), String> {
    let number = |at: usize| {
        reply.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes)
    };
    let kind = number(4).ok_or("the kernel's reply is too short")? & 0xffff;
    match number(16) {
        Some(error) if kind == 2 && error != 0 => {
            Err(std::io::Error::from_raw_os_error(-error).to_string())
        }
        _ => Ok(()),
    }
}

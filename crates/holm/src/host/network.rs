//! Forwarding, packet filter, links.

use std::fs::{OpenOptions, read_to_string};
use std::process::Command;

use holm_sys::process::flags;
use rustix::net::netlink::NETFILTER;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::child;
use super::finding::Answer;
use super::machine::Machine;
use crate::net;

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

/// Asks for the ruleset's generation, which also loads the module where there is one; and for the program that writes rules.
pub(super) fn nftables(_: &Machine) -> Answer {
    const GET_GENERATION: u16 = (10 << 8) | 16; // NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN
    let message = request(GET_GENERATION, 0, &[0, 0, 0, 0]);
    if let Err(words) = ask(Some(NETFILTER), &message) {
        return Answer::No(words);
    }
    match Command::new("nft").arg("--version").output() {
        Ok(output) => Answer::Yes(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => Answer::No(format!("the kernel answers, but cannot run nft: {error}")),
    }
}

/// Looks for forward chains of others (Docker, ufw) that drop what they do not know.
pub(super) fn other_filters(_: &Machine) -> Answer {
    match net::blockers().first() {
        None => Answer::Yes("no other program's rules stop guests' packets".to_owned()),
        Some(blocker) => Answer::Partly(format!(
            "chain {} of table {} drops guests' packets: {}",
            blocker.chain,
            blocker.table,
            blocker.remedy()
        )),
    }
}

/// Makes a pair of links in a network namespace that ends with the probe.
pub(super) fn veth(_: &Machine) -> Answer {
    const NEW_LINK: u16 = 16;
    const CREATE: u16 = 0x400 | 0x200; // NLM_F_CREATE | NLM_F_EXCL
    Answer::from(child::run(flags::NEWNET, None, || {
        let mut body = vec![0; 16]; // struct ifinfomsg: any family, any index
        let kind = attribute(1, b"veth\0"); // IFLA_INFO_KIND
        body.extend(attribute(18, &kind)); // IFLA_LINKINFO
        ask(None, &request(NEW_LINK, CREATE, &body))?;
        Ok("pairs of links can be made".to_owned())
    }))
}

/// A netlink message that wants an acknowledgement: header, then `body`.
fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
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

/// Sends `message` (to the routing family, or the protocol given) and says how the first answer begins.
fn ask(protocol: Option<Protocol>, message: &[u8]) -> Result<(), String> {
    let words = |error: rustix::io::Errno| error.to_string();
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .map_err(words)?;
    send(&socket, message, SendFlags::empty()).map_err(words)?;
    let mut answer = [0; 4096];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty()).map_err(words)?;
    judge_answer(&answer[..length])
}

/// An answer of type `NLMSG_ERROR` carries a negative error number, or 0.
pub(super) fn judge_answer(answer: &[u8]) -> Result<(), String> {
    let word = |at: usize| {
        answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes)
    };
    let kind = word(4).ok_or("the kernel's answer is too short")? & 0xffff;
    match word(16) {
        Some(error) if kind == 2 && error != 0 => {
            Err(std::io::Error::from_raw_os_error(-error).to_string())
        }
        _ => Ok(()),
    }
}

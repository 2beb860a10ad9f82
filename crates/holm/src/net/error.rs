//! The errors of this room.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use rustix::io::Errno;

use super::netlink::Refused;
use super::request::Request;
use crate::config::show_rate;
use crate::record::Network;
use crate::{Code, Coded, Details, Failed};

/// An error of a guest's network.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the host could not be looked at.
    #[error(transparent)]
    Look(#[from] Failed),
    /// The kernel refused a step.
    #[error("network: {request} failed{}", hint(*errno))]
    Kernel {
        /// The step.
        request: Request,
        /// The kernel's error.
        #[source]
        errno: Errno,
    },
    /// The kernel refused a step that concerns one guest's interface.
    #[error("network interface {interface}: {request} failed{}", hint(*errno))]
    Interface {
        /// The host's interface.
        interface: String,
        /// The step.
        request: Request,
        /// The kernel's error.
        #[source]
        errno: Errno,
    },
    /// The guest's address is in use.
    #[error(
        "the address {address} is in use on this host already; set another one with net.address"
    )]
    AddressTaken {
        /// The guest's address.
        address: IpAddr,
    },
    /// An address that a guest has, of which one shares it and the other does not.
    #[error(
        "{address} is another guest's, and only one of both shares it; set net.share-address for \
         both, which are in one Holm root, or another net.address"
    )]
    NotShared {
        /// The address.
        address: IpAddr,
    },
    /// An address in `net.address` that no guest can have.
    #[error("net.address: {address} cannot be a guest's address ({why})")]
    BadAddress {
        /// The address.
        address: IpAddr,
        /// Why not.
        why: &'static str,
    },
    /// An address in `net.address` that the host has itself.
    #[error(
        "net.address: {address} is an address of this host itself, so no packet would reach the \
         guest; set another one, or publish ports of the guest there with net.publish"
    )]
    HostsAddress {
        /// The address.
        address: IpAddr,
    },
    /// An address in `net.address` of a native guest that the host does not have.
    #[error(
        "net.address: this host has no address {address}, and a native guest has addresses of the \
         host; set net.interface to the one that shall have it while the guest runs, add it \
         yourself (`ip address add {address} dev INTERFACE`), or set another one"
    )]
    NotHosts {
        /// The address.
        address: IpAddr,
    },
    /// The interface in `net.interface` is not there.
    #[error("net.interface: this host has no interface {interface} (`ip link` lists them)")]
    NoInterface {
        /// The interface.
        interface: String,
    },
    /// An item of `net.lan` that cannot be.
    #[error("net.lan: {parent}: {why}")]
    Lan {
        /// The interface of the host's.
        parent: String,
        /// Why a guest cannot be there.
        why: String,
    },
    /// The BPF program at an interface.
    #[error(
        "{interface}: the BPF program that {task} is not in effect (it needs CAP_BPF, \
         CAP_NET_ADMIN and a kernel from 6.12 with CONFIG_NET_CLS_BPF: `holm doctor bpf`)"
    )]
    InterfaceProgram {
        /// The interface.
        interface: String,
        /// What it does.
        task: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The programs that are loaded work on maps of another form.
    #[error(
        "the BPF programs of native guests are those of another version of Holm, whose map {map} \
         has another form; stop the native guests of this Holm root, and start them again"
    )]
    OtherPrograms {
        /// The map.
        map: &'static str,
    },
    /// The BPF programs of native guests.
    #[error(
        "cannot {what} {object} (net.mode = \"native\" needs CAP_BPF, CAP_NET_ADMIN and a kernel \
         from 6.12 with CONFIG_CGROUP_BPF: `holm doctor bpf`)"
    )]
    Programs {
        /// What was tried.
        what: &'static str,
        /// With what.
        object: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another program listens where the connections of a guest would be told.
    #[error(
        "net.flows: another program listens to group {group} of the kernel's packet log (NFLOG), \
         in which the guest's connections are told; end that program, or set net.flows = false"
    )]
    FlowsTaken {
        /// The group.
        group: u16,
    },
    /// The uplink is not known.
    #[error("the uplink, in {}: {why}", file.display())]
    Uplink {
        /// The file that says which it is.
        file: PathBuf,
        /// What is missing or wrong.
        why: String,
    },
    /// Somebody else has set the uplink's root qdisc.
    #[error(
        "{interface} has a root qdisc ({kind}) that is not Holm's, which the rates of guests need \
         (`tc qdisc show dev {interface}`); remove it (`tc qdisc del dev {interface} root`), or \
         name another interface in uplink.toml of the Holm root"
    )]
    OtherQdisc {
        /// The interface.
        interface: String,
        /// The kind of its qdisc.
        kind: String,
    },
    /// More than the uplink has is reserved.
    #[error(
        "net.reserve: {} do not fit into the {} of {interface}: {} are reserved for the host and \
         {} for other guests, which leaves {}; reserve less, or say what {interface} has (rate in \
         uplink.toml of the Holm root)",
        show_rate(*reserve), show_rate(*rate), show_rate(*host), show_rate(*reserved),
        show_rate(rate.saturating_sub(*host).saturating_sub(*reserved))
    )]
    OverReserved {
        /// What the guest reserves, in bits in a second, as the others.
        reserve: u64,
        /// The uplink.
        interface: String,
        /// Its rate.
        rate: u64,
        /// What is reserved for the host.
        host: u64,
        /// What other guests have reserved.
        reserved: u64,
    },
    /// No address is left.
    #[error(
        "the address pool 10.{second}.0.0/16 of this Holm root is empty (context id {context} of \
         at most {max}); remove a guest that is no longer needed",
        max = super::addresses::ADDRESS_MAX
    )]
    AddressesExhausted {
        /// The second byte of the pool's addresses.
        second: u16,
        /// The context id that has no address.
        context: u32,
    },
    /// A process listens on a published port.
    #[error(
        "port {port} cannot be published: {owner} listens there on this host; choose another port \
         or stop it"
    )]
    PortTaken {
        /// The port, `8080/tcp`, with the host's address if one was given.
        port: String,
        /// Who uses it.
        owner: String,
    },
    /// Another guest publishes the port.
    #[error(
        "port {port} cannot be published: {guest} publishes it already; choose another port, or \
         stop that guest"
    )]
    PortOfGuest {
        /// The port.
        port: String,
        /// Who uses it.
        guest: String,
    },
    /// Publishing on an address that is not the host's.
    #[error("port {port} cannot be published: this host has no address {address}")]
    NoSuchAddress {
        /// The port.
        port: String,
        /// The address.
        address: IpAddr,
    },
    /// The published ports do not fit into the interface's alias.
    #[error(
        "net.publish: {length} bytes of ports do not fit into the {max} that the kernel stores \
         with an interface; publish ranges of ports (9000-9010:9000) instead of scattered ones",
        max = super::published::ALIAS_MAX
    )]
    TooManyPorts {
        /// Bytes needed.
        length: usize,
    },
    /// A kernel setting could not be read or written.
    #[error("cannot {what} {}", path.display())]
    Setting {
        /// "read" or "write".
        what: &'static str,
        /// The file below /proc/sys.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The nft program could not be run.
    #[error(
        "cannot run nft, which makes the ruleset of private networks (Debian: apt install nftables)"
    )]
    NftMissing(#[source] io::Error),
    /// The nft program refused the rules.
    #[error("nft refused the rules of table inet {table}: {message}")]
    Nft {
        /// The table.
        table: String,
        /// What nft printed.
        message: String,
    },
    /// The instances of this host.
    #[error("cannot read {path}")]
    Instances {
        /// Their directory.
        path: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The ruleset's lock.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The responder's socket.
    #[error("cannot listen for DHCP requests on {interface}")]
    Responder {
        /// The host's interface.
        interface: String,
        /// The kernel's error.
        source: Errno,
    },
}

/// A remedy, for errors with a usual cause.
fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => {
            " (CAP_NET_ADMIN over the network namespace is needed: run as root)"
        }
        Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => {
            " (this kernel does not support it: `holm doctor` shows the missing feature; \
             net.mode = \"host\" does not need it)"
        }
        _ => "",
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Kernel { request: refused.request, errno: refused.errno }
    }
}

impl Error {
    /// Adds the interface.
    pub(super) fn interface(interface: &str, Refused { request, errno }: Refused) -> Self {
        Self::Interface { interface: interface.to_owned(), request, errno }
    }

    /// Adds the interface, and tells an address that is in use apart.
    pub(super) fn attach(network: &Network, refused: Refused) -> Self {
        let address = match refused.request {
            Request::RouteGuestV4 => Some(IpAddr::V4(network.guest_v4)),
            Request::RouteGuestV6 => network.guest_v6.map(IpAddr::V6),
            _ => None,
        };
        match address {
            Some(address) if refused.errno == Errno::EXIST => Self::AddressTaken { address },
            _ => Self::interface(&network.host_if, refused),
        }
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        let another_port = "choose another port, or stop what uses it";
        let in_use = |address: &IpAddr| Details::new(Code::AddressInUse).object(address);
        match self {
            Self::Look(failed) => failed.details(),
            Self::Kernel { request, .. } => Details::new(Code::NetworkFailed).object(request),
            Self::Interface { interface, .. }
            | Self::Responder { interface, .. }
            | Self::InterfaceProgram { interface, .. } => {
                Details::new(Code::NetworkFailed).object(interface)
            }
            Self::AddressTaken { address } => in_use(address).remedy("set another net.address"),
            Self::NotShared { address } => in_use(address)
                .remedy("set net.share-address for both, in one Holm root, or another net.address"),
            Self::BadAddress { address, why } => {
                Details::new(Code::AddressInvalid).object(address).reason(why)
            }
            Self::HostsAddress { address } => in_use(address)
                .reason("it is an address of this host itself")
                .remedy("set another net.address, or publish ports there with net.publish"),
            Self::NotHosts { address } => Details::new(Code::AddressNotFound)
                .object(address)
                .reason("a native guest has addresses of the host")
                .remedy("set net.interface, add it to an interface, or set another net.address"),
            Self::NoInterface { interface } => {
                Details::new(Code::NetworkFailed).object(interface).reason("there is none")
            }
            Self::Lan { parent, why } => {
                Details::new(Code::NetworkFailed).object(parent).reason(why)
            }
            Self::OtherPrograms { map } => Details::new(Code::NetworkFailed)
                .object(map)
                .remedy("stop the native guests of this Holm root, and start them again"),
            Self::Programs { object, .. } => Details::new(Code::NetworkFailed).object(object),
            Self::Uplink { file, why } => {
                Details::new(Code::UplinkUnknown).object(file.display()).reason(why)
            }
            Self::OtherQdisc { interface, kind } => Details::new(Code::QdiscInUse)
                .object(interface)
                .reason(format!("its root qdisc is {kind}"))
                .remedy(format!("tc qdisc del dev {interface} root")),
            Self::FlowsTaken { group } => Details::new(Code::NetworkFailed)
                .object(format!("group {group} of NFLOG"))
                .remedy("end the program that listens there, or set net.flows = false"),
            Self::OverReserved { interface, .. } => Details::new(Code::OverReserved)
                .object(interface)
                .remedy("reserve less, or say what the uplink has in uplink.toml"),
            Self::AddressesExhausted { second, .. } => Details::new(Code::AddressesExhausted)
                .object(format!("10.{second}.0.0/16"))
                .remedy("remove a guest that is no longer needed"),
            Self::PortTaken { port, owner } => Details::new(Code::PortInUse)
                .object(port)
                .reason(format!("{owner} listens there"))
                .remedy(another_port),
            Self::PortOfGuest { port, guest } => Details::new(Code::PortInUse)
                .object(port)
                .reason(format!("{guest} publishes it"))
                .remedy(another_port),
            Self::NoSuchAddress { address, .. } => {
                Details::new(Code::AddressNotFound).object(address)
            }
            Self::TooManyPorts { .. } => Details::new(Code::TooManyPorts)
                .object("net.publish")
                .remedy("publish ranges of ports (9000-9010:9000)"),
            Self::Setting { path, .. } | Self::Lock { path, .. } => {
                Details::new(Code::SystemError).object(path.display())
            }
            Self::Instances { path, .. } => Details::new(Code::SystemError).object(path),
            Self::NftMissing(_) => Details::new(Code::NftMissing)
                .object("nft")
                .remedy("install it (Debian: apt install nftables)"),
            Self::Nft { table, message } => {
                Details::new(Code::RulesetRefused).object(format!("inet {table}")).reason(message)
            }
        }
    }
}

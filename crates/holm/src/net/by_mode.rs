//! Dispatch by mode: the only place that maps a mode to its implementation.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode as FileMode, OFlags, openat};

use super::access;
use super::dns;
use super::error::Error;
use super::flows::listen;
use super::host::Host;
use super::lan;
use super::mode::{Files, Mode, Responder};
use super::names;
use super::native::{self, Native};
use super::netlink::Socket;
use super::none::NoNetwork;
use super::plan::{self, plan_addresses};
use super::private::{self, Private};
use super::route::is_taken;
use super::shaping;
use super::traffic::Traffic;
use crate::Failed;
use crate::config::{Net, NetMode};
use crate::record::{Access, Network};
use crate::step;

fn implementation(network: &Network) -> &'static dyn Mode {
    match network.mode {
        NetMode::Private => &Private,
        NetMode::None => &NoNetwork,
        NetMode::Host => &Host,
        NetMode::Native => &Native,
    }
}

/// Plans a guest's network and checks that its published ports are free.
///
/// `instance` is 1 to 27: its guests have addresses in 10.97.0.0/16 to 10.123.0.0/16. Name servers,
/// the uplink's MTU and whether there is IPv6 depend on the current state of the host.
pub fn plan(instance: u8, context: u32, net: &Net) -> Result<Network, Error> {
    let mut network = plan_addresses(instance, context, net)?;
    network.dns = match net.dns.as_slice() {
        // A guest that reaches nobody needs no look at the host's.
        [] if net.mode == NetMode::None => Vec::new(),
        [] => dns::host_servers()?,
        own => own.to_vec(),
    };
    implementation(&network).complete(&mut network, net)?;
    network.shaping = shaping::plan(instance, net)?;
    Ok(network)
}

/// Refuses an address in `net.address` that no guest of this mode can have on this host.
pub fn check_address(mode: NetMode, address: IpAddr) -> Result<(), Error> {
    if mode == NetMode::Native {
        // Whether the host has it may change until the start.
        return native::check_address(address);
    }
    plan::check_address(address)?;
    private::check_not_hosts(&Socket::route()?, address)
}

/// Looks whether the addresses that a running guest has not had so far are free.
pub fn check_addresses(network: &Network, running: &Network) -> Result<(), Error> {
    if !has_veth(network) {
        return Ok(());
    }
    let own = |address| has_veth(running) && running.addresses().any(|it| it == address);
    let socket = Socket::route()?;
    for address in network.addresses().filter(|address| !own(*address)) {
        if is_taken(&socket, address)? {
            return Err(Error::AddressTaken { address });
        }
    }
    Ok(())
}

/// Whether something of the host's side leads into the guest's network namespace.
pub fn has_host_side(network: &Network) -> bool {
    has_veth(network) || !network.lan.is_empty()
}

/// Whether the guest has its own network namespace; otherwise it shares the host's.
pub fn has_own_namespace(network: &Network) -> bool {
    implementation(network).has_own_namespace()
}

/// Whether a veth pair connects the guest to the host. The ruleset protects such guests.
pub fn has_veth(network: &Network) -> bool {
    implementation(network).has_veth()
}

/// Gives a guest the rate at which it sends, its access rules, its name, and a native one its
/// addresses, before any process of it runs. `pool` opens the cgroup of the Holm root, `cgroup` is
/// the guest's below it, `root` the uid of guest root on the host.
pub fn admit<E: From<Error>>(
    network: &Network,
    pool: impl FnOnce() -> Result<OwnedFd, E>,
    cgroup: BorrowedFd<'_>,
    root: u32,
) -> Result<(), E> {
    shaping::add(network)?;
    let is_native = network.mode == NetMode::Native;
    // A private guest turns connection tracking on, which native ones then are tracked by too.
    if is_native || has_veth(network) && native::are_loaded(network.instance)? {
        let pool = pool()?;
        let mut tracks = !network.access.is_empty() || network.flows || has_veth(network);
        if is_native {
            native::admit(network, pool.as_fd(), cgroup, root)?;
            let instance = network.instance;
            let id = native::id(cgroup)?;
            tracks |= private::to_native::add(instance, id, || native::ids(instance))?;
        }
        if tracks || native::is_tracking()? {
            native::bound(network.instance, pool.as_fd())?;
            step::done("native-bound");
        }
        if is_native && network.flows {
            native::tell_flows(network, native::id(cgroup)?)?;
        }
    }
    // The addresses are the guest's by now, and no rules or name of another guest.
    if !network.access.is_empty() {
        access::set(network, cgroup)?;
    }
    names::add(network)?;
    Ok(())
}

/// Makes what can wait until a guest runs.
pub fn after_release(network: &Network) -> Result<(), Error> {
    match network.mode {
        NetMode::Native => {
            native::steer_everywhere(network.instance, || private::interfaces(network.instance))
        }
        _ => Ok(()),
    }
}

/// The network of a guest that runs after its addresses have changed to those of `net`; `None` if
/// they take effect at its next start.
pub fn readdressed(running: &Network, net: &Net) -> Result<Option<Network>, Error> {
    if (running.mode, net.mode) != (NetMode::Native, NetMode::Native)
        || running.shares_address != net.share_address
    {
        return Ok(None);
    }
    let Some(native) = native::in_order(&running.native, &net.address) else { return Ok(None) };
    let added = plan(running.instance, running.context, net)?.added;
    Ok(Some(native::changed(running, native, added)))
}

/// The network of a guest that runs after its rates have changed to those of `net`; `None` if they
/// take effect at its next start.
pub fn reshaped(running: &Network, net: &Net) -> Result<Option<Network>, Error> {
    if !matches!(running.mode, NetMode::Private | NetMode::Native) {
        return Ok(None);
    }
    let shaping = shaping::plan(running.instance, net)?;
    Ok(Some(Network { shaping, ..running.clone() }))
}

/// The network of a guest that runs after its access rules have changed to those of `net`; `None`
/// if they take effect at its next start.
pub fn with_access(running: &Network, net: &Net) -> Option<Network> {
    let has_rules = |mode| matches!(mode, NetMode::Private | NetMode::Native);
    let access = Access::of(net);
    (has_rules(running.mode) && has_rules(net.mode)).then(|| Network { access, ..running.clone() })
}

/// Gives a guest that runs the addresses, access rules and rates of `after`, which
/// [`readdressed`], [`with_access`] and [`reshaped`] have made of `before`.
pub fn change(
    before: &Network,
    after: &Network,
    cgroup: BorrowedFd<'_>,
    root: u32,
) -> Result<(), Error> {
    // What looks the same may have been recorded by a change that was killed.
    let rules = !before.access.is_empty() || !after.access.is_empty();
    if rules && before.native != after.native {
        // At no time has it an address without rules.
        let mut native = after.native.clone();
        native.extend(before.native.iter().filter(|it| !after.native.contains(it)));
        access::set(&Network { native, ..after.clone() }, cgroup)?;
    }
    if after.mode == NetMode::Native {
        native::change(before, after, cgroup, root)?;
        names::add(after)?;
    }
    if rules {
        access::set(after, cgroup)?;
        step::done("change-access");
    }
    if after.mode == NetMode::Native && !after.access.is_empty() {
        native::bound(after.instance, above(cgroup)?.as_fd())?;
    }
    if before.shaping.is_none() && after.shaping.is_none() {
        return Ok(());
    }
    shaping::add(after)?;
    step::done("reshape-class");
    match after.mode {
        NetMode::Native => native::receive_at_most(after)?,
        _ => private::reshape(after).and_then(|()| reach_native(after.instance))?,
    }
    match (&before.shaping, &after.shaping) {
        (Some(old), Some(new)) if old.uplink == new.uplink => Ok(()),
        _ => shaping::remove(before),
    }
}

/// The cgroup of the Holm root, above that of a guest.
fn above(cgroup: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(cgroup, "..", flags, FileMode::empty());
    Ok(opened.map_err(|errno| Failed::new("open", "the cgroup of the Holm root", errno))?)
}

/// Bounds the connections of native guests if the host has begun to track them; `network` is that
/// of one which runs. Returns whether they were not bounded before.
pub fn bound_connections<E: From<Error>>(
    network: &Network,
    pool: impl FnOnce() -> Result<OwnedFd, E>,
) -> Result<bool, E> {
    if network.mode != NetMode::Native || !is_attached(network)? || !native::is_tracking()? {
        return Ok(false);
    }
    Ok(native::bound(network.instance, pool()?.as_fd())?)
}

/// Whether the connections of a native guest with `net.flows` are told.
pub fn tells_flows(network: &Network, cgroup: BorrowedFd<'_>) -> Result<bool, Error> {
    native::tells_flows(network, native::id(cgroup)?)
}

/// Has the connections of a native guest that runs told again.
pub fn tell_flows(network: &Network, cgroup: BorrowedFd<'_>) -> Result<(), Error> {
    native::bound(network.instance, above(cgroup)?.as_fd())?;
    native::tell_flows(network, native::id(cgroup)?)
}

/// Takes back what [`admit`] has given a guest, after its last process has ended; succeeds if there
/// is nothing to take back.
pub fn dismiss(network: &Network, cgroup: BorrowedFd<'_>) -> Result<(), Error> {
    shaping::remove(network)?;
    names::remove(network)?;
    // Before another guest can have the addresses.
    if !network.access.is_empty() {
        access::remove(network.instance, network.context)?;
    }
    match network.mode {
        NetMode::Native => {
            let id = native::id(cgroup)?;
            private::to_native::forget(network.instance, id)?;
            if network.flows {
                native::forget_flows(network, id)?;
            }
            native::dismiss(network, cgroup, || private::interfaces(network.instance))
        }
        _ => Ok(()),
    }
}

/// Makes the host's side of a guest's network; `netns` is the guest's network namespace.
///
/// Called while the guest's init waits. Undoes itself if it fails.
pub fn attach(network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
    implementation(network).attach(network, netns)?;
    let instance = network.instance;
    let reached = if has_veth(network) {
        reach_native(instance).and_then(|()| native::steer_from(instance, network.host_index()))
    } else {
        Ok(())
    };
    reached.and_then(|()| lan::attach(network, netns)).inspect_err(|_| {
        let _ = implementation(network).detach(network);
    })
}

/// Lets private guests of an instance reach its native ones, if any run.
fn reach_native(instance: u8) -> Result<(), Error> {
    if !native::are_loaded(instance)? {
        return Ok(());
    }
    private::to_native::reach(instance, || native::ids(instance))
}

/// Loads the ruleset of an instance, with the published ports of its guests, if it is missing.
/// Returns whether it was.
pub fn restore_ruleset(instance: u8) -> Result<bool, Error> {
    let was_missing = private::restore_ruleset(instance)?;
    if was_missing {
        reach_native(instance)?;
    }
    Ok(was_missing)
}

/// Makes the guest's side of its network.
///
/// The calling thread must be in the guest's network namespace. `proc` is the guest's.
pub fn configure_inside(network: &Network, proc: BorrowedFd<'_>) -> Result<(), Error> {
    implementation(network).configure_inside(network, proc)?;
    lan::configure(network, proc)
}

/// Whether the host's side of a guest's network is in this network namespace.
pub fn is_attached(network: &Network) -> Result<bool, Error> {
    implementation(network).is_attached(network)
}

/// Removes what [`attach`] has made; succeeds if there is nothing to remove.
pub fn detach(network: &Network) -> Result<(), Error> {
    let lan = lan::detach(network);
    implementation(network).detach(network).and(lan)
}

/// Removes what a guest without a run record may have left on the host; succeeds if there is
/// nothing to remove.
pub fn detach_unrecorded(instance: u8, context: u32) -> Result<(), Error> {
    shaping::remove_unrecorded(instance, context)?;
    access::remove(instance, context)?;
    lan::detach_unrecorded(instance, context)?;
    private::detach(instance, context)
}

/// Removes what does not disappear by itself when a guest's last process has ended.
pub fn clean_up(network: &Network) -> Result<(), Error> {
    implementation(network).clean_up(network)
}

/// Removes everything that an instance without running guests has on the host.
pub fn destroy_instance(instance: u8) -> Result<(), Error> {
    native::destroy(instance)?;
    shaping::destroy(instance)?;
    access::destroy(instance)?;
    names::destroy(instance)?;
    lan::destroy(instance)?;
    private::destroy(instance)
}

/// What a guest that runs has sent and received; `None` if nobody counts that: in other modes than
/// private and native, and for a native guest that was started by a Holm which did not count.
pub fn traffic(network: &Network) -> Result<Option<Traffic>, Error> {
    match network.mode {
        NetMode::Private => private::traffic(network),
        NetMode::Native => native::traffic(network),
        NetMode::None | NetMode::Host => Ok(None),
    }
}

/// The boot files with a guest's network configuration.
pub fn files(network: &Network) -> Files {
    let mut files = implementation(network).files(network);
    files.networkd.extend(lan::networkd_units(network));
    files
}

/// By what a guest is answered that asks for its network; `None` for a mode without a responder.
/// The lease is [`Network::lease`].
pub fn responder(network: &Network) -> Result<Option<Responder>, Error> {
    implementation(network).responder(network)
}

/// The socket that tells a guest's monitor the connections which the guest opens, and the number of
/// its group; `None` without `net.flows`.
pub fn flows(network: &Network) -> Result<Option<(OwnedFd, u16)>, Error> {
    network.flows.then(|| listen(network)).transpose()
}

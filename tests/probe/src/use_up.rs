//! Takes all it can get of something that the machine has once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::netlink::{Table, set_up_loopback};
use holm_sys::process::{flags, unshare};
use holm_sys::use_up::{
    aio_context, huge_page, process_timer, semaphores, shared_memory, socket_by_socketcall,
};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{FlockOperation, MemfdFlags, flock, inotify, memfd_create};
use rustix::mount::{MountFlags, mount};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketType, bind, getsockname, ipproto, sendto, socket,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

/// Takes at most `most` of `what`, prints how many it has got and why no more, and keeps them until
/// its input ends.
pub fn use_up(what: &str, most: u64) {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    match what {
        "terminals" => keep(most, |_| open("/dev/ptmx")),
        "aio-contexts" => keep(most, |_| aio_context(4096)),
        "files" => keep(most, |_| open("/dev/null")),
        "pipes" => keep(most, |_| full_pipe()),
        "unix-sockets" => keep(most, |_| full_unix_sockets()),
        "udp-sockets" => keep(most, |_| full_udp_socket()),
        "tcp-sockets" => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            keep(most, |_| full_tcp_sockets(&listener));
        }
        "netlink-sockets" => keep(most, |_| full_netlink_socket()),
        "packet-sockets" => keep(most, |_| full_packet_socket()),
        "packet-rings-by-socketcall" => keep(most, |_| packet_ring()),
        "xdp-rings-by-socketcall" => keep(most, |_| xdp_ring()),
        "huge-pages" => keep(most, |_| huge_page(None)),
        "huge-files" => keep(most, |_| huge_file()),
        "memory-files" => keep(most, |_| full_memory_file()),
        "events" => keep(most, |_| Ok(eventfd(0, EventfdFlags::CLOEXEC)?)),
        "timers" => keep(most, |_| timer()),
        "process-timers" => keep(most, |_| process_timer()),
        "locks" => keep(most, |_| locked_file()),
        "epolls" => keep(most, |_| watching_epoll()),
        "inotify-watches" => {
            let inotify = inotify::init(inotify::CreateFlags::CLOEXEC).expect("inotify");
            keep(most, |number| watched_directory(&inotify, number));
        }
        "directories" => keep(most, |number| fs::create_dir(format!("/tmp/{number}"))),
        "missing-files" => keep(most, missing_file),
        "mounts" => keep(most, mounted_directory),
        "network-namespaces" => keep(most, |_| {
            unshare(flags::NEWNET)?;
            open("/proc/self/ns/net")
        }),
        "ipc-namespaces" => keep(most, |_| {
            unshare(flags::NEWIPC)?;
            open("/proc/self/ns/ipc")
        }),
        // In a network namespace of its own, of which it may have many.
        "routes" => fill_table(most, Table::routes),
        "neighbours" => fill_table(most, Table::neighbours),
        "connections" => fill_table(most, Table::connections),
        "nft-chains" => fill_table(most, Table::nft_chains),
        "user-namespaces" => keep(most, |_| another_user_namespace()),
        "message-queues" => keep(most, |number| {
            let path = format!("/dev/mqueue/{number}");
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
        }),
        "semaphores" => keep(most, |_| semaphores(250)),
        "shared-memory" => keep(most, |_| shared_memory(BLOCK.len())),
        "tcp-orphans" => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            set_socket_recv_buffer_size(&listener, 1).expect("a small buffer");
            keep(most, |_| orphan(&listener));
        }
        "fragments" => keep_fragments(most),
        "cgroups" => keep(most, |number| fs::create_dir(format!("/sys/fs/cgroup/{number}"))),
        _ => panic!("{what} is not known"),
    }
}

/// Whether a connection arrives whole that is closed while much of it is on its way: the host
/// counts such connections, and resets those above its ceiling.
pub fn closed_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let one = TcpStream::connect(listener.local_addr().expect("it")).expect("a connection");
    let (mut other, _) = listener.accept().expect("its other side");
    one.set_nonblocking(true).expect("a flag");
    let mut sent = 0;
    while let Ok(length) = (&one).write(&BLOCK) {
        sent += length;
    }
    drop(one);
    match io::copy(&mut other, &mut io::sink()) {
        Ok(length) => println!("{} of {sent} bytes lost", sent as u64 - length),
        Err(error) => println!("{error}"),
    }
}

fn keep<T>(most: u64, mut take: impl FnMut(u64) -> io::Result<T>) {
    let mut kept = Vec::new();
    let mut problem = "no more wanted".to_owned();
    for number in 0..most {
        match take(number) {
            Ok(one) => kept.push(one),
            Err(error) => {
                problem = error.to_string();
                break;
            }
        }
    }
    println!("{} {problem}", kept.len());
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
}

/// Fills network namespaces, one after another: their sockets keep them.
fn fill_table(most: u64, open: fn() -> io::Result<Table>) {
    const IN_ONE: u64 = 50_000;
    let mut tables = Vec::new();
    keep(most, |number| {
        if number % IN_ONE == 0 {
            unshare(flags::NEWNET)?;
            set_up_loopback()?;
            tables.push(open()?);
        }
        tables.last().expect("a table").add(number)
    });
}

/// A child that stays has one.
fn another_user_namespace() -> io::Result<Child> {
    let mut command = Command::new("/bin/busybox");
    command.args(["unshare", "-U", "sleep", "100"]).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn()
}

fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(path.starts_with("/dev/")).open(path)
}

static BLOCK: [u8; 65536] = [1; 65536];

fn timer() -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?)
}

/// Writes until nothing more goes in.
fn fill(mut into: impl Write) {
    while into.write(&BLOCK).is_ok_and(|length| length > 0) {}
}

fn locked_file() -> io::Result<File> {
    let file = File::from(memfd_create("locked", MemfdFlags::CLOEXEC)?);
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn full_pipe() -> io::Result<(OwnedFd, File)> {
    let (read, write) = pipe_with(PipeFlags::NONBLOCK)?;
    let write = File::from(write);
    fill(&write);
    Ok((read, write))
}

fn full_unix_sockets() -> io::Result<(UnixStream, UnixStream)> {
    let (one, other) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    fill(&one);
    Ok((one, other))
}

fn full_udp_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let own = socket.local_addr()?;
    for _ in 0..4 {
        socket.send_to(&BLOCK[..60000], own)?;
    }
    Ok(socket)
}

fn full_tcp_sockets(listener: &TcpListener) -> io::Result<(TcpStream, TcpStream)> {
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    one.set_nonblocking(true)?;
    fill(&one);
    Ok((one, other))
}

/// A connection that its own side has closed, with data that the other side does not take.
fn orphan(listener: &TcpListener) -> io::Result<TcpStream> {
    let mut one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    one.write_all(&BLOCK[..4096])?;
    Ok(other)
}

/// First parts of packets whose other parts never come. Root of a network namespace sets how many
/// of them are kept, and for how long.
fn keep_fragments(most: u64) {
    unshare(flags::NEWNET).expect("a network namespace");
    set_up_loopback().expect("an interface");
    for (name, value) in [("ipfrag_high_thresh", "2147483647"), ("ipfrag_time", "600")] {
        let path = format!("/dev/.holm/proc/sys/net/ipv4/{name}");
        fs::write(&path, value).expect("a setting of the namespace");
    }
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW)).expect("a socket");
    keep(most, |number| {
        let [.., from, high, low] = number.to_be_bytes();
        // The header of IPv4: each number is another packet, of which more fragments follow.
        let mut packet = vec![0u8; 60020];
        packet[..9].copy_from_slice(&[0x45, 0, 0, 0, high, low, 0x20, 0, 64]);
        packet[9..20].copy_from_slice(&[17, 0, 0, 127, 0, 1, from, 127, 0, 0, 1]);
        sendto(&raw, &packet, SendFlags::empty(), &SocketAddrV4::new([127, 0, 0, 1].into(), 0))?;
        Ok(())
    });
}

fn full_netlink_socket() -> io::Result<OwnedFd> {
    let kind = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket(kind.0, kind.1, Some(netlink::USERSOCK))?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    let own = SocketAddrNetlink::try_from(getsockname(&socket)?)?;
    while sendto(&socket, &BLOCK[..32768], SendFlags::DONTWAIT, &own).is_ok() {}
    Ok(socket)
}

/// Each gets a copy of what is sent from now on.
fn full_packet_socket() -> io::Result<(OwnedFd, UdpSocket)> {
    const ALL: u32 = 0x0300; // ETH_P_ALL, in the network's byte order
    let protocol = NonZeroU32::new(ALL).map(Protocol::from_raw);
    let packets = socket(AddressFamily::PACKET, SocketType::RAW, protocol)?;
    Ok((packets, full_udp_socket()?))
}

fn packet_ring() -> io::Result<OwnedFd> {
    const AF_PACKET: u32 = 17;
    const SOL_PACKET: u32 = 263;
    const PACKET_RX_RING: u32 = 5;
    // 16 blocks of 4096 bytes, 32 frames of 2048.
    socket_by_socketcall(AF_PACKET, SOL_PACKET, PACKET_RX_RING, [4096, 16, 2048, 32])
}

fn xdp_ring() -> io::Result<OwnedFd> {
    const AF_XDP: u32 = 44;
    const SOL_XDP: u32 = 283;
    const XDP_RX_RING: u32 = 2;
    socket_by_socketcall(AF_XDP, SOL_XDP, XDP_RX_RING, [64, 0, 0, 0])
}

fn full_memory_file() -> io::Result<File> {
    let file = File::from(memfd_create("full", MemfdFlags::CLOEXEC)?);
    (&file).write_all(&BLOCK)?;
    Ok(file)
}

fn huge_file() -> io::Result<File> {
    let file = File::from(memfd_create("huge", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB)?);
    file.set_len(2 << 20)?;
    huge_page(Some(file.as_fd()))?;
    Ok(file)
}

fn watching_epoll() -> io::Result<(OwnedFd, OwnedFd)> {
    let (poll, event) =
        (epoll::create(epoll::CreateFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
    epoll::add(&poll, &event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    Ok((poll, event))
}

fn watched_directory(inotify: &OwnedFd, number: u64) -> io::Result<()> {
    let path = format!("/tmp/{number}");
    fs::create_dir(&path)?;
    inotify::add_watch(inotify, path, inotify::WatchFlags::CREATE)?;
    Ok(())
}

/// The kernel remembers names that it has not found.
fn missing_file(number: u64) -> io::Result<()> {
    match fs::metadata(format!("/tmp/{number:0200}")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn mounted_directory(number: u64) -> io::Result<()> {
    let path = format!("/tmp/{number}");
    fs::create_dir(&path)?;
    Ok(mount("none", &path, "tmpfs", MountFlags::empty(), None)?)
}

//! Network namespaces that stand for the host, guests and the outside. The machine's own is not
//! touched.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use holm::config::Net;
use holm::net::{self, Responder};
use holm::record::Network;
use holm_init::nflog::packets;
use holm_init::responder::{REPLY_MAX, reply};
use rustix::io::{Errno, write};
use rustix::net::netdevice::name_to_index;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::command::Outcome;
use crate::process::{Stopped, has_ended};
use crate::sandbox::Sandbox;

/// How long a test waits for what has to arrive.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// How long a test waits for what must not arrive.
pub const SILENCE: Duration = Duration::from_millis(300);

/// A network namespace, held by a process that sleeps in it.
pub struct TestNetns {
    holder: Child,
    file: File,
}

impl TestNetns {
    pub fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; exec sleep 3600"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need root and util-linux");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "\n", "unshare --net failed: these tests need root");
        let file = File::open(format!("/proc/{}/ns/net", holder.id())).unwrap();
        Self { holder, file }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A process that is here.
    pub fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Configures a guest's side here.
    pub fn configure(&self, plan: &Network) {
        self.with(|| {
            net::loopback_up().unwrap();
            let proc = File::open("/proc").unwrap();
            net::configure_inside(plan, proc.as_fd()).unwrap();
        });
    }

    /// Moves the calling thread here.
    pub fn join(&self) {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }

    /// Runs a closure in a thread of this namespace.
    pub fn with<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    self.join();
                    run()
                })
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Runs a shell command here, which has to succeed.
    pub fn sh(&self, script: &str) -> String {
        let output = self.try_sh(script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn try_sh(&self, script: &str) -> Output {
        self.with(|| Command::new("sh").args(["-ec", script]).output().unwrap())
    }

    /// A TCP server that answers every connection with the client's address, until dropped.
    pub fn serve_tcp(&self, address: &str) -> Server {
        let listener = self.with(|| TcpListener::bind(address).unwrap());
        Server::start(move || {
            if let Ok((mut stream, peer)) = listener.accept() {
                let _ = write!(stream, "{}", peer.ip());
            }
        })
    }

    /// A socket that hears what is sent to `group` at `port` by up0.
    pub fn join_group(&self, group: &str, port: u16) -> UdpSocket {
        let group: IpAddr = group.parse().unwrap();
        let socket = self.with(|| {
            let socket = UdpSocket::bind((group, port)).unwrap();
            match &group {
                IpAddr::V4(group) => {
                    socket.join_multicast_v4(group, &Ipv4Addr::new(192, 0, 2, 2)).unwrap();
                }
                IpAddr::V6(group) => {
                    let interface = name_to_index(&socket, "up0").unwrap();
                    socket.join_multicast_v6(group, interface).unwrap();
                }
            }
            socket
        });
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// A UDP server that answers every datagram with the client's address.
    pub fn serve_udp(&self, address: &str) -> Server {
        let socket = self.with(|| UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Server::start(move || {
            if let Ok((_, peer)) = socket.recv_from(&mut [0; 64]) {
                let _ = socket.send_to(peer.ip().to_string().as_bytes(), peer);
            }
        })
    }

    /// Servers of TCP and UDP that answer with the client's address and port.
    pub fn tell_clients(&self, address: &str) -> [Server; 2] {
        let listener = self.with(|| TcpListener::bind(address).unwrap());
        let socket = self.with(|| UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let by_tcp = Server::start(move || {
            if let Ok((mut stream, peer)) = listener.accept() {
                let _ = write!(stream, "{peer}");
            }
        });
        let by_udp = Server::start(move || {
            if let Ok((_, peer)) = socket.recv_from(&mut [0; 64]) {
                let _ = socket.send_to(peer.to_string().as_bytes(), peer);
            }
        });
        [by_tcp, by_udp]
    }

    /// What a server of [`TestNetns::serve_tcp`] says, `None` when it cannot be reached.
    pub fn ask_tcp(&self, to: &str, patience: Duration) -> Option<IpAddr> {
        self.ask_tcp_at(to.parse().unwrap(), patience)
    }

    pub fn ask_tcp_at(&self, to: SocketAddr, patience: Duration) -> Option<IpAddr> {
        self.with(|| {
            let mut stream = TcpStream::connect_timeout(&to, patience).ok()?;
            stream.set_read_timeout(Some(patience)).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            text.parse().ok()
        })
    }

    pub fn ask_udp(&self, to: &str, patience: Duration) -> Option<IpAddr> {
        self.ask_udp_at(to.parse().unwrap(), patience)
    }

    /// Asks again each second, as resolvers do: nothing says that a datagram arrives.
    pub fn ask_udp_at(&self, to: SocketAddr, patience: Duration) -> Option<IpAddr> {
        let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let end = Instant::now() + patience;
        self.with(|| {
            let socket = UdpSocket::bind(from).unwrap();
            let ask = |socket: &UdpSocket| {
                socket.connect(to).ok()?;
                socket.set_read_timeout(Some(patience.min(Duration::from_secs(1)))).unwrap();
                socket.send(b"?").ok()?;
                let mut text = [0; 64];
                let length = socket.recv(&mut text).ok()?;
                std::str::from_utf8(&text[..length]).unwrap().parse().ok()
            };
            loop {
                match ask(&socket) {
                    None if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
                    answer => return answer,
                }
            }
        })
    }

    pub fn reaches(&self, to: &str) -> Option<IpAddr> {
        self.ask_tcp(to, PATIENCE)
    }

    /// Whether a TCP connection is refused with an answer, not by silence.
    pub fn is_refused(&self, to: SocketAddr) -> bool {
        let refused = std::io::ErrorKind::ConnectionRefused;
        self.with(|| {
            TcpStream::connect_timeout(&to, PATIENCE).is_err_and(|error| error.kind() == refused)
        })
    }

    pub fn is_cut_off_from(&self, to: &str) -> bool {
        self.ask_tcp(to, SILENCE).is_none()
    }
}

impl Drop for TestNetns {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A server thread that ends when this is dropped.
pub struct Server(#[expect(dead_code, reason = "its end tells the thread")] mpsc::Sender<()>);

impl Server {
    fn start(mut serve: impl FnMut() + Send + 'static) -> Self {
        let (end, ended) = mpsc::channel();
        // Not joined: an accept without a client ends with the test process.
        thread::spawn(move || {
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                serve();
            }
        });
        Self(end)
    }
}

/// A host with an uplink to an outside machine, 192.0.2.1.
pub struct Topology {
    pub host: TestNetns,
    pub outside: TestNetns,
}

impl Topology {
    /// The uplink's MTU is 1400.
    pub fn new() -> Self {
        let (host, outside) = (TestNetns::new(), TestNetns::new());
        let pid = outside.holder.id();
        host.sh(&format!(
            "ip link set lo up; ip link add up0 mtu 1400 type veth peer name eth0 mtu 1400 netns {pid}
             ip addr add 192.0.2.2/24 dev up0; ip addr add 2001:db8::2/64 dev up0 nodad; ip link set up0 up"
        ));
        outside.sh(
            "ip link set lo up; ip addr add 192.0.2.1/24 dev eth0; ip addr add 2001:db8::1/64 dev eth0 nodad; ip link set eth0 up",
        );
        host.sh("ip route add default via 192.0.2.1; ip route add default via 2001:db8::1");
        Self { host, outside }
    }

    /// Kills a command of holm on this host when it has done `step`.
    pub fn kill_at(&self, sandbox: &Sandbox, step: &str, args: &[&str]) {
        let mut command = sandbox.command_with_fault("HOLM_STOP_AT", step);
        command.args(args);
        let mut stopped = self.host.with(|| Stopped::of(sandbox, &mut command, step));
        stopped.kill_command();
        let _ = kill_process(stopped.at, Signal::KILL); // the same process before the fork
        // Until then it holds the guest's lock, and a command that finds it held repairs nothing.
        sandbox.wait_for("its end", || has_ended(stopped.at).then_some(()));
    }

    /// Plans, attaches and configures a private guest.
    pub fn guest(&self, instance: u8, context: u32, net: &Net) -> Guest {
        let netns = TestNetns::new();
        let plan = self.host.with(|| {
            let plan = net::plan(instance, context, net).unwrap();
            net::attach(&plan, netns.fd()).unwrap();
            plan
        });
        netns.configure(&plan);
        Guest { netns, plan }
    }

    /// The same while `file` is mounted over `place` of the host; also returns the guest's
    /// resolv.conf.
    pub fn guest_of_host_with(
        &self,
        file: &Path,
        place: &str,
        instance: u8,
        context: u32,
        net: &Net,
    ) -> (Guest, String) {
        self.host.with(|| {
            // This thread's own mount namespace.
            holm_sys::process::unshare(0x0002_0000).unwrap();
            holm_sys::mount::make_all_private().unwrap();
            rustix::mount::mount_bind(file, place).unwrap();
            let netns = TestNetns::new();
            let plan = net::plan(instance, context, net).unwrap();
            net::attach(&plan, netns.fd()).unwrap();
            netns.configure(&plan);
            let text = net::files(&plan).resolv_conf.unwrap();
            (Guest { netns, plan }, text)
        })
    }
}

/// A private guest.
pub struct Guest {
    pub netns: TestNetns,
    pub plan: Network,
}

impl Guest {
    /// Replies to the guest's requests as its monitor does while `ask` runs; returns the requests.
    pub fn answering(&self, responder: &Responder, ask: impl FnOnce() + Send) -> Vec<Vec<u8>> {
        let config = self.plan.lease();
        let requests = responder.requests.as_ref().unwrap_or(&responder.replies);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let monitor = scope.spawn(|| {
                let mut questions = Vec::new();
                let (mut datagram, mut out) = ([0; 2048], [0; REPLY_MAX]);
                while !ended.load(Ordering::Relaxed) {
                    let length = match recv(requests, &mut datagram, RecvFlags::DONTWAIT) {
                        Ok((length, _)) => length,
                        Err(Errno::AGAIN) => {
                            thread::sleep(Duration::from_millis(5));
                            continue;
                        }
                        // Some were lost before.
                        Err(Errno::NOBUFS) => continue,
                        Err(errno) => panic!("reading a request: {errno}"),
                    };
                    let mut answer = |frame: Vec<u8>| {
                        if let Some(length) = reply(&frame, &config, &mut out) {
                            write(&responder.replies, &out[..length]).unwrap();
                        }
                        questions.push(frame);
                    };
                    if responder.requests.is_some() {
                        packets(&datagram[..length], |link, packet| {
                            answer([link, packet].concat());
                        });
                    } else {
                        answer(datagram[..length].to_vec());
                    }
                }
                questions
            });
            let asked = catch_unwind(AssertUnwindSafe(ask));
            // Else the monitor would go on for ever after a failure.
            ended.store(true, Ordering::Relaxed);
            let questions = monitor.join().unwrap();
            asked.map_or_else(|panic| resume_unwind(panic), |()| questions)
        })
    }

    /// An address of the host as this guest's programs use it: `%eth0` becomes the index of eth0.
    pub fn address_of_host(&self, address: &str) -> SocketAddr {
        let index = self.netns.sh("ip -o link show dev eth0");
        let index = index.split(':').next().unwrap().trim();
        address.replace("%eth0", &format!("%{index}")).parse().unwrap()
    }

    pub fn v4(&self, port: u16) -> String {
        format!("{}:{port}", self.plan.guest_v4)
    }

    pub fn v6(&self, port: u16) -> String {
        format!("[{}]:{port}", self.plan.guest_v6.unwrap())
    }
}

/// A host on which holm runs, with an address for a native guest.
pub struct Host<'a> {
    pub topology: Topology,
    pub sandbox: &'a Sandbox,
}

impl<'a> Host<'a> {
    pub fn new(sandbox: &'a Sandbox) -> Self {
        let topology = Topology::new();
        topology.host.sh("ip addr add 192.0.2.10/32 dev up0");
        Self { topology, sandbox }
    }

    pub fn holm(&self, args: &[&str]) -> Outcome {
        self.topology.host.with(|| self.sandbox.holm(args))
    }

    /// Starts a guest of busybox with a command as its init.
    pub fn run(&self, name: &str, settings: &[&str], command: &[&str]) -> Outcome {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let head = ["launch", name, "--base", "busybox"].into_iter();
        let args = head.chain(settings).chain(["--"]).chain(command.iter().copied());
        self.holm(&args.collect::<Vec<_>>())
    }
}

//! A host and another machine, two network namespaces with a veth pair between them. Nothing of the
//! machine's own network is touched.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Addresses of the other machine and of the host on the wire, and two more of the host's.
pub const OUTSIDE: &str = "192.0.2.1";
pub const HOST: &str = "192.0.2.2";
pub const NATIVE: &str = "192.0.2.10";
/// What a peer's bridge and its container have.
pub const BRIDGE: &str = "198.18.0.1";
pub const BRIDGED: &str = "198.18.0.2";

/// A network namespace, held by a process that sleeps in it.
pub struct Namespace(Child);

impl Namespace {
    fn new() -> Result<Self, String> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; exec sleep 100000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        let mut line = String::new();
        if let Some(output) = holder.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(|e| format!("unshare: {e}"))?;
        }
        let namespace = Self(holder);
        if line == "\n" { Ok(namespace) } else { Err("unshare --net failed".to_owned()) }
    }

    /// A command line that runs another one in it.
    pub fn argv(&self, command: &[String]) -> Vec<String> {
        let head = ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.0.id())];
        [&head[..], command].concat()
    }

    /// Runs a shell command in it, which has to succeed.
    fn sh(&self, script: &str) -> Result<(), String> {
        let argv = self.argv(&["sh", "-ec", script].map(str::to_owned));
        let output = Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("nsenter: {e}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{script}: {text}")) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The two machines.
pub struct Wire {
    pub host: Namespace,
    pub outside: Namespace,
    server: Option<Child>,
}

impl Wire {
    /// Makes them, with nothing but the wire.
    pub fn new() -> Result<Self, String> {
        let (host, outside) = (Namespace::new()?, Namespace::new()?);
        let pid = outside.0.id();
        host.sh(&format!(
            "ip link set lo up
             ip link add up0 type veth peer name eth0 netns {pid}
             ip addr add {HOST}/24 dev up0; ip addr add {NATIVE}/32 dev up0; ip link set up0 up"
        ))?;
        outside.sh(&format!(
            "ip link set lo up; ip addr add {OUTSIDE}/24 dev eth0; ip link set eth0 up"
        ))?;
        host.sh(&format!("ip route add default via {OUTSIDE}"))?;
        Ok(Self { host, outside, server: None })
    }

    /// Gives the host a bridge with masquerading, as LXC's lxc-net makes it.
    pub fn add_bridge(&self) -> Result<(), String> {
        self.host.sh(&format!(
            "ip link add br0 type bridge forward_delay 0
             ip addr add {BRIDGE}/24 dev br0; ip link set br0 up
             sysctl -qw net.ipv4.ip_forward=1
             nft add table ip bench
             nft add chain ip bench post '{{ type nat hook postrouting priority srcnat; }}'
             nft add rule ip bench post ip saddr {BRIDGE}/24 oifname up0 masquerade"
        ))
    }

    /// Gives the host `count` addresses for each of so many kinds of servers (`guests::address`),
    /// to which the other machine has a route.
    pub fn add_addresses(&self, kinds: usize, count: usize) -> Result<(), String> {
        self.outside.sh(&format!("ip route add 198.18.0.0/21 via {HOST}"))?;
        self.host.sh(&format!(
            "for kind in $(seq {kinds}); do for number in $(seq {count}); do
             echo \"addr add 198.18.$kind.$number/32 dev up0\"; done; done | ip -batch -"
        ))
    }

    /// Has the host's connection tracking forget connections a second after they are closed.
    pub fn forget_connections_at_once(&self) -> Result<(), String> {
        self.host.sh("sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_time_wait=1")
    }

    /// Shapes both directions to so many Mbit/s.
    pub fn shape(&self, mbit: u32) -> Result<(), String> {
        for (namespace, interface) in [(&self.host, "up0"), (&self.outside, "eth0")] {
            namespace.sh(&format!(
                "tc qdisc replace dev {interface} root tbf rate {mbit}mbit burst 256kb latency 20ms"
            ))?;
        }
        Ok(())
    }

    /// Starts the other machine's servers.
    pub fn serve(&mut self, program: &str) -> Result<(), String> {
        let argv = self.outside.argv(&[program, "serve"].map(str::to_owned));
        let mut server = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("nsenter: {e}"))?;
        let mut line = String::new();
        if let Some(output) = server.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(|e| format!("{program}: {e}"))?;
        }
        self.server = Some(server);
        if line == "ready\n" { Ok(()) } else { Err(format!("{program} serve failed")) }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It has made its children before it was ready.
            let children =
                std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.id()));
            for child in children.unwrap_or_default().split_whitespace() {
                let _ = Command::new("kill").arg(child).status();
            }
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

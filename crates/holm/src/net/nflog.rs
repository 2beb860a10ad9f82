//! The log of nftables (NFLOG), by which rules give the monitor of a guest its packets, with a
//! group for each guest and kind.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::error::Error;
use super::netlink::{Batch, CREATE, Refused, Socket};
use super::nft::{self, DESTROYSETELEM, ELEM_DATA, GETSETELEM, INET, NEWSETELEM, Place};
use super::request::Request;

const NEWCHAIN: u16 = 0x0a03;
const NEWRULE: u16 = 0x0a06;
// Without an error if there is nothing (from Linux 6.3 on).
const DESTROYCHAIN: u16 = 0x0a1b;
pub const CHAIN_TABLE: u16 = 1;
pub const CHAIN_NAME: u16 = 3;

/// How many groups of a kind an instance has, one for each context id: as many as it has addresses.
const GROUPS: u16 = 1024;

/// Bytes of what the kernel sends at a time.
const DATAGRAM: u32 = 4096;

/// Which packets of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first ones of the connections that it opens (`net.flows`).
    Flows,
    /// Those by which it asks for its network.
    Requests,
}

impl Kind {
    /// The map of a table in which rules look for a guest's, and what names of chains begin with.
    fn map(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Requests => "requests",
        }
    }

    /// The first group; those of 27 instances are half of all that there are.
    fn first_group(self) -> u16 {
        match self {
            Self::Flows => 0,
            Self::Requests => 1 << 15,
        }
    }

    /// Bytes of a packet that the monitor gets, how many packets the kernel waits for, and how
    /// long, in hundredths of a second.
    fn delivery(self) -> (u32, u32, u32) {
        match self {
            // The longest IPv4 header, and ports behind it.
            Self::Flows => (68, 100, 100),
            // The longest that a guest has a reason to send.
            Self::Requests => (1600, 1, 100),
        }
    }

    fn listens(self) -> Request {
        match self {
            Self::Flows => Request::BindFlows,
            Self::Requests => Request::BindRequests,
        }
    }

    fn tells(self) -> Request {
        match self {
            Self::Flows => Request::RecordFlows,
            Self::Requests => Request::TellRequests,
        }
    }

    fn forgets(self) -> Request {
        match self {
            Self::Flows => Request::ForgetFlows,
            Self::Requests => Request::TellRequests,
        }
    }

    /// The number of a guest's group.
    pub fn group(self, instance: u8, context: u32) -> Result<u16, Refused> {
        let group = u32::from(instance) * u32::from(GROUPS) + context;
        // Context ids end where addresses do.
        let refused = || Refused { request: self.listens(), errno: Errno::RANGE };
        let group = u16::try_from(group).ok().filter(|group| *group < 1 << 15);
        group.map(|group| self.first_group() + group).ok_or_else(refused)
    }

    /// A socket that gets what is told to a group.
    pub fn listen(self, group: u16) -> Result<OwnedFd, Refused> {
        let socket = Socket::netfilter()?;
        let mut batch = Batch::default();
        self.bind(&mut batch, group);
        socket.execute(&mut batch)?;
        Ok(socket.into_fd())
    }

    fn bind(self, batch: &mut Batch, group: u16) {
        const CONFIG: u16 = 0x0401;
        const COMMAND: u16 = 1;
        const MODE: u16 = 2;
        const BUFFER: u16 = 3;
        const TIMEOUT: u16 = 4;
        const THRESHOLD: u16 = 5;
        const BIND: u8 = 1;
        const COPY_PACKET: u8 = 2;
        let (copied, packets, longest) = self.delivery();
        let [high, low] = group.to_be_bytes();
        let mode = [&copied.to_be_bytes()[..], &[COPY_PACKET, 0]].concat();
        batch
            .message(self.listens(), CONFIG, 0, &[0, 0, high, low])
            .attr(COMMAND, &[BIND])
            .attr(MODE, &mode)
            .attr(BUFFER, &DATAGRAM.to_be_bytes())
            .attr(TIMEOUT, &longest.to_be_bytes())
            .attr(THRESHOLD, &packets.to_be_bytes());
    }

    /// The context ids and groups of an instance in the kernel's list of listeners.
    pub fn listening(self, text: &str, instance: u8) -> Vec<(u32, u16)> {
        let groups = text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
        let own = groups.filter_map(|group: u16| {
            let number = group.checked_sub(self.first_group())?;
            (number / GROUPS == u16::from(instance)).then(|| (u32::from(number % GROUPS), group))
        });
        own.collect()
    }
}

/// Where the rule is that tells packets of a guest.
pub struct Rule<'a> {
    /// Which.
    pub kind: Kind,
    /// The table, which has a map that these packets are looked up in.
    pub table: &'a str,
    /// The guest's key there.
    pub key: &'a [u8],
    pub context: u32,
}

impl Rule<'_> {
    /// Has the packets told to a group from now on, or to none. What another guest with its context
    /// id has left goes.
    pub fn begin(&self, batch: &mut Batch, group: Option<u16>) {
        self.remove(batch);
        if let Some(group) = group {
            self.add(batch, group);
        }
    }

    /// Whether it is there.
    pub fn is_there(&self, netfilter: &Socket) -> Result<bool, Error> {
        let mut batch = Batch::default();
        self.element(&mut batch, self.kind.tells(), GETSETELEM, |_| {});
        nft::found(netfilter, &batch, |_| {})
    }

    /// Adds a chain with a rule that logs, and the element that leads to it.
    fn add(&self, batch: &mut Batch, group: u16) {
        const RULE_TABLE: u16 = 1;
        const RULE_CHAIN: u16 = 2;
        const RULE_EXPRESSIONS: u16 = 4;
        const EXPRESSION: u16 = 1;
        const EXPRESSION_NAME: u16 = 1;
        const EXPRESSION_DATA: u16 = 2;
        const LOG_GROUP: u16 = 1;
        const VERDICT: u16 = 2;
        const VERDICT_CODE: u16 = 1;
        const VERDICT_CHAIN: u16 = 2;
        const JUMP: i32 = -3;
        let (request, chain) = (self.kind.tells(), self.chain());
        batch
            .message(request, NEWCHAIN, CREATE, &INET)
            .text(CHAIN_TABLE, self.table)
            .text(CHAIN_NAME, &chain);
        batch
            .message(request, NEWRULE, CREATE, &INET)
            .text(RULE_TABLE, self.table)
            .text(RULE_CHAIN, &chain)
            .nest(RULE_EXPRESSIONS, |batch| {
                batch.nest(EXPRESSION, |batch| {
                    batch.text(EXPRESSION_NAME, "log").nest(EXPRESSION_DATA, |batch| {
                        batch.attr(LOG_GROUP, &group.to_be_bytes());
                    });
                });
            });
        self.element(batch, request, NEWSETELEM, |batch| {
            batch.nest(ELEM_DATA, |batch| {
                batch.nest(VERDICT, |batch| {
                    batch.attr(VERDICT_CODE, &JUMP.to_be_bytes()).text(VERDICT_CHAIN, &chain);
                });
            });
        });
    }

    /// Removes it, if it is there.
    pub fn remove(&self, batch: &mut Batch) {
        let request = self.kind.forgets();
        self.element(batch, request, DESTROYSETELEM, |_| {});
        batch
            .message(request, DESTROYCHAIN, 0, &INET)
            .text(CHAIN_TABLE, self.table)
            .text(CHAIN_NAME, &self.chain());
    }

    fn chain(&self) -> String {
        format!("{}_{}", self.kind.map(), self.context)
    }

    /// A message about the guest's element.
    fn element(
        &self,
        batch: &mut Batch,
        request: Request,
        kind: u16,
        data: impl FnOnce(&mut Batch),
    ) {
        Place { table: self.table, set: self.kind.map(), key: self.key }
            .message(batch, request, kind, data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_those_of_the_instance_and_kind() {
        let text = "    1   1234     0 2    68 100  1\n 1029  77 0 2 68 100 1\n\
                    2049 8 0 2 68 100 1\n33798 9 0 2 1600 100 1\n";
        assert_eq!(Kind::Flows.listening(text, 1), [(5, 1029)]);
        assert_eq!(Kind::Flows.listening(text, 2), [(1, 2049)]);
        assert_eq!(Kind::Requests.listening(text, 1), [(6, 33798)]);
        assert_eq!(Kind::Requests.listening("garbage\n\n", 1), []);
    }

    #[test]
    fn no_two_guests_have_the_same_group() {
        let group = |kind: Kind, instance, context| kind.group(instance, context).ok();
        assert_eq!(group(Kind::Flows, 1, 5), Some(1029));
        assert_eq!(group(Kind::Flows, 27, 1023), Some(28671));
        assert_eq!(group(Kind::Requests, 1, 6), Some(33798));
        assert_eq!(group(Kind::Requests, 27, 1023), Some(61439));
        assert_eq!(group(Kind::Flows, 31, 1024), None);
    }
}

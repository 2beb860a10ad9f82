//! Requests to the kernel, as errors name them.

use std::fmt;

/// What a message requests of the kernel. Errors read "{request} failed".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of each says it")]
pub enum Request {
    Exchange,
    CreatePair,
    SetUpHostEnd,
    BringUpHostEnd,
    AddGatewayV4,
    RouteGuestV4,
    AddGatewayV6,
    RouteGuestV6,
    NeighbourGuestV4,
    NeighbourGuestV6,
    NeighbourGuestLinkLocal,
    BringUpLoopback,
    SetUpEth0,
    BringUpEth0,
    AddGuestV4,
    RouteGatewayV4,
    DefaultRouteV4,
    AddLinkLocal,
    AddGuestV6,
    DefaultRouteV6,
    NeighbourGatewayV4,
    NeighbourGatewayV6,
    RemoveHostEnd,
    ClearAlias,
    FindLink,
    ListLinks,
    FindUplink,
    FindRoute,
    ReadUplinkMtu,
    FindTable,
    FindChain,
    DeleteTable,
    OpenTransaction,
    CloseTransaction,
    ListPorts,
    ReadCounts,
    ResetCounts,
    PublishPort,
    UnpublishPort,
    TryPort,
    AddLoopbackV6,
    RemoveLoopbackV6,
    AddNative,
    RemoveNative,
    FindQdisc,
    MakeQdisc,
    RemoveQdisc,
    ListClasses,
    SetClass,
    RemoveClass,
    TagPackets,
    UntagPackets,
}

impl Request {
    fn text(self) -> &'static str {
        match self {
            Self::Exchange => "sending a netlink request",
            Self::CreatePair => "creating the veth pair",
            Self::SetUpHostEnd => "configuring the host's interface",
            Self::BringUpHostEnd => "bringing up the host's interface",
            Self::AddGatewayV4 => "setting the gateway's IPv4 address",
            Self::RouteGuestV4 => "routing the guest's IPv4 address",
            Self::AddGatewayV6 => "setting the gateway's IPv6 address",
            Self::RouteGuestV6 => "routing the guest's IPv6 address",
            Self::NeighbourGuestV4 => "setting the neighbour entry of the guest's IPv4 address",
            Self::NeighbourGuestV6 => "setting the neighbour entry of the guest's IPv6 address",
            Self::NeighbourGuestLinkLocal => {
                "setting the neighbour entry of the guest's link-local address"
            }
            Self::BringUpLoopback => "bringing up the loopback interface",
            Self::SetUpEth0 => "configuring eth0",
            Self::BringUpEth0 => "bringing up eth0",
            Self::AddGuestV4 => "setting eth0's IPv4 address",
            Self::RouteGatewayV4 => "routing to the IPv4 gateway",
            Self::DefaultRouteV4 => "setting the IPv4 default route",
            Self::AddLinkLocal => "setting eth0's link-local address",
            Self::AddGuestV6 => "setting eth0's IPv6 address",
            Self::DefaultRouteV6 => "setting the IPv6 default route",
            Self::NeighbourGatewayV4 => "setting the neighbour entry of the IPv4 gateway",
            Self::NeighbourGatewayV6 => "setting the neighbour entry of the IPv6 gateway",
            Self::RemoveHostEnd => "removing the host's interface",
            Self::ClearAlias => "clearing the alias of the host's interface",
            Self::FindLink => "looking for an interface",
            Self::ListLinks => "listing interfaces",
            Self::FindUplink => "looking for the uplink",
            Self::FindRoute => "looking for the route to an address",
            Self::ReadUplinkMtu => "reading the uplink's MTU",
            Self::FindTable => "looking for the nftables table",
            Self::FindChain => "looking for the access rules of the guest",
            Self::DeleteTable => "deleting the nftables table",
            Self::OpenTransaction => "opening a transaction",
            Self::CloseTransaction => "closing a transaction",
            Self::ListPorts => "reading the published ports",
            Self::ReadCounts => "reading what the guest has sent",
            Self::ResetCounts => "counting what the guest sends from 0 on",
            Self::PublishPort => "publishing a port",
            Self::UnpublishPort => "unpublishing a port",
            Self::TryPort => "trying a published port",
            Self::AddLoopbackV6 => "adding the address behind the guest's ::1",
            Self::RemoveLoopbackV6 => "removing the address behind the guest's ::1",
            Self::AddNative => "adding a native guest's address to net.interface",
            Self::FindQdisc => "looking for the qdisc",
            Self::MakeQdisc => "making the qdisc",
            Self::RemoveQdisc => "removing the qdisc",
            Self::ListClasses => "reading the rates of guests",
            Self::SetClass => "setting the rate of the guest",
            Self::RemoveClass => "removing the rate of the guest",
            Self::TagPackets => "marking the packets of the guest",
            Self::UntagPackets => "no longer marking the packets of the guest",
            Self::RemoveNative => "removing a native guest's address from net.interface",
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/* What a guest may send to a bridge of the host's (net.lan), at the host's end of its veth pair: ARP,
 * IPv4 and IPv6 from its own Ethernet address and, if its addresses are set, from those alone. It is
 * neither a router nor a DHCP server to its neighbours.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* As many addresses of each family has an interface at most. */
#define MOST 8
/* More headers than this before the last one are not sent by anybody. */
#define HEADERS 6
#define NEXT -1 /* TCX_NEXT: whatever else is attached, and then the bridge */
#define DROP 2 /* TCX_DROP */

/* holm-bpf's `Port` writes it. */
struct port {
	__u64 dropped; /* packets */
	__u8 ethernet[6];
	__u16 has_addresses; /* its addresses are set */
	__u32 count4, count6;
	__be32 own4[MOST];
	struct in6_addr own6[MOST];
};
_Static_assert(sizeof(struct port) == 184, "holm-bpf's PORT");

/* Of this port alone, by 0. */
struct {
	int unused;
} port SEC(".maps");

struct arp {
	__be16 hardware, protocol;
	__u8 hardware_length, protocol_length;
	__be16 operation;
	__u8 ethernet[6];
	__u8 address[4];
} __attribute__((packed));

static __always_inline bool is_ethernet(const struct port *own, const __u8 *address)
{
	__u8 differ = 0;
#pragma clang loop unroll(full)
	for (int i = 0; i < 6; i++)
		differ |= address[i] ^ own->ethernet[i];
	return !differ;
}

static __always_inline bool is_own4(const struct port *own, __be32 address)
{
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < MOST; i++)
		if (i < own->count4 && own->own4[i] == address)
			return true;
	return !own->has_addresses;
}

static __always_inline bool same6(const struct in6_addr *one, const struct in6_addr *other)
{
	const __u32 *a = one->in6_u.u6_addr32, *b = other->in6_u.u6_addr32;
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

/* Whether it is the link-local address that the kernel makes of the Ethernet address. */
static __always_inline bool is_link_local(const struct port *own, const struct in6_addr *address)
{
	const __u8 *mac = own->ethernet;
	struct in6_addr made = {};
	__u8 *to = made.in6_u.u6_addr8;
	to[0] = 0xfe;
	to[1] = 0x80;
	to[8] = mac[0] ^ 2;
	to[9] = mac[1];
	to[10] = mac[2];
	to[11] = 0xff;
	to[12] = 0xfe;
	to[13] = mac[3];
	to[14] = mac[4];
	to[15] = mac[5];
	return same6(&made, address);
}

static __always_inline bool is_own6(const struct port *own, const struct in6_addr *address)
{
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < MOST; i++)
		if (i < own->count6 && same6(&own->own6[i], address))
			return true;
	return !own->has_addresses || is_link_local(own, address);
}

/* Whether a datagram that begins here comes from a port of servers. */
static __always_inline bool is_from(struct __sk_buff *packet, __u32 at, __u16 server)
{
	__be16 from;
	return bpf_skb_load_bytes(packet, at, &from, sizeof(from)) || from == bpf_htons(server);
}

static __always_inline bool may_arp(struct __sk_buff *packet, const struct port *own)
{
	struct arp arp;
	__be32 sender;
	if (bpf_skb_load_bytes(packet, ETH_HLEN, &arp, sizeof(arp)))
		return false;
	if (arp.hardware != bpf_htons(1) || arp.protocol != bpf_htons(ETH_P_IP) ||
	    arp.hardware_length != 6 || arp.protocol_length != 4 ||
	    !is_ethernet(own, arp.ethernet))
		return false;
	__builtin_memcpy(&sender, arp.address, sizeof(sender));
	/* Who looks whether an address is free has none yet (RFC 5227). */
	return !sender || is_own4(own, sender);
}

static __always_inline bool may_send4(struct __sk_buff *packet, const struct port *own)
{
	struct iphdr ip;
	if (bpf_skb_load_bytes(packet, ETH_HLEN, &ip, sizeof(ip)))
		return false;
	bool is_first = !(ip.frag_off & bpf_htons(0x1fff));
	if (ip.protocol == IPPROTO_UDP && is_first &&
	    is_from(packet, ETH_HLEN + ip.ihl * 4, 67))
		return false;
	/* DHCP and IGMP before there is an address. */
	return !ip.saddr || is_own4(own, ip.saddr);
}

/* Whether a message of ICMPv6 may be sent: no router's, and about own addresses only. */
static __always_inline bool may_discover(struct __sk_buff *packet, const struct port *own, __u32 at)
{
	struct in6_addr target;
	__u8 type;
	if (bpf_skb_load_bytes(packet, at, &type, sizeof(type)))
		return false;
	if (type == 134 || type == 137) /* router advertisement, redirect */
		return false;
	if (type != 136) /* neighbour advertisement */
		return true;
	return !bpf_skb_load_bytes(packet, at + 8, &target, sizeof(target)) && is_own6(own, &target);
}

static __always_inline bool may_send6(struct __sk_buff *packet, const struct port *own)
{
	struct in6_addr from, unspecified = {};
	struct ipv6hdr ip;
	if (bpf_skb_load_bytes(packet, ETH_HLEN, &ip, sizeof(ip)))
		return false;
	__builtin_memcpy(&from, &ip.saddr, sizeof(from));
	/* Who looks whether an address is free has none yet. */
	if (!same6(&from, &unspecified) && !is_own6(own, &from))
		return false;
	__u32 at = ETH_HLEN + sizeof(ip);
	__u8 kind = ip.nexthdr;
	/* Only the last header is looked at, and once: each look in the loop would be verified six times
	 * at each start. */
	bool is_last = false;
#pragma clang loop unroll(full)
	for (int i = 0; i < HEADERS && !is_last; i++) {
		__u8 header[4];
		if (kind != IPPROTO_HOPOPTS && kind != IPPROTO_DSTOPTS && kind != IPPROTO_ROUTING &&
		    kind != IPPROTO_FRAGMENT) {
			is_last = true;
			continue;
		}
		if (bpf_skb_load_bytes(packet, at, header, sizeof(header)))
			return false;
		/* What is behind the first fragment is not looked at by receivers without it. */
		if (kind == IPPROTO_FRAGMENT && (header[2] << 8 | header[3]) & 0xfff8)
			return true;
		at += kind == IPPROTO_FRAGMENT ? 8 : (header[1] + 1) * 8;
		kind = header[0];
	}
	if (!is_last)
		return false;
	if (kind == IPPROTO_ICMPV6)
		return may_discover(packet, own, at);
	return kind != IPPROTO_UDP || !is_from(packet, at, 547);
}

static __always_inline bool may_send(struct __sk_buff *packet, const struct port *own)
{
	struct ethhdr ethernet;
	/* The bridge would take a tag for its own. */
	if (packet->vlan_present || bpf_skb_load_bytes(packet, 0, &ethernet, sizeof(ethernet)))
		return false;
	if (!is_ethernet(own, ethernet.h_source))
		return false;
	switch (bpf_ntohs(ethernet.h_proto)) {
	case ETH_P_ARP:
		return may_arp(packet, own);
	case ETH_P_IP:
		return may_send4(packet, own);
	case ETH_P_IPV6:
		return may_send6(packet, own);
	default:
		return false;
	}
}

SEC("program/port")
int check(struct __sk_buff *packet)
{
	__u32 key = 0;
	struct port *own = bpf_map_lookup_elem(&port, &key);
	if (own && may_send(packet, own))
		return NEXT;
	if (own)
		__sync_fetch_and_add(&own->dropped, 1);
	return DROP;
}

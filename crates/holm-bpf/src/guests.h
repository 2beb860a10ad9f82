/* What the programs know of guests with net.mode = "native", and the addresses they translate.
 *
 *   inside            on the host
 *   0.0.0.0           the guest's first address; connections to its others are steered there
 *   127.0.0.x         127.A.B.x, a network of 256 for each guest
 *   ::                the guest's first address, where IPv6 is steered to
 *   :: without IPv4   the guest's first IPv6 address, or the one behind ::1
 *   ::1               an address on lo
 */
#pragma once

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10

/* The guests' cgroups are this far below the root: /holm/NAME. */
#define LEVEL 2
/* As many addresses of each family has a guest at most. */
#define MOST 8

/* An IPv6 address, or an IPv4 address as IPv6 maps it: ::ffff:a.b.c.d. */
struct address {
	__be32 word[4];
};

/* holm-bpf's `Guest` writes it. */
struct guest {
	__u64 netns; /* cookie of the host's network namespace */
	__u32 root; /* uid of guest root on the host */
	__be32 loopback; /* 127.A.B.0 */
	struct address loopback6;
	__u8 count4;
	__u8 shares; /* its IPv4 address is also that of other guests, and of the host */
	__u8 added; /* and the host has that only while one of them runs */
	__u8 uncapped; /* it has no net.cap; 0 also where that was not noted yet */
	__u32 count6;
	__be32 own4[MOST];
	struct address own6[MOST];
};
_Static_assert(sizeof(struct guest) == 200, "holm-bpf's GUEST");

/* The networks 127.A.B.0 of guests begin here, with 1024 for each instance, which has its own maps:
 * how many of them are before a guest's is also its HTB class on the uplink, 486d:CLASS (holm's
 * net/shaping). */
#define FIRST_LOOPBACK 0x7f040000
#define GUESTS 1024
#define QDISC 0x486d0000

/* The priority of datagrams that the host's connection tracking leaves alone, 486f:1 (holm's
 * net/native/tracked). It forgets the socket of those that it tracks, where it also translates. */
#define UNTRACKED 0x486f0001

/* By cgroup. */
struct {
	int unused;
} guests SEC(".maps");

/* The cgroup of the guest that an address belongs to. A loopback network is its first address with
 * a 1 before it, so that it is not taken for one. */
struct {
	int unused;
} owners SEC(".maps");

/* Sockets that listen, by the address that they are bound to. Of several on one port (SO_REUSEPORT)
 * the kernel finds all by each, but forgets one when it is closed: so there are places for some. */
#define PLACES 4
struct listener {
	struct address address;
	__u32 port;
	__u16 any; /* of one that was bound to "any", and got the guest's first address: `any_of` */
	__u16 place;
};
struct {
	int unused;
} listeners SEC(".maps");

/* How many sockets of a guest are in `listeners`, by its loopback network. A guest that could fill
 * it would keep others from listening. */
#define LISTENERS_OF_A_GUEST 1024
struct {
	int unused;
} listening SEC(".maps");

/* The sockets that are in `listeners`, with the loopback network of their guest. */
struct {
	int unused;
} counted SEC(".maps");

/* How many sockets a guest has made, by its number. Each can hold a port at its address, and the
 * kernel then gives that port to no socket without an address either, of the host's. */
#define SOCKETS_OF_A_GUEST 8192
struct {
	int unused;
} held SEC(".maps");

/* The sockets that are counted there, by their cookies, with the number of their guest. It has room
 * for as many as all guests may make. The kernel's storage in sockets, which is allocated and freed
 * after a grace period, would take 5 % of a connection's time. */
struct {
	int unused;
} makers SEC(".maps");

/* What a guest has sent and received, by its number, on each CPU: holm-bpf's `Traffic` reads it.
 * Whoever counts can be interrupted by one that counts on the same CPU. */
struct traffic {
	__u64 sent_packets, sent_bytes, received_packets, received_bytes;
	__u64 opened, accepted; /* TCP connections */
	__u64 foreign_source, foreign_destination, over_cap; /* packets dropped */
};
_Static_assert(sizeof(struct traffic) == 72, "holm-bpf's TRAFFIC");
struct {
	int unused;
} counters SEC(".maps");

/* How fast a guest may receive, by its loopback network: holm-bpf's `cap_value` writes it. A token
 * bucket as a time: until `next` all that may be received by now has been. */
#define BURST 250000000 /* nanoseconds */
struct cap {
	__u64 rate; /* bytes in a second, not 0 */
	__u64 next; /* nanoseconds of CLOCK_MONOTONIC */
};
struct {
	int unused;
} caps SEC(".maps");

/* The address at which a client has asked a socket that is bound to "any", if it is not the one
 * that the socket got: the answer comes from there. */
struct question {
	struct address client;
	__be16 from, to; /* ports */
};
struct {
	int unused;
} asked SEC(".maps");

/* Has an entry, by 0, where the host tracks connections. */
struct {
	int unused;
} tracking SEC(".maps");

/* When a guest has told a client something by itself, from another address than the one that its
 * socket on "any" got: the answer to that belongs to a connection that the host may track. */
#define TOLD_FOR 25000000000ull /* nanoseconds: less than the kernel remembers one, 30 s */
struct {
	int unused;
} told SEC(".maps");

/* The last addresses and ports of guests that were asked by UDP, and are no socket's. */
struct {
	int unused;
} unserved SEC(".maps");

/* Whether this CPU looks for the socket of a datagram, by 0: what was nobody's may be somebody's
 * now. */
struct {
	int unused;
} searching SEC(".maps");

/* Sockets of the host, bound to no address, that have sent a datagram to a guest: to an address of
 * its own the host sends from that very address, and is answered there. */
struct {
	int unused;
} hosts SEC(".maps");

/* Sockets that were bound to "any", or got a port of it when they sent something, with the loopback
 * network of their guest (0 if they were before that was kept). Those that they accept are not in
 * it. */
struct {
	int unused;
} any SEC(".maps");

/* Sockets of guests that share an address, with the loopback network of their guest, and those that
 * they accept: their address does not tell whose they are. */
struct {
	int unused;
} sharing SEC(".maps");

/* Unix sockets of guests that have a name or have asked one, with the loopback network of their
 * guest. */
struct {
	int unused;
} names SEC(".maps");

/* Sockets in network namespaces that guests have made, and those that they accept. */
struct {
	int unused;
} elsewhere SEC(".maps");

/* Reads a field of a context at its own offset: the verifier takes no computed ones. */
#define FIELD(field) (*(const volatile __u32 *)&(field))
#define FIELD6(field)                                                                              \
	((struct address){ { FIELD((field)[0]), FIELD((field)[1]), FIELD((field)[2]),              \
			     FIELD((field)[3]) } })

static __always_inline bool is_loopback(__be32 address)
{
	return (address & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
}

static __always_inline bool is_in(__be32 address, __be32 network)
{
	return (address & bpf_htonl(0xffffff00)) == network;
}

static __always_inline bool owns(const struct guest *guest, __be32 address)
{
	if (is_in(address, guest->loopback))
		return true;
	for (__u32 i = 0; i < MOST; i++)
		if (i < guest->count4 && guest->own4[i] == address)
			return true;
	return false;
}

static __always_inline bool equal(const struct address *a, const struct address *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2] &&
	       a->word[3] == b->word[3];
}

static __always_inline bool is_mapped(const struct address *address)
{
	return !address->word[0] && !address->word[1] && address->word[2] == bpf_htonl(0xffff);
}

static __always_inline bool is_any(const struct address *address)
{
	return !address->word[0] && !address->word[1] && !address->word[2] && !address->word[3];
}

static __always_inline bool is_loopback6(const struct address *address)
{
	return !address->word[0] && !address->word[1] && !address->word[2] &&
	       address->word[3] == bpf_htonl(1);
}

static __always_inline bool owns6(const struct guest *guest, const struct address *address)
{
	if (is_mapped(address))
		return owns(guest, address->word[3]);
	if (equal(address, &guest->loopback6))
		return true;
	for (__u32 i = 0; i < MOST; i++)
		if (i < guest->count6 && equal(&guest->own6[i], address))
			return true;
	return false;
}

/* Whether a guest, to which an address belongs, is reached there from another one. Its loopback is
 * not for other guests. */
static __always_inline bool is_reached(const struct guest *guest, const struct address *at,
				       const struct address *from)
{
	bool inside = is_mapped(at) ? is_in(at->word[3], guest->loopback) :
				      equal(at, &guest->loopback6);
	return !inside || owns6(guest, from);
}

/* An address as the guest names it, on the host. */
static __always_inline __be32 to_host(const struct guest *guest, __be32 address)
{
	if (is_in(address, bpf_htonl(0x7f000000)))
		return (address & bpf_htonl(0xff)) | guest->loopback;
	return address;
}

static __always_inline __be32 to_guest(const struct guest *guest, __be32 address)
{
	if (is_in(address, guest->loopback))
		return (address & bpf_htonl(0xff)) | bpf_htonl(0x7f000000);
	return address;
}

static __always_inline void to_host6(const struct guest *guest, struct address *address)
{
	if (is_loopback6(address))
		*address = guest->loopback6;
	else if (is_mapped(address))
		address->word[3] = to_host(guest, address->word[3]);
}

static __always_inline void to_guest6(const struct guest *guest, struct address *address)
{
	if (equal(address, &guest->loopback6))
		*address = (struct address){ { 0, 0, 0, bpf_htonl(1) } };
	else if (is_mapped(address))
		address->word[3] = to_guest(guest, address->word[3]);
}

/* 127.0.0.1 of the guest. */
static __always_inline __be32 localhost(const struct guest *guest)
{
	return guest->loopback | bpf_htonl(1);
}

/* Where a socket is bound that the guest binds to "any". One that takes IPv4 too is an IPv6 socket
 * at an IPv4 address: bound to an IPv6 address it would take that alone. */
static __always_inline __be32 home(const struct guest *guest)
{
	return guest->count4 ? guest->own4[0] : localhost(guest);
}

static __always_inline struct address home6(const struct guest *guest)
{
	return guest->count6 ? guest->own6[0] : guest->loopback6;
}

static __always_inline struct address mapped(__be32 address)
{
	return (struct address){ { 0, 0, bpf_htonl(0xffff), address } };
}

/* An address that is the guest's alone. */
static __always_inline bool owns_alone(const struct guest *guest, const struct address *address)
{
	if (guest->shares && is_mapped(address))
		return is_in(address->word[3], guest->loopback);
	return owns6(guest, address);
}

/* Its class on the uplink. */
static __always_inline __u32 class_of(const struct guest *guest)
{
	return (bpf_ntohl(guest->loopback) - FIRST_LOOPBACK) >> 8;
}

/* Its number among the guests of its instance. */
static __always_inline __u32 number_of(const struct guest *guest)
{
	return class_of(guest) % GUESTS;
}

/* What tells the listeners of a guest on "any" from others at the same first address. */
static __always_inline __u16 any_of(const struct guest *guest)
{
	return guest->shares ? 1 + class_of(guest) : 1;
}

static __always_inline bool is_tracking(void)
{
	__u32 only = 0;
	return bpf_map_lookup_elem(&tracking, &only);
}

static __always_inline bool was_told(const struct question *question)
{
	__u64 *when = bpf_map_lookup_elem(&told, question);
	return when && bpf_ktime_get_ns() - *when < TOLD_FOR;
}

static __always_inline struct guest *by_address(struct address address)
{
	__u64 *cgroup = bpf_map_lookup_elem(&owners, &address);
	if (!cgroup && is_mapped(&address) && is_loopback(address.word[3])) {
		address.word[0] = bpf_htonl(1);
		address.word[3] &= bpf_htonl(0xffffff00);
		cgroup = bpf_map_lookup_elem(&owners, &address);
	}
	return cgroup ? bpf_map_lookup_elem(&guests, cgroup) : NULL;
}

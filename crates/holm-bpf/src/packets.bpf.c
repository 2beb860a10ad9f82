/* Packets of guests with net.mode = "native": whose they are, and which socket gets them. */
#include "guests.h"

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

/* The index of lo in every network namespace. */
#define LO 1

/* A guest may have made a network namespace of its own, in which it has whatever addresses. */
static __always_inline bool is_elsewhere(struct __sk_buff *packet)
{
	struct bpf_sock *socket = packet->sk ? bpf_sk_fullsock(packet->sk) : NULL;
	return socket && bpf_sk_storage_get(&elsewhere, socket, NULL, 0);
}

/* The addresses of a packet, whose header is in one piece here. False for another protocol than IP. */
static __always_inline bool addresses(struct __sk_buff *packet, struct address *from,
				      struct address *to)
{
	void *data = (void *)(long)packet->data, *end = (void *)(long)packet->data_end;
	if (packet->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data;
		if ((void *)(ip + 1) > end)
			return false;
		*from = mapped(ip->saddr);
		*to = mapped(ip->daddr);
		return true;
	}
	struct ipv6hdr *ip = data;
	if (packet->protocol != bpf_htons(ETH_P_IPV6) || (void *)(ip + 1) > end)
		return false;
	__builtin_memcpy(from, &ip->saddr, sizeof(*from));
	__builtin_memcpy(to, &ip->daddr, sizeof(*to));
	return true;
}

static __always_inline struct guest *guest_of(struct __sk_buff *packet)
{
	__u64 cgroup = bpf_skb_ancestor_cgroup_id(packet, LEVEL);
	return bpf_map_lookup_elem(&guests, &cgroup);
}

/* What is counted of a guest; never NULL. */
static __always_inline struct traffic *traffic_of(const struct guest *guest)
{
	__u32 number = number_of(guest);
	return bpf_map_lookup_elem(&counters, &number);
}

/* Whether a packet of a guest is from itself to itself: a guest with a stack of its own would have it
 * on its own lo, where nobody counts. */
static __always_inline bool stays_inside(struct __sk_buff *packet, const struct guest *guest,
					 const struct address *other)
{
	return packet->ifindex == LO && owns_alone(guest, other);
}

SEC("program/egress")
int egress(struct __sk_buff *packet)
{
	struct guest *guest = guest_of(packet);
	struct address from, to;
	if (!guest)
		return 1;
	packet->priority = QDISC | class_of(guest);
	bool passes = addresses(packet, &from, &to) && owns6(guest, &from);
	if (!passes && is_elsewhere(packet))
		return 1;
	struct traffic *count = traffic_of(guest);
	if (count && !passes)
		__sync_fetch_and_add(&count->foreign_source, 1);
	if (count && passes && !stays_inside(packet, guest, &to)) {
		__sync_fetch_and_add(&count->sent_packets, 1);
		__sync_fetch_and_add(&count->sent_bytes, packet->len);
	}
	return passes;
}

/* Whether a guest may receive a packet now. Of two CPUs that find room at the same time one may not
 * count its packet: those are a few in a thousand. */
static __always_inline bool is_within_cap(struct __sk_buff *packet, const struct guest *guest)
{
	if (guest->uncapped)
		return true;
	__u32 network = guest->loopback;
	struct cap *cap = bpf_map_lookup_elem(&caps, &network);
	if (!cap || !cap->rate)
		return true;
	__u64 now = bpf_ktime_get_ns();
	__u64 next = *(volatile __u64 *)&cap->next;
	__u64 begin = next + BURST < now ? now - BURST : next;
	if (begin > now)
		return false;
	__u64 took = packet->len * 1000000000ull / cap->rate;
	__sync_val_compare_and_swap(&cap->next, next, begin + took);
	return true;
}

SEC("program/ingress")
int ingress(struct __sk_buff *packet)
{
	struct guest *guest = guest_of(packet);
	struct address from, to;
	if (!guest)
		return 1;
	bool passes = addresses(packet, &from, &to) && owns6(guest, &to) &&
		      is_reached(guest, &to, &from);
	if (!passes && is_elsewhere(packet))
		return 1;
	struct traffic *count = traffic_of(guest);
	if (count && !passes)
		__sync_fetch_and_add(&count->foreign_destination, 1);
	if (!passes || stays_inside(packet, guest, &from))
		return passes;
	if (!is_within_cap(packet, guest)) {
		if (count)
			__sync_fetch_and_add(&count->over_cap, 1);
		return 0;
	}
	if (count) {
		__sync_fetch_and_add(&count->received_packets, 1);
		__sync_fetch_and_add(&count->received_bytes, packet->len);
	}
	return 1;
}

/* Counts a socket that listens. False if its guest has too many. */
static __always_inline bool is_counted(struct bpf_sock *socket, __u32 network)
{
	__u32 *count = bpf_map_lookup_elem(&listening, &network);
	/* It runs since before there was this map. */
	if (!count)
		return true;
	if (bpf_sk_storage_get(&counted, socket, NULL, 0))
		return true;
	if (*count >= LISTENERS_OF_A_GUEST ||
	    !bpf_sk_storage_get(&counted, socket, &network, BPF_SK_STORAGE_GET_F_CREATE))
		return false;
	__sync_fetch_and_add(count, 1);
	return true;
}

/* Counts a TCP connection, which the guest has at this address. It may be accepted while another
 * guest's program runs on this CPU, or none. */
static __always_inline void count_connection(struct bpf_sock_ops *ctx, struct bpf_sock *socket)
{
	/* Read in any case: two ways to read one would become one at a computed place. */
	__be32 local4 = FIELD(ctx->local_ip4), remote4 = FIELD(ctx->remote_ip4);
	struct address local6 = FIELD6(ctx->local_ip6), remote6 = FIELD6(ctx->remote_ip6);
	bool is_opened = ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB;
	struct guest *guest = by_address(ctx->family == AF_INET ? mapped(local4) : local6);
	struct address remote = ctx->family == AF_INET ? mapped(remote4) : remote6;
	__u32 *network = bpf_sk_storage_get(&sharing, socket, NULL, 0);
	if (network) {
		struct address key = mapped(*network);
		guest = by_address(key);
	}
	struct traffic *count = guest ? traffic_of(guest) : NULL;
	if (count && !owns_alone(guest, &remote))
		__sync_fetch_and_add(is_opened ? &count->opened : &count->accepted, 1);
}

/* Remembers each socket that begins to listen. When it is closed, the kernel forgets it. */
SEC("program/sock_ops")
int sock_ops(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB ||
	    ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		struct bpf_sock *connected = ctx->sk;
		if (connected && !bpf_sk_storage_get(&elsewhere, connected, NULL, 0))
			count_connection(ctx, connected);
		return 1;
	}
	if (ctx->op != BPF_SOCK_OPS_TCP_LISTEN_CB)
		return 1;
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(LEVEL);
	struct guest *guest = bpf_map_lookup_elem(&guests, &cgroup);
	struct bpf_sock *socket = ctx->sk;
	if (!guest || !socket)
		return 1;
	if (bpf_sk_storage_get(&elsewhere, socket, NULL, 0) ||
	    !is_counted(socket, guest->loopback))
		return 1;
	/* Read in any case: two ways to read one would become one at a computed place. */
	__be32 local4 = FIELD(ctx->local_ip4);
	struct address local6 = FIELD6(ctx->local_ip6);
	struct listener key = { .port = ctx->local_port };
	key.address = ctx->family == AF_INET ? mapped(local4) : local6;
	/* listen(2) without bind(2) takes "any" by itself. */
	bool unbound = is_any(&key.address) || (is_mapped(&key.address) && !key.address.word[3]);
	if (unbound)
		key.address = mapped(home(guest));
	if (unbound || bpf_sk_storage_get(&any, socket, NULL, 0))
		key.any = any_of(guest);
#pragma clang loop unroll(full)
	for (int place = 0; place < PLACES - 1; place++) {
		key.place = place;
		if (!bpf_sock_hash_update(ctx, &listeners, &key, BPF_NOEXIST))
			return 1;
	}
	key.place = PLACES - 1;
	bpf_sock_hash_update(ctx, &listeners, &key, BPF_ANY);
	return 1;
}

/* Assigns a listener with this key; false if there is none that takes the connection. */
static __always_inline bool assign(struct bpf_sk_lookup *ctx, struct listener *key)
{
#pragma clang loop unroll(full)
	for (int place = 0; place < PLACES; place++) {
		key->place = place;
		struct bpf_sock *socket = bpf_map_lookup_elem(&listeners, key);
		if (!socket)
			continue;
		long refused = bpf_sk_assign(ctx, socket, 0);
		bpf_sk_release(socket);
		return !refused;
	}
	return false;
}

static __always_inline bool is_looking(void)
{
	__u32 only = 0;
	__u32 *looking = bpf_map_lookup_elem(&searching, &only);
	return looking && *looking;
}

static __always_inline void set_looking(__u32 value)
{
	__u32 only = 0;
	__u32 *looking = bpf_map_lookup_elem(&searching, &only);
	if (looking)
		*looking = value;
}

/* Connections to an address of a guest reach its sockets, never those that others bound to "any".
 * Datagrams do so by `steer`, which has no way to refuse one. */
SEC("program/sk_lookup")
int sk_lookup(struct bpf_sk_lookup *ctx)
{
	/* Read in any case: two ways to read one would become one at a computed place. */
	__be32 local4 = FIELD(ctx->local_ip4);
	struct address local6 = FIELD6(ctx->local_ip6);
	__be32 remote4 = FIELD(ctx->remote_ip4);
	struct address remote6 = FIELD6(ctx->remote_ip6);
	struct listener key = { .port = ctx->local_port };
	key.address = ctx->family == AF_INET ? mapped(local4) : local6;
	if (ctx->protocol != IPPROTO_TCP) {
		bool refused = bpf_map_lookup_elem(&unserved, &key) && !is_looking();
		return refused ? SK_DROP : SK_PASS;
	}
	struct guest *guest = by_address(key.address);
	/* At an address that guests share the kernel finds whose socket has the port, or the host's. */
	if (!guest || (guest->shares && !owns_alone(guest, &key.address)))
		return SK_PASS;
	struct address from = ctx->family == AF_INET ? mapped(remote4) : remote6;
	if (!is_reached(guest, &key.address, &from))
		return SK_DROP;
	if (assign(ctx, &key))
		return SK_PASS;
	key.any = any_of(guest);
	if (ctx->family == AF_INET6) {
		key.address = home6(guest);
		if (assign(ctx, &key))
			return SK_PASS;
	}
	/* An IPv6 socket that takes IPv4 too is there, and takes IPv6 all the same. */
	key.address = mapped(home(guest));
	return assign(ctx, &key) ? SK_PASS : SK_DROP;
}

/* A datagram to an address of a guest. */
struct datagram {
	struct question question;
	struct address to;
	__u32 header; /* how long its IP header is */
	bool again; /* it comes once more */
};

/* What tells a datagram that comes once more. */
#define AGAIN 0x486f

/* Keeps a datagram from being tracked as a connection, unless it is the answer to one that is. On lo
 * it is already; what is sent there once more is not. */
static __always_inline void leave_untracked(struct __sk_buff *packet, struct datagram *datagram)
{
	if (was_told(&datagram->question))
		return;
	datagram->again = packet->ifindex == LO && packet->tc_index != AGAIN;
	packet->priority = UNTRACKED;
	packet->tc_index = AGAIN;
}

/* Makes an IPv4 datagram on lo one to the address that its socket got, which leaves it tracked. The
 * kernel takes none of the host's once more. */
static __always_inline bool readdress(struct __sk_buff *packet, const struct datagram *datagram,
				      __be32 to)
{
	__be32 from = datagram->to.word[3];
	__u32 ip = sizeof(struct ethhdr), udp = ip + datagram->header;
	struct listener served = { .address = mapped(to) };
	served.port = bpf_ntohs(datagram->question.to);
	if (bpf_l4_csum_replace(packet, udp + offsetof(struct udphdr, check), from, to,
				BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0 | sizeof(to)) ||
	    bpf_l3_csum_replace(packet, ip + offsetof(struct iphdr, check), from, to, sizeof(to)) ||
	    bpf_skb_store_bytes(packet, ip + offsetof(struct iphdr, daddr), &to, sizeof(to), 0))
		return false;
	if (bpf_map_lookup_elem(&unserved, &served))
		bpf_map_delete_elem(&unserved, &served);
	return true;
}

/* Gives a datagram to a socket, which has this name. */
static __always_inline bool give_to(struct __sk_buff *packet, struct bpf_sock *socket,
				    const struct bpf_sock_tuple *name, __u32 size,
				    struct datagram *datagram)
{
	if (!is_tracking())
		return !bpf_sk_assign(packet, socket, 0);
	if (packet->ifindex == LO && size == sizeof(name->ipv4))
		return readdress(packet, datagram, name->ipv4.daddr);
	leave_untracked(packet, datagram);
	return datagram->again || !bpf_sk_assign(packet, socket, 0);
}

/* Gives it to the socket with this name if the guest bound that to "any". */
static __always_inline bool give(struct __sk_buff *packet, const struct guest *guest,
				 struct bpf_sock_tuple *name, __u32 size,
				 struct datagram *datagram)
{
	struct bpf_sock *socket =
		bpf_sk_lookup_udp(packet, name, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return false;
	__u32 *network = bpf_sk_storage_get(&any, socket, NULL, 0);
	bool given = network && (!*network || *network == guest->loopback) &&
		     give_to(packet, socket, name, size, datagram);
	bpf_sk_release(socket);
	if (given)
		bpf_map_update_elem(&asked, &datagram->question, &datagram->to, BPF_ANY);
	return given;
}

/* What the kernel finds for a datagram between these. */
static __always_inline struct bpf_sock *find(struct __sk_buff *packet, const struct address *from,
					     __be16 from_port, const struct address *to,
					     __be16 to_port)
{
	struct bpf_sock_tuple name = {};
	if (is_mapped(to)) {
		name.ipv4.saddr = from->word[3];
		name.ipv4.daddr = to->word[3];
		name.ipv4.sport = from_port;
		name.ipv4.dport = to_port;
		return bpf_sk_lookup_udp(packet, &name, sizeof(name.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	__builtin_memcpy(name.ipv6.saddr, from, sizeof(*from));
	__builtin_memcpy(name.ipv6.daddr, to, sizeof(*to));
	name.ipv6.sport = from_port;
	name.ipv6.dport = to_port;
	return bpf_sk_lookup_udp(packet, &name, sizeof(name.ipv6), BPF_F_CURRENT_NETNS, 0);
}

/* Whether a socket has an address, and whether it is one of a guest that has none. */
static __always_inline void look_at(struct bpf_sock *socket, bool *is_bound, bool *is_clients)
{
	__be32 at4 = FIELD(socket->src_ip4);
	struct address at6 = FIELD6(socket->src_ip6);
	*is_bound = socket->family == AF_INET ? at4 : !is_any(&at6);
	*is_clients = bpf_sk_storage_get(&any, socket, NULL, 0);
}

/* Remembers a sender of the host. */
static __always_inline void remember_host(struct __sk_buff *packet, const struct datagram *datagram)
{
	const struct question *question = &datagram->question;
	struct bpf_sock *sender = find(packet, &datagram->to, question->to, &question->client,
				       question->from);
	bool is_bound, is_clients;
	if (!sender)
		return;
	look_at(sender, &is_bound, &is_clients);
	bpf_sk_release(sender);
	struct listener key = { .address = question->client, .port = bpf_ntohs(question->from) };
	__u32 yes = 1;
	if (!is_bound && !is_clients)
		bpf_map_update_elem(&hosts, &key, &yes, BPF_ANY);
}

/* Finds the socket for it: the one that the kernel will find, or one of the guest's that it is given
 * to. */
static __always_inline bool is_served(struct __sk_buff *packet, const struct guest *guest,
				      struct datagram *datagram, const struct listener *key)
{
	struct bpf_sock_tuple name = {}, name6 = {};
	const struct question *question = &datagram->question;
	bool is_ipv4 = is_mapped(&datagram->to), is_bound, is_clients;
	struct bpf_sock *exact = find(packet, &question->client, question->from, &datagram->to,
				      question->to);
	if (exact) {
		look_at(exact, &is_bound, &is_clients);
		bpf_sk_release(exact);
		if (is_bound)
			bpf_map_delete_elem(&asked, question);
		if (is_bound || is_clients || bpf_map_lookup_elem(&hosts, key))
			return true;
	}
	name.ipv4.saddr = question->client.word[3];
	name.ipv4.sport = question->from;
	name.ipv4.dport = question->to;
	__builtin_memcpy(name6.ipv6.saddr, &question->client, sizeof(question->client));
	name6.ipv6.sport = question->from;
	name6.ipv6.dport = question->to;
	name.ipv4.daddr = home(guest);
	if (is_ipv4 && give(packet, guest, &name, sizeof(name.ipv4), datagram))
		return true;
	struct address any6 = home6(guest);
	__builtin_memcpy(name6.ipv6.daddr, &any6, sizeof(any6));
	if (give(packet, guest, &name6, sizeof(name6.ipv6), datagram))
		return true;
	any6 = mapped(home(guest));
	__builtin_memcpy(name6.ipv6.daddr, &any6, sizeof(any6));
	return !is_ipv4 && give(packet, guest, &name6, sizeof(name6.ipv6), datagram);
}

/* Datagrams to an address of a guest reach its sockets: the one that is bound to the address, or one
 * that is bound to "any". Those that others have bound to "any" get nothing. */
SEC("program/steer")
int steer(struct __sk_buff *packet)
{
	struct datagram datagram = {};
	struct udphdr udp;
	if (packet->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;
		if (bpf_skb_load_bytes_relative(packet, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
		    ip.protocol != IPPROTO_UDP || ip.frag_off & bpf_htons(0x1fff))
			return TC_ACT_UNSPEC;
		datagram.header = ip.ihl * 4;
		datagram.to = mapped(ip.daddr);
		datagram.question.client = mapped(ip.saddr);
	} else if (packet->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;
		if (bpf_skb_load_bytes_relative(packet, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
		    ip.nexthdr != IPPROTO_UDP)
			return TC_ACT_UNSPEC;
		datagram.header = sizeof(ip);
		__builtin_memcpy(&datagram.to, &ip.daddr, sizeof(datagram.to));
		__builtin_memcpy(&datagram.question.client, &ip.saddr, sizeof(datagram.to));
	} else {
		return TC_ACT_UNSPEC;
	}
	struct guest *guest = by_address(datagram.to);
	if (!guest || bpf_skb_load_bytes_relative(packet, datagram.header, &udp, sizeof(udp),
						  BPF_HDR_START_NET))
		return TC_ACT_UNSPEC;
	/* At an address that guests share the kernel finds whose it is, or the host's. */
	if (guest->shares && !owns_alone(guest, &datagram.to))
		return TC_ACT_UNSPEC;
	datagram.question.from = udp.source;
	datagram.question.to = udp.dest;
	struct listener key = { .address = datagram.to, .port = bpf_ntohs(udp.dest) };
	__u32 yes = 1;
	set_looking(1);
	if (by_address(datagram.question.client))
		remember_host(packet, &datagram);
	bool served = is_served(packet, guest, &datagram, &key);
	set_looking(0);
	if (!served)
		bpf_map_update_elem(&unserved, &key, &yes, BPF_ANY);
	else if (bpf_map_lookup_elem(&unserved, &key))
		bpf_map_delete_elem(&unserved, &key);
	return datagram.again ? bpf_redirect(LO, BPF_F_INGRESS) : TC_ACT_UNSPEC;
}

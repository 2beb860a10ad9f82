/* Packets of guests with net.mode = "native": whose they are, and which socket gets them. */
#include "guests.h"

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

/* A guest may have made a network namespace of its own, in which it has whatever addresses. */
static __always_inline bool is_elsewhere(struct __sk_buff *packet)
{
	struct bpf_sock *socket = packet->sk ? bpf_sk_fullsock(packet->sk) : NULL;
	return socket && bpf_sk_storage_get(&elsewhere, socket, NULL, 0);
}

/* The addresses of a packet. False for another protocol than IP. */
static __always_inline bool addresses(struct __sk_buff *packet, struct address *from,
				      struct address *to)
{
	*from = mapped(0);
	*to = mapped(0);
	if (packet->protocol == bpf_htons(ETH_P_IP))
		return !bpf_skb_load_bytes(packet, offsetof(struct iphdr, saddr), &from->word[3], 4) &&
		       !bpf_skb_load_bytes(packet, offsetof(struct iphdr, daddr), &to->word[3], 4);
	return packet->protocol == bpf_htons(ETH_P_IPV6) &&
	       !bpf_skb_load_bytes(packet, offsetof(struct ipv6hdr, saddr), from, sizeof(*from)) &&
	       !bpf_skb_load_bytes(packet, offsetof(struct ipv6hdr, daddr), to, sizeof(*to));
}

static __always_inline struct guest *guest_of(struct __sk_buff *packet)
{
	__u64 cgroup = bpf_skb_ancestor_cgroup_id(packet, LEVEL);
	return bpf_map_lookup_elem(&guests, &cgroup);
}

SEC("program/egress")
int egress(struct __sk_buff *packet)
{
	struct guest *guest = guest_of(packet);
	struct address from, to;
	if (!guest || (addresses(packet, &from, &to) && owns6(guest, &from)))
		return 1;
	return is_elsewhere(packet);
}

SEC("program/ingress")
int ingress(struct __sk_buff *packet)
{
	struct guest *guest = guest_of(packet);
	struct address from, to;
	if (!guest || (addresses(packet, &from, &to) && owns6(guest, &to) &&
		       is_reached(guest, &to, &from)))
		return 1;
	return is_elsewhere(packet);
}

/* Remembers each socket that begins to listen. When it is closed, the kernel forgets it. */
SEC("program/sock_ops")
int sock_ops(struct bpf_sock_ops *ctx)
{
	if (ctx->op != BPF_SOCK_OPS_TCP_LISTEN_CB)
		return 1;
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(LEVEL);
	struct guest *guest = bpf_map_lookup_elem(&guests, &cgroup);
	struct bpf_sock *socket = ctx->sk;
	if (!guest || !socket)
		return 1;
	if (bpf_sk_storage_get(&elsewhere, socket, NULL, 0))
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
	key.any = unbound || bpf_sk_storage_get(&any, socket, NULL, 0);
	bpf_sock_hash_update(ctx, &listeners, &key, BPF_ANY);
	return 1;
}

/* Assigns the listener with this key; false if there is none that takes the connection. */
static __always_inline bool assign(struct bpf_sk_lookup *ctx, struct listener *key)
{
	struct bpf_sock *socket = bpf_map_lookup_elem(&listeners, key);
	if (!socket)
		return false;
	long refused = bpf_sk_assign(ctx, socket, 0);
	bpf_sk_release(socket);
	return !refused;
}

/* Connections to an address of a guest reach its sockets, never those that others bound to "any".
 */
SEC("program/sk_lookup")
int sk_lookup(struct bpf_sk_lookup *ctx)
{
	if (ctx->protocol != IPPROTO_TCP)
		return SK_PASS;
	/* Read in any case: two ways to read one would become one at a computed place. */
	__be32 local4 = FIELD(ctx->local_ip4);
	struct address local6 = FIELD6(ctx->local_ip6);
	__be32 remote4 = FIELD(ctx->remote_ip4);
	struct address remote6 = FIELD6(ctx->remote_ip6);
	struct listener key = { .port = ctx->local_port };
	key.address = ctx->family == AF_INET ? mapped(local4) : local6;
	struct guest *guest = by_address(key.address);
	if (!guest)
		return SK_PASS;
	struct address from = ctx->family == AF_INET ? mapped(remote4) : remote6;
	if (!is_reached(guest, &key.address, &from))
		return SK_DROP;
	if (assign(ctx, &key))
		return SK_PASS;
	key.any = 1;
	if (ctx->family == AF_INET6) {
		key.address = home6(guest);
		if (assign(ctx, &key))
			return SK_PASS;
	}
	/* An IPv6 socket that takes IPv4 too is there, and takes IPv6 all the same. */
	key.address = mapped(home(guest));
	return assign(ctx, &key) ? SK_PASS : SK_DROP;
}

/* Gives a datagram to the socket with this name if the guest bound it to "any". */
static __always_inline bool give(struct __sk_buff *packet, struct bpf_sock_tuple *name, __u32 size,
				 const struct question *question, const struct address *at)
{
	struct bpf_sock *socket =
		bpf_sk_lookup_udp(packet, name, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return false;
	bool given = bpf_sk_storage_get(&any, socket, NULL, 0) &&
		     !bpf_sk_assign(packet, socket, 0);
	bpf_sk_release(socket);
	if (given)
		bpf_map_update_elem(&asked, question, at, BPF_ANY);
	return given;
}

/* Datagrams to an address of a guest that no socket is bound to, but to "any". */
SEC("program/steer")
int steer(struct __sk_buff *packet)
{
	struct bpf_sock_tuple name = {}, name6 = {};
	struct address to, from;
	struct udphdr udp;
	__u32 header;
	if (packet->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;
		if (bpf_skb_load_bytes_relative(packet, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
		    ip.protocol != IPPROTO_UDP || ip.frag_off & bpf_htons(0x1fff))
			return TC_ACT_UNSPEC;
		header = ip.ihl * 4;
		to = mapped(ip.daddr);
		from = mapped(ip.saddr);
	} else if (packet->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;
		if (bpf_skb_load_bytes_relative(packet, 0, &ip, sizeof(ip), BPF_HDR_START_NET) ||
		    ip.nexthdr != IPPROTO_UDP)
			return TC_ACT_UNSPEC;
		header = sizeof(ip);
		__builtin_memcpy(&to, &ip.daddr, sizeof(to));
		__builtin_memcpy(&from, &ip.saddr, sizeof(from));
	} else {
		return TC_ACT_UNSPEC;
	}
	struct guest *guest = by_address(to);
	if (!guest || bpf_skb_load_bytes_relative(packet, header, &udp, sizeof(udp), BPF_HDR_START_NET))
		return TC_ACT_UNSPEC;
	name.ipv4.saddr = from.word[3];
	name.ipv4.sport = udp.source;
	name.ipv4.dport = udp.dest;
	__builtin_memcpy(name6.ipv6.saddr, &from, sizeof(from));
	__builtin_memcpy(name6.ipv6.daddr, &to, sizeof(to));
	name6.ipv6.sport = udp.source;
	name6.ipv6.dport = udp.dest;
	struct question question = { .client = from, .from = udp.source, .to = udp.dest };
	struct bpf_sock *exact;
	if (is_mapped(&to)) {
		name.ipv4.daddr = to.word[3];
		exact = bpf_sk_lookup_udp(packet, &name, sizeof(name.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		exact = bpf_sk_lookup_udp(packet, &name6, sizeof(name6.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (exact) {
		__be32 at4 = FIELD(exact->src_ip4);
		struct address at6 = FIELD6(exact->src_ip6);
		bool is_bound = exact->family == AF_INET ? at4 : !is_any(&at6);
		bpf_sk_release(exact);
		if (is_bound) {
			bpf_map_delete_elem(&asked, &question);
			return TC_ACT_UNSPEC;
		}
	}
	name.ipv4.daddr = home(guest);
	if (is_mapped(&to) && give(packet, &name, sizeof(name.ipv4), &question, &to))
		return TC_ACT_UNSPEC;
	struct address any6 = home6(guest);
	__builtin_memcpy(name6.ipv6.daddr, &any6, sizeof(any6));
	if (give(packet, &name6, sizeof(name6.ipv6), &question, &to) || is_mapped(&to))
		return TC_ACT_UNSPEC;
	any6 = mapped(home(guest));
	__builtin_memcpy(name6.ipv6.daddr, &any6, sizeof(any6));
	give(packet, &name6, sizeof(name6.ipv6), &question, &to);
	return TC_ACT_UNSPEC;
}

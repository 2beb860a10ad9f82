/* System calls that name addresses: each guest sees its own, and none of others.
 *
 * The programs are attached to the cgroup of a Holm root, so that they run for the sockets of its
 * guests alone. A guest that is not in `guests` has another mode. What a socket can send and
 * receive is decided in packets.bpf.c; these give programs the addresses that they expect.
 */
#include "guests.h"

#define EPROTONOSUPPORT 93
#define EADDRINUSE 98
#define EADDRNOTAVAIL 99
#define ENETUNREACH 101
#define ENOBUFS 105
#define ECONNREFUSED 111
/* What a bind hook returns to also allow ports below 1024 (BPF_RET_BIND_NO_CAP_NET_BIND_SERVICE). */
#define ALLOW_ALL_PORTS 3

/* The guest that makes a call, if its socket is in the host's network namespace. */
static __always_inline struct guest *caller(struct bpf_sock_addr *ctx)
{
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(LEVEL);
	struct guest *guest = bpf_map_lookup_elem(&guests, &cgroup);
	return guest && bpf_get_netns_cookie(ctx) == guest->netns ? guest : NULL;
}

static __always_inline int refuse(int error)
{
	bpf_set_retval(-error);
	return 0;
}

static __always_inline bool is_bound_to_any(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *socket = ctx->sk;
	return socket && bpf_sk_storage_get(&any, socket, NULL, 0);
}

static __always_inline void mark_bound_to_any(struct bpf_sock_addr *ctx, const struct guest *guest)
{
	struct bpf_sock *socket = ctx->sk;
	__u32 network = guest->loopback;
	if (socket)
		bpf_sk_storage_get(&any, socket, &network, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline struct address read6(const struct bpf_sock_addr *ctx)
{
	return FIELD6(ctx->user_ip6);
}

static __always_inline void write6(struct bpf_sock_addr *ctx, const struct address *address)
{
	ctx->user_ip6[0] = address->word[0];
	ctx->user_ip6[1] = address->word[1];
	ctx->user_ip6[2] = address->word[2];
	ctx->user_ip6[3] = address->word[3];
}

/* SCTP binds without a hook, sockets of MPTCP can enter no map (and would tell of the host's other
 * addresses), and nothing steers what UDP-Lite and others receive. Programs then take TCP and UDP. */
static __always_inline bool is_translated(__u32 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_ICMP ||
	       protocol == IPPROTO_ICMPV6;
}

/* Counts a socket that is made. False if there are too many. */
static __always_inline bool is_made(struct bpf_sock *socket, const struct guest *guest)
{
	__u64 cookie = bpf_get_socket_cookie(socket);
	__u32 number = number_of(guest);
	__u32 *own = bpf_map_lookup_elem(&held, &number);
	if (!own || *own >= SOCKETS_OF_A_GUEST ||
	    bpf_map_update_elem(&makers, &cookie, &number, BPF_NOEXIST))
		return false;
	__sync_fetch_and_add(own, 1);
	return true;
}

SEC("program/sock_create")
int sock_create(struct bpf_sock *socket)
{
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(LEVEL);
	struct guest *guest = bpf_map_lookup_elem(&guests, &cgroup);
	if (!guest)
		return 1;
	if (bpf_get_netns_cookie(socket) == guest->netns) {
		if (!is_translated(socket->protocol))
			return refuse(EPROTONOSUPPORT);
		__u32 network = guest->loopback;
		if (guest->shares &&
		    !bpf_sk_storage_get(&sharing, socket, &network, BPF_SK_STORAGE_GET_F_CREATE))
			return refuse(ENOBUFS);
		return is_made(socket, guest) ? 1 : refuse(ENOBUFS);
	}
	bpf_sk_storage_get(&elsewhere, socket, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	return 1;
}

/* One socket less is counted by this key. */
static __always_inline void forget(void *map, __u32 key)
{
	__u32 *count = bpf_map_lookup_elem(map, &key);
	if (count && *count)
		__sync_fetch_and_sub(count, 1);
}

SEC("program/sock_release")
int sock_release(struct bpf_sock *socket)
{
	__u32 *network = bpf_sk_storage_get(&counted, socket, NULL, 0);
	if (network)
		forget(&listening, *network);
	__u64 cookie = bpf_get_socket_cookie(socket);
	__u32 *number = bpf_map_lookup_elem(&makers, &cookie);
	if (number) {
		forget(&held, *number);
		bpf_map_delete_elem(&makers, &cookie);
	}
	return 1;
}

static __always_inline int allow_bind(const struct guest *guest)
{
	return (__u32)bpf_get_current_uid_gid() == guest->root ? ALLOW_ALL_PORTS : 1;
}

/* Whether another guest, or the host, receives the datagrams to a shared address at the port that a
 * socket asks for. The kernel lets several have it that say so (SO_REUSEADDR), whoever's they are,
 * and the last one gets all. */
static __always_inline bool is_taken(struct bpf_sock_addr *ctx, const struct guest *guest,
				     __be32 address)
{
	if (!guest->shares || ctx->protocol != IPPROTO_UDP || !ctx->user_port ||
	    is_in(address, guest->loopback))
		return false;
	struct bpf_sock_tuple name = {};
	name.ipv4.daddr = address;
	name.ipv4.dport = ctx->user_port;
	struct bpf_sock *has =
		bpf_sk_lookup_udp(ctx, &name, sizeof(name.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (!has)
		return false;
	__u32 *network = bpf_sk_storage_get(&sharing, has, NULL, 0);
	bool own = network && *network == guest->loopback;
	bpf_sk_release(has);
	return !own;
}

SEC("program/bind4")
int bind4(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	__be32 address = to_host(guest, ctx->user_ip4);
	if (!address) {
		address = home(guest);
		mark_bound_to_any(ctx, guest);
	}
	if (!owns(guest, address))
		return refuse(EADDRNOTAVAIL);
	if (is_taken(ctx, guest, address))
		return refuse(EADDRINUSE);
	ctx->user_ip4 = address;
	return allow_bind(guest);
}

/* Whether an IPv6 socket takes no IPv4 (IPV6_V6ONLY). */
static __always_inline bool takes_ipv6_only(struct bpf_sock_addr *ctx)
{
	/* struct sock_common: skc_reuse:4, skc_reuseport:1, skc_ipv6only:1 after skc_state, the same
	 * in every kernel that Holm supports. */
	const int bits = 19, ipv6only = 1 << 5;
	struct bpf_sock *socket = ctx->sk;
	if (!socket)
		return true;
	const __u8 *tcp = (const __u8 *)bpf_skc_to_tcp6_sock(socket);
	if (tcp)
		return tcp[bits] & ipv6only;
	const __u8 *udp = (const __u8 *)bpf_skc_to_udp6_sock(socket);
	return !udp || udp[bits] & ipv6only;
}

/* Whether an IPv6 socket is a client's: UDP without a port of its own. It is bound to an IPv6
 * address, from which it can be connected; what comes by IPv4 is steered to it. */
static __always_inline bool asks_by_ipv6(struct bpf_sock_addr *ctx, const struct guest *guest)
{
	return ctx->protocol == IPPROTO_UDP && !ctx->user_port && guest->count6;
}

SEC("program/bind6")
int bind6(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	struct address address = read6(ctx);
	to_host6(guest, &address);
	if (is_any(&address)) {
		address = takes_ipv6_only(ctx) || asks_by_ipv6(ctx, guest) ? home6(guest) :
									     mapped(home(guest));
		mark_bound_to_any(ctx, guest);
	}
	if (!owns6(guest, &address))
		return refuse(EADDRNOTAVAIL);
	if (is_mapped(&address) && is_taken(ctx, guest, address.word[3]))
		return refuse(EADDRINUSE);
	write6(ctx, &address);
	return allow_bind(guest);
}

/* The address that a guest reaches another one from; 0 if it has none. */
static __always_inline __be32 source_to(const struct guest *guest, __be32 to)
{
	if (is_in(to, guest->loopback))
		return localhost(guest);
	return guest->count4 ? guest->own4[0] : 0;
}

/* The destination on the host; 0 for what the guest must not reach. */
static __always_inline __be32 destination(const struct guest *guest, __be32 address)
{
	address = to_host(guest, address ? address : bpf_htonl(0x7f000001));
	if (!is_loopback(address) || owns(guest, address))
		return address;
	/* A guest may have been given an address of 127.0.0.0/8, which is no loopback of its own. */
	struct address key = mapped(address);
	return bpf_map_lookup_elem(&owners, &key) ? address : 0;
}

SEC("program/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	__be32 to = destination(guest, ctx->user_ip4);
	if (!to)
		return refuse(ECONNREFUSED);
	ctx->user_ip4 = to;
	struct bpf_sock *socket = ctx->sk;
	if (!socket || socket->src_ip4)
		return 1;
	struct sockaddr_in from = { .sin_family = AF_INET };
	from.sin_addr.s_addr = source_to(guest, to);
	if (!from.sin_addr.s_addr)
		return refuse(ENETUNREACH);
	return bpf_bind(ctx, (struct sockaddr *)&from, sizeof(from)) ? refuse(EADDRNOTAVAIL) : 1;
}

SEC("program/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	struct address to = read6(ctx);
	if (is_any(&to))
		to.word[3] = bpf_htonl(1);
	to_host6(guest, &to);
	struct address from = guest->loopback6;
	if (is_mapped(&to)) {
		to.word[3] = destination(guest, to.word[3]);
		if (!to.word[3])
			return refuse(ECONNREFUSED);
		from = mapped(source_to(guest, to.word[3]));
	} else if (!equal(&to, &guest->loopback6)) {
		from = guest->count6 ? guest->own6[0] : mapped(0);
	}
	write6(ctx, &to);
	struct bpf_sock *socket = ctx->sk;
	if (!socket || socket->src_ip6[0] || socket->src_ip6[1] || socket->src_ip6[2] ||
	    socket->src_ip6[3])
		return 1;
	if (!from.word[3])
		return refuse(ENETUNREACH);
	struct sockaddr_in6 name = { .sin6_family = AF_INET6 };
	__builtin_memcpy(&name.sin6_addr, &from, sizeof(from));
	return bpf_bind(ctx, (struct sockaddr *)&name, sizeof(name)) ? refuse(EADDRNOTAVAIL) : 1;
}

/* What a client asks a socket by. */
static __always_inline struct question question_of(struct bpf_sock_addr *ctx,
						   const struct address *client)
{
	struct bpf_sock *socket = ctx->sk;
	struct question question = { .client = *client, .from = ctx->user_port };
	if (socket)
		question.to = bpf_htons(socket->src_port);
	return question;
}

/* The address that a client has asked a socket at, which is bound to "any". */
static __always_inline const struct address *asked_at(struct bpf_sock_addr *ctx,
						      const struct address *client)
{
	struct question question = question_of(ctx, client);
	return bpf_map_lookup_elem(&asked, &question);
}

/* Remembers that a socket on "any" tells a client something, if it has not been asked. */
static __always_inline void remember_told(struct bpf_sock_addr *ctx, const struct address *client)
{
	if (!is_tracking())
		return;
	struct question question = question_of(ctx, client);
	__u64 now = bpf_ktime_get_ns();
	if (was_told(&question) || !bpf_map_lookup_elem(&asked, &question))
		bpf_map_update_elem(&told, &question, &now, BPF_ANY);
}

/* Whether an IPv6 socket is bound to an address. */
static __always_inline bool is_at(struct bpf_sock_addr *ctx, const struct address *address)
{
	struct bpf_sock *socket = ctx->sk;
	if (!socket)
		return false;
	struct address at = FIELD6(socket->src_ip6);
	return equal(&at, address);
}

SEC("program/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	__be32 to = destination(guest, ctx->user_ip4);
	if (!to)
		return refuse(ECONNREFUSED);
	ctx->user_ip4 = to;
	struct bpf_sock *socket = ctx->sk;
	/* It got a port of all addresses by itself (autobind): what comes there is the guest's. */
	bool has_no_address = socket && !socket->src_ip4;
	if (has_no_address)
		mark_bound_to_any(ctx, guest);
	__be32 from = ctx->msg_src_ip4;
	/* 127.0.0.6 is what the kernel has for sockets that are bound to an IPv6 address. */
	bool chosen = from && from != home(guest) && from != bpf_htonl(0x7f000006);
	if (!chosen && !has_no_address && is_bound_to_any(ctx)) {
		struct address client = mapped(to);
		const struct address *at = asked_at(ctx, &client);
		from = at && owns6(guest, at) ? at->word[3] : source_to(guest, to);
	} else if (!from) {
		from = source_to(guest, to);
	}
	from = to_host(guest, from);
	if (!from)
		return refuse(ENETUNREACH);
	if (!owns(guest, from))
		return refuse(EADDRNOTAVAIL);
	ctx->msg_src_ip4 = from;
	if (socket && !has_no_address && socket->src_ip4 != from && is_bound_to_any(ctx)) {
		struct address client = mapped(to);
		remember_told(ctx, &client);
	}
	return 1;
}

SEC("program/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	struct address to = read6(ctx);
	if (is_any(&to))
		to.word[3] = bpf_htonl(1);
	to_host6(guest, &to);
	write6(ctx, &to);
	struct bpf_sock *socket = ctx->sk;
	bool has_no_address = socket && !socket->src_ip6[0] && !socket->src_ip6[1] &&
			      !socket->src_ip6[2] && !socket->src_ip6[3];
	if (has_no_address)
		mark_bound_to_any(ctx, guest);
	struct address from = FIELD6(ctx->msg_src_ip6), any = home6(guest);
	bool unchosen = is_any(&from) || is_mapped(&from) || equal(&from, &any);
	bool bound_to_any = unchosen && !has_no_address && is_bound_to_any(ctx);
	const struct address *at = bound_to_any ? asked_at(ctx, &to) : NULL;
	if (at && owns6(guest, at)) {
		from = *at;
	} else if (bound_to_any || is_any(&from)) {
		if (equal(&to, &guest->loopback6))
			from = guest->loopback6;
		else if (guest->count6)
			from = guest->own6[0];
		else
			return refuse(ENETUNREACH);
	}
	to_host6(guest, &from);
	if (!owns6(guest, &from))
		return refuse(EADDRNOTAVAIL);
	ctx->msg_src_ip6[0] = from.word[0];
	ctx->msg_src_ip6[1] = from.word[1];
	ctx->msg_src_ip6[2] = from.word[2];
	ctx->msg_src_ip6[3] = from.word[3];
	if (!has_no_address && !is_at(ctx, &from) && is_bound_to_any(ctx))
		remember_told(ctx, &to);
	return 1;
}

static __always_inline int show(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (guest)
		ctx->user_ip4 = to_guest(guest, ctx->user_ip4);
	return 1;
}

static __always_inline int show6(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	struct address address = read6(ctx);
	to_guest6(guest, &address);
	write6(ctx, &address);
	return 1;
}

SEC("program/recvmsg4")
int recvmsg4(struct bpf_sock_addr *ctx)
{
	return show(ctx);
}

SEC("program/recvmsg6")
int recvmsg6(struct bpf_sock_addr *ctx)
{
	return show6(ctx);
}

SEC("program/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	return show(ctx);
}

SEC("program/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	return show6(ctx);
}

SEC("program/getsockname4")
int getsockname4(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	if (ctx->user_ip4 == home(guest) && is_bound_to_any(ctx))
		ctx->user_ip4 = 0;
	else
		ctx->user_ip4 = to_guest(guest, ctx->user_ip4);
	return 1;
}

SEC("program/getsockname6")
int getsockname6(struct bpf_sock_addr *ctx)
{
	struct guest *guest = caller(ctx);
	if (!guest)
		return 1;
	struct address address = read6(ctx), any = home6(guest), both = mapped(home(guest));
	if ((equal(&address, &any) || equal(&address, &both)) && is_bound_to_any(ctx))
		address = (struct address){};
	else
		to_guest6(guest, &address);
	write6(ctx, &address);
	return 1;
}

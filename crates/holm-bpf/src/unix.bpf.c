/* Abstract Unix sockets, whose names are those of a network namespace: a guest reaches its own, and
 * neither the host's nor those of other guests. Names themselves stay common; no hook translates
 * them where they are bound.
 *
 * The programs are attached to the cgroup of a Holm root as LSM programs, where the kernel has BPF
 * as an LSM. The verifier knows the types of what they read from the kernel's own description of
 * them (BTF), and refuses to load a program that reads something else.
 */
#include "guests.h"

#define AF_UNIX 1
#define ECONNREFUSED 111

/* Where something is in a structure of the kernel. `struct socket` and `struct unix_address` are the
 * same in all kernels that Holm supports; where `addr` is in `struct unix_sock` the loader looks up
 * and writes into the one instruction with this number (holm-bpf's `UNIX_ADDRESS`). */
#define SOCKET_SK 24
#define UNIX_SOCK_ADDR 0x7ff0
#define ADDRESS_PATH 10

static __always_inline struct guest *caller(void)
{
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id(LEVEL);
	return bpf_map_lookup_elem(&guests, &cgroup);
}

static __always_inline void *at(void *structure, __u64 offset)
{
	return *(void **)(structure + offset);
}

/* Remembers whose socket it is. */
static __always_inline void mark(void *socket, const struct guest *guest)
{
	__u32 network = guest->loopback;
	bpf_sk_storage_get(&names, socket, &network, BPF_SK_STORAGE_GET_F_CREATE);
}

/* Whether a socket has an abstract name and is not this guest's. */
static __always_inline bool is_anothers(void *socket, const struct guest *guest)
{
	void *unix_socket = bpf_skc_to_unix_sock(socket);
	if (!unix_socket)
		return false;
	void *address = at(unix_socket, UNIX_SOCK_ADDR);
	if (!address || *(char *)(address + ADDRESS_PATH))
		return false;
	__u32 *network = bpf_sk_storage_get(&names, socket, NULL, 0);
	return !network || *network != guest->loopback;
}

static __always_inline int reach(void *socket, void *other)
{
	struct guest *guest = caller();
	if (!guest)
		return 1;
	/* It may get a name by itself when it asks (autobind), and be answered there. */
	mark(socket, guest);
	if (!is_anothers(other, guest))
		return 1;
	bpf_set_retval(-ECONNREFUSED);
	return 0;
}

/* security_unix_stream_connect(struct sock *, struct sock *, struct sock *) */
SEC("program/unix_connect")
int unix_connect(__u64 *arguments)
{
	return reach((void *)arguments[0], (void *)arguments[1]);
}

/* security_unix_may_send(struct socket *, struct socket *) */
SEC("program/unix_send")
int unix_send(__u64 *arguments)
{
	void *socket = at((void *)arguments[0], SOCKET_SK);
	void *other = at((void *)arguments[1], SOCKET_SK);
	return socket && other ? reach(socket, other) : 1;
}

/* security_socket_bind(struct socket *, struct sockaddr *, int) */
SEC("program/unix_bind")
int unix_bind(__u64 *arguments)
{
	struct guest *guest = caller();
	void *socket = at((void *)arguments[0], SOCKET_SK);
	if (guest && socket && *(__u16 *)arguments[1] == AF_UNIX)
		mark(socket, guest);
	return 1;
}

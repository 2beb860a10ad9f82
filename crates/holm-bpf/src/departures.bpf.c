/* When packets of guests leave an uplink with several queues (net.cap alone): each guest's after the
 * one before, as far apart as its rate says. The qdisc fq of each queue keeps them until then, so no
 * lock is common to the queues (A. Saeed and others, "Carousel", SIGCOMM 2017).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#define SECOND 1000000000ull
/* What would wait longer is dropped, in nanoseconds: a packet of 64 KiB takes 65 ms at 8 Mbit/s. */
#define HORIZON (SECOND / 5)

/* holm-bpf's `cap_value` writes it. */
struct departure {
	__u64 rate; /* bytes in a second */
	__u64 next; /* when its next packet may leave, of CLOCK_MONOTONIC in nanoseconds */
};

/* By the guest's class, which is in the priority of its packets. */
struct {
	int unused;
} departures SEC(".maps");

SEC("program/departure")
int departure(struct __sk_buff *packet)
{
	__u32 class = packet->priority;
	struct departure *guest = bpf_map_lookup_elem(&departures, &class);
	if (!guest || !guest->rate)
		return TC_ACT_UNSPEC;
	__u64 now = bpf_ktime_get_ns();
	__u64 next = *(volatile __u64 *)&guest->next;
	if (next > now + HORIZON)
		return TC_ACT_SHOT;
	/* Another CPU may have done so, and gone on. */
	if (next < now)
		__sync_val_compare_and_swap(&guest->next, next, now);
	__u64 took = packet->wire_len * SECOND / guest->rate;
	__u64 leaves = __sync_fetch_and_add(&guest->next, took);
	/* TCP may want it to leave even later. */
	if (packet->tstamp < leaves)
		packet->tstamp = leaves;
	return TC_ACT_UNSPEC;
}

// A program of somebody else on a member: it looks at every frame, and has the others look at it, too.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

__attribute__((section("tc"), used)) int beside(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}

// One that decides alone: what comes after it in the row never runs.
__attribute__((section("tc/alone"), used)) int beside_alone(struct __sk_buff *skb)
{
	return TC_ACT_OK;
}

char license_of[] __attribute__((section("license"), used)) = "GPL";

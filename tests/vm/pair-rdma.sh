# shellcheck shell=bash
# Sourced by `fabric`: a fabric over libfabric's provider for RDMA. Both guests have soft RoCE on the cable's interface.

ROCE_PORT=4791
# Its longest packets, where the interface's MTU is 1,500.
ROCE_BYTES=1024
# How long a cable is cut: the kernel gives a connection up within a second, and would try for a minute to make one.
CUTS=(5 40)

# roce_up GUEST: the link is there.
roce_up() {
	on "$1" modprobe -a rdma_rxe rdma_ucm ib_uverbs
	on "$1" rdma link add rxe0 type rxe netdev eth0
}

# count_cable: guest a counts what comes by the cable.
count_cable() {
	on a nft "add table inet cable
		add chain inet cable in { type filter hook input priority 0; }
		add counter inet cable roce
		add counter inet cable other
		add rule inet cable in iifname eth0 udp dport $ROCE_PORT counter name roce accept
		add rule inet cable in iifname eth0 counter name other"
}

# came WHAT: packets so far.
came() {
	on a nft list counter inet cable "$1" | sed -n 's/.*packets \([0-9]*\) .*/\1/p'
}

# crosses_rdma: IP by nothing but RoCE.
crosses_rdma() {
	local roce other count=20 bytes=65536
	on a ping -q -c 3 -i 0.2 -W 5 "$(address fab2 b)" >/dev/null || bad "no ping from a to b"
	on b ping -q -c 3 -i 0.2 -W 5 "$(address fab2 a)" >/dev/null || bad "no ping from b to a"
	check "ping both ways" "ok"
	count_cable
	roce=$(came roce) other=$(came other)
	messages a call "tcp:$(address fab2 b)" "$count" "$bytes" >/dev/null || bad "TCP does not carry messages"
	roce=$(($(came roce) - roce)) other=$(($(came other) - other))
	[ "$roce" -ge $((count * bytes / ROCE_BYTES)) ] || bad "only $roce packets of RoCE crossed the cable"
	[ "$other" -lt "$count" ] || bad "$other packets other than RoCE crossed the cable"
	check "messages by TCP arrive unchanged; packets: RoCE, others" "$roce, $other"
}

# figures_rdma: by TCP over the bare cable and over the fabric.
figures_rdma() {
	local device how half rate
	for device in eth0 fab2; do
		how=tcp:$(address "$device" b)
		half=$(tried "$how" call "$how" 100 64) || bad "$device: no latency"
		rate=$(tried "$how" stream "$how" 128 8192) || bad "$device: no throughput"
		check "$device, emulated: half a round trip of 64 B, us; Mbit/s" "$half; $rate"
	done
}

# answered: the daemons are those that were there, and answer.
answered() {
	local name
	for name in a b; do
		on "$name" timeout 10 "$LINKBRAID_BIN" fabric show fab2 >"$scratch/show" || bad "the daemon of guest $name does not answer"
		[ "$(on "$name" cat /run/vm/daemon.pid)" = "$(on "$name" pgrep -ox linkbraid)" ] ||
			bad "the daemon of guest $name is another one"
	done
}

# survives_rdma FAULT WHAT: a connection goes on while FAULT is called, which says how long after its end the fabric has its carrier again.
survives_rdma() {
	local took tcp
	asks tcp "tcp:$(address fab2 b)"
	took=$("$1") || exit
	answered
	tcp=$(on a finish tcp) || bad "$2: the TCP connection did not go on: $tcp"
	check "$2; carrier after, ms" "$took"
	check "  answered, longest wait, ms" "${tcp/ /, }"
}

# without GUEST...: waits until these have no carrier.
without() {
	local name
	for name in "$@"; do
		wait_for "$SOON" "loss of carrier in guest $name" on "$name" carrier fab2 0
	done
	answered
}

# kill_helper: of guest b; it comes back by itself.
kill_helper() {
	local begun=${EPOCHREALTIME/./}
	on b pkill -KILL -x linkbraid-ofi
	without a
	carriers
	since "$begun"
}

# take_link: guest b has no RDMA device for a while.
take_link() {
	local begun
	# The kernel waits until everybody has closed it.
	on b background unlink rdma link del rxe0
	wait_for "$SOON" "end of the RDMA device" on b test ! -e /sys/class/infiniband/rxe0
	without a b
	wait_for "$SOON" "reason why guest b cannot join" no_device
	begun=${EPOCHREALTIME/./}
	on b rdma link add rxe0 type rxe netdev eth0
	carriers
	since "$begun"
}

no_device() {
	on b linkbraid fabric show fab2 | tee /dev/stderr | grep "no provider 'verbs;ofi_rxm'" >/dev/null
}

# cut_cable: for so many seconds nothing crosses it.
cut_cable() {
	local until=$((SECONDS + cut)) begun name
	for name in a b; do
		on "$name" nft 'add table netdev cut
			add chain netdev cut in { type filter hook ingress device eth0 priority 0; policy drop; }'
	done
	without a b
	while [ "$SECONDS" -lt "$until" ]; do read -rt 1 <> <(:) || true; done
	begun=${EPOCHREALTIME/./}
	for name in a b; do
		on "$name" nft delete table netdev cut
	done
	carriers
	since "$begun"
}

test_rdma() {
	local cut
	crosses_rdma
	figures_rdma
	survives_rdma restart_daemon "b's daemon killed"
	survives_rdma kill_helper "b's linkbraid-ofi killed"
	survives_rdma take_link "b's RDMA link removed and added"
	for cut in "${CUTS[@]}"; do
		survives_rdma cut_cable "the cable cut for $cut s"
	done
	removes
}

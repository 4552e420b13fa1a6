# shellcheck shell=bash
# Sourced by what runs in the guest: a lab of two hosts, a and b, with linkbraid on both, and one flow between them.

: "${here:?}"
# A guest in virtual time that waits for one of this machine's files has nothing to do, and so skips ahead, by minutes: no
# deadline could be met. A loop at idle priority keeps it from that; it stops only while traffic is measured, when nothing
# is read. What the measured programs need is brought into memory first.
chrt --idle 0 bash -c 'while :; do :; done' &
spinner=$!
trap 'kill -KILL "$spinner"' EXIT
# shellcheck source=tests/vm/programs.sh
. "$here/programs.sh"
bring linkbraid-lab
modprobe -a veth bridge sch_tbf sch_netem sch_fq_codel sch_ingress cls_bpf 8021q tcp_bbr
iperf3 --version >/dev/null

# Mbit/s of each link: low, so that the emulated processor is not what limits.
RATE=${RATE:-20}
# The share of a link's rate that TCP's payload has at MTU 1500, with time stamps.
TCP_SHARE=0.956

# The name of the lab now up.
lab=vm

# on HOST COMMAND...
on() {
	local host=$1
	shift
	"$LINKBRAID_BIN" lab exec --lab "$lab" "$host" -- "$@"
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds; says what it last printed if it never does, and what the
# daemons say.
wait_for() {
	local until=$((SECONDS + $1)) what=$2 said
	shift 2
	until said=$("$@" 2>&1); do
		if [ "$SECONDS" -ge "$until" ]; then
			printf 'vm: no %s; the last answer was:\n%s\n' "$what" "$said" >&2
			tail -n 20 /run/vm/*.log >&2 || true
			return 1
		fi
		read -rt 0.1 <> <(:) || true
	done
}

# lab_up LINKS
lab_up() {
	"$LINKBRAID_BIN" lab up "$lab" --links "$1" --rate "${RATE}mbit" >/dev/null
}

lab_down() {
	"$LINKBRAID_BIN" lab down "$lab"
}

# start_daemons: one on each host, each with a log below /run/vm.
start_daemons() {
	local host
	for host in a b; do
		on "$host" linkbraid daemon >"/run/vm/$host.log" 2>&1 &
		wait_for 60 "daemon on host $host" on "$host" linkbraid show
	done
}

# daemon_of HOST: the process number of its daemon, whose helper has the same command line.
daemon_of() {
	ip netns pids "lb-$lab-$1" | while read -r pid; do
		[ "$(cat "/proc/$pid/comm")" != lb-helper ] || continue
		! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q 'linkbraid daemon' || echo "$pid"
	done
}

# bond LINKS OPTION...: the same bond on both hosts, and each sees the other.
bond() {
	local links=$1 members host link
	shift
	members=$(seq -s, -f 'eth%g' 0 $((links - 1)))
	for host in a b; do
		on "$host" linkbraid bond add bond0 --member "$members" "$@"
		for link in $(seq 0 $((links - 1))); do
			# A veth claims 10 Gbit/s.
			on "$host" linkbraid member set bond0 "eth$link" --weight "$RATE"
		done
	done
	for host in a b; do
		wait_for 60 "live peer of host $host" sees_peer "$host"
	done
}

sees_peer() {
	on "$1" linkbraid peers bond0 --json | tee /dev/stderr | grep -q '"state": *"alive"'
}

# segments HOST: TCP segments sent, and sent again, since the host came up.
segments() {
	on "$1" cat /proc/net/snmp | awk '/^Tcp: [0-9]/ { print $12, $13 }'
}

# flow CC SECONDS [ADDRESS [OMITTED]]: one TCP flow from a to b; prints "Mbit/s segments retransmits". The rate is what b
# received after the first OMITTED seconds (1); segments are counted from the first to the last.
flow() {
	local cc=$1 seconds=$2 address=${3:-198.18.0.2} omitted=${4:-1} server before after report
	on b iperf3 -s -1 >/run/vm/iperf-server 2>&1 &
	server=$!
	wait_for 60 "iperf3 server" server_listens
	before=$(segments a)
	kill -STOP "$spinner"
	report=$(on a iperf3 -c "$address" -C "$cc" -t "$seconds" -O "$omitted" -J) || {
		printf 'vm: iperf3 failed:\n%s\n' "$report" >&2
		return 1
	}
	kill -CONT "$spinner"
	wait "$server"
	after=$(segments a)
	printf '%s\n' "$report" | awk -v before="$before" -v after="$after" '
		/"sum_received"/ { inside = 1 }
		inside && /"bits_per_second"/ { gsub(/[^0-9.e+]/, "", $2); rate = $2; inside = 0 }
		END {
			split(before, b, " "); split(after, a, " ")
			printf "%.2f %d %d\n", rate / 1e6, a[1] - b[1], a[2] - b[2]
		}'
}

server_listens() {
	on b ss -Hltn 'sport = :5201' | grep .
}

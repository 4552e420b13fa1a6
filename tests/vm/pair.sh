# shellcheck shell=bash
# Sourced by what runs on this machine: two guests, a and b, joined by a cable (eth0 in both) and by memory that each sees
# as a PCI device, and by nothing else. This machine tells them what to do, a command a line.
#
# Their clocks are real: each of two clocks that count instructions and skip what a guest sleeps would go its own way, and
# every time-out between the two would mean nothing. What is measured says how ways compare, not how long they take.

: "${LINKBRAID_BIN:?}" "${here:?}"
# Of real time for both; then they are killed, whatever becomes of this script.
LIMIT=${LIMIT:-600}
# To boot on a busy machine; an idle one needs 15.
BOOT_SECONDS=120
# A kernel on two emulated processors may hang while it boots: one of some 40 did on a machine that took the processor away
# for up to a second, again and again. Nothing of ours runs before it is up, so booting again hides nothing of what is tested.
BOOT_TRIES=3
# For the answer to one command; the longest measure takes a part of it.
ANSWER_SECONDS=120
# Two processors each: qemu leaves out memory barriers for a guest with one, and the guests' programs need those between them.
CPUS=2
MEMORY_MIB=512
SHARED_MIB=4

scratch=$(mktemp -d)
shared=
# What guests are started with, such as `ip netns exec NAME`.
within=()
declare -A guest=() to=() from=()

# bad WHAT...: ends the test.
bad() {
	printf 'vm: %s\n' "$*" >&2
	exit 1
}

# Both guests end, wherever they are, and nothing of them stays but what they said.
pair_kill() {
	local name line_in line_out
	for name in "${!guest[@]}"; do
		kill "${guest[$name]}" 2>/dev/null || true
	done
	for name in "${!guest[@]}"; do
		wait "${guest[$name]}" 2>/dev/null || true
		line_in=${to[$name]} line_out=${from[$name]}
		exec {line_in}>&- {line_out}<&-
		rm -f "$scratch/$name.in" "$scratch/$name.out"
		unset "guest[$name]"
	done
	rm -f "$scratch/cable" ${shared:+"$shared"}
	shared=
}

pair_ends() {
	pair_kill
	rm -rf "$scratch"
}
trap pair_ends EXIT
trap 'exit 143' HUP INT TERM

# start NAME KERNEL QEMU_WORD...
start() {
	local name=$1 kernel=$2
	shift 2
	start_guest "$name" "$kernel" \
		-object "memory-backend-file,id=shared,share=on,mem-path=$shared,size=${SHARED_MIB}M" \
		-device ivshmem-plain,memdev=shared "$@" -- --env LINKBRAID_BIN -- "$here/agent"
}

# start_guest NAME KERNEL QEMU_WORD... -- WORD...: a guest whose agent hears us; the last words are for `run`.
start_guest() {
	local name=$1 kernel=$2 words=()
	shift 2
	set -- -chardev "pipe,id=line,path=$scratch/$name" -device virtserialport,chardev=line,nr=3 "$@"
	while [ "$1" != -- ]; do
		words+=(--qemu "$1")
		shift
	done
	shift
	mkfifo "$scratch/$name.in" "$scratch/$name.out"
	"${within[@]}" "$here/run" --kernel "$kernel" --cpus "$CPUS" --memory "$MEMORY_MIB" --limit "$LIMIT" \
		--console "$scratch/$name.console" "${words[@]}" "$@" >"$scratch/$name.log" 2>&1 &
	guest[$name]=$!
	# For both, so that neither side waits for the other one to open it.
	exec {line_in}<>"$scratch/$name.in" {line_out}<>"$scratch/$name.out"
	to[$name]=$line_in from[$name]=$line_out
}

# boot KERNEL
boot() {
	local card='virtio-net-pci,netdev=cable,mac=52:54:00:00:00' cable=$scratch/cable name
	shared=$(mktemp /dev/shm/linkbraid-vm.XXXXXX)
	start a "$1" -netdev "stream,id=cable,server=on,addr.type=unix,addr.path=$cable" -device "$card:01"
	# The other end is refused until this one is there.
	while [ ! -S "$cable" ]; do
		kill -0 "${guest[a]}" 2>/dev/null || bad "guest a does not start: $(cat "$scratch/a.log")"
		read -rt 0.1 <> <(:) || true
	done
	start b "$1" -netdev "stream,id=cable,server=off,addr.type=unix,addr.path=$cable" -device "$card:02"
	for name in a b; do
		ANSWER_SECONDS=$BOOT_SECONDS on "$name" true || return
	done
}

# pair_up KERNEL
pair_up() {
	local try name
	for ((try = 1; ; try++)); do
		! boot "$1" || break
		pair_kill
		for name in a b; do
			printf 'vm: last words of the kernel of guest %s:\n' "$name" >&2
			tail -n 20 "$scratch/$name.console" >&2 || true
		done
		[ "$try" -lt "$BOOT_TRIES" ] || bad "guests do not come up, tried $try times, $BOOT_SECONDS s each at most"
		printf 'vm: booting again, %d of %d\n' $((try + 1)) "$BOOT_TRIES" >&2
	done
	# Both have it open. Whatever ends this script now, nothing stays.
	rm "$shared"
	shared=
}

# pair_down: both end by themselves.
pair_down() {
	local name
	for name in a b; do
		echo end >&"${to[$name]}"
	done
	for name in a b; do
		wait "${guest[$name]}" || bad "guest $name ended with status $?: $(cat "$scratch/$name.log")"
		unset "guest[$name]"
	done
}

# give_up GUEST: ends its answer once it has taken too long, or the guest is gone.
give_up() {
	local until=$((SECONDS + ANSWER_SECONDS))
	while [ "$SECONDS" -lt "$until" ] && kill -0 "${guest[$1]}" 2>/dev/null; do
		read -rt 1 <> <(:) || true
	done
	printf '\n!\n' >&"${from[$1]}"
}

# on GUEST COMMAND...: what it prints, and its status. Functions of `agent` are commands, too.
on() {
	local name=$1 line watch
	shift
	printf -v line '%q ' "$@"
	printf '%s\n' "$line" >&"${to[$name]}"
	# Not by `read -t`: what it reads when its time ends, a whole line even, is lost now and then.
	give_up "$name" >/dev/null &
	watch=$!
	while IFS= read -r line <&"${from[$name]}"; do
		case $line in
		' '*) printf '%s\n' "${line# }" ;;
		=*)
			kill "$watch" 2>/dev/null || true
			wait "$watch" 2>/dev/null || true
			return "${line#=}"
			;;
		'!') break ;;
		esac
	done
	printf 'vm: guest %s does not answer; it said:\n' "$name" >&2
	tail -n 20 "$scratch/$name.log" >&2
	# Answers would no longer be those to what is asked.
	kill "${guest[$name]}" 2>/dev/null || true
	return 125
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds; says what it last printed if it never does, and what the
# daemons say.
wait_for() {
	local until=$((SECONDS + $1)) what=$2 said name
	shift 2
	until said=$("$@" 2>&1); do
		if [ "$SECONDS" -ge "$until" ]; then
			printf 'vm: no %s; the last answer was:\n%s\n' "$what" "$said" >&2
			for name in "${!guest[@]}"; do
				on "$name" tail -n 20 /run/vm/daemon.log | sed "s/^/  $name: /" >&2
			done
			exit 1
		fi
		# The guests have better things to do than to answer.
		read -rt 0.3 <> <(:) || true
	done
}

# shellcheck shell=bash
# Sourced by `fabric`: TCP and TIPC over the bare cable and over each fabric, in turn, medians of several rounds.

# Longest frame of the memory's fabric in its second row; the cable takes no more than 1,500.
LONG_MTU=65521
# Of a cable, that with a fabric over it, the memory, the memory with long frames: which device, its MTU, and how its threads wait
# where that is not the usual way.
WAYS=(eth0:1500 fab0:1500 fab0:1500:busy fab1:1500 fab1:1500:busy "fab1:$LONG_MTU" "fab1:$LONG_MTU:busy")
SIZES=(1 64 128 256 512 1024 2048 4096 8192 16384 32768 65000)
# Messages there and back for a latency: at least, and at most. Of a size in between so many that they have this many bytes. On a busy
# machine a message of the longest size was seen to take half a second: all of them together take a part of the time for an answer even so.
CALLS=(20 100 409600)
# One way for a throughput.
STREAM=(32 1000 1048576)
# TIPC gives a link up that is silent for so many ms, 1,500 unless told otherwise; its connections end with it. An emulated processor
# that is not given a real one is silent for longer, though nothing is lost.
TOLERANCE_MS=30000
# Of one figure, before there is none.
TRIES=5
# How many figures a round may lack before the guests are given up.
LACKS=4

# messages_of LEAST MOST BYTES SIZE
messages_of() {
	local count=$(($3 / $4))
	echo $((count < $1 ? $1 : count > $2 ? $2 : count))
}

# way_up DEVICE MTU [POLL]
way_up() {
	local name device
	for name in a b; do
		for device in "${fabrics[@]}"; do
			on "$name" linkbraid fabric set "$device" --poll adaptive
		done
		[ "$1" = eth0 ] || on "$name" linkbraid fabric set "$1" --mtu "$2" --poll "${3:-adaptive}"
	done
	[ "$1" = eth0 ] || wait_for "$SOON" "carrier on $1" carrier "$1"
	bearers "$1"
	for name in a b; do
		on "$name" tipc bearer set tolerance "$TOLERANCE_MS" media eth device "$1"
	done
	wait_for "$SOON" "service of guest b" messages a call tipc 1 64
}

# tried HOW WORD...: what messages.c says of it. A guest that got no processor for seconds has lost its connection, which says
# nothing of the way: it is tried again once messages cross.
tried() {
	local how=$1 said try
	shift
	for try in $(seq "$TRIES"); do
		if said=$(messages a "$@"); then
			echo "${said%% *}"
			return
		fi
		printf 'try %s of %s: %s\n' "$try" "$TRIES" "$*" >&2
		wait_for "$SOON" "answer by $how" messages a call "$how" 1 64
	done
	return 1
}

# figure WAY HOW WHAT WORD...: a line: way, protocol, what, value, or none in its place.
figure() {
	local way=$1 how=$2 what=$3 value
	shift 3
	value=$(tried "$how" "$1" "$how" "${@:2}") || value=none
	echo "$way ${how%%:*} $what $value"
	[ "$value" != none ] || lacking=$((lacking + 1))
	[ "$lacking" -le "$LACKS" ] || bad "$way: the guests do not get on with it"
}

# measure WAY
measure() {
	local how size
	for how in "tcp:$(address "${1%%:*}" b)" tipc; do
		for size in "${SIZES[@]}"; do
			figure "$1" "$how" "rtt/2-$size" call "$(messages_of "${CALLS[@]}" "$size")" "$size"
			figure "$1" "$how" "mbit-$size" stream "$(messages_of "${STREAM[@]}" "$size")" "$size"
		done
	done
}

# bench ROUNDS
bench() {
	local round way lacking parts
	for round in $(seq "$1"); do
		lacking=0
		for way in "${WAYS[@]}"; do
			printf 'round %s of %s: %s\n' "$round" "$1" "$way" >&2
			IFS=: read -ra parts <<<"$way"
			way_up "${parts[@]}"
			measure "$way"
		done
	done | tee >(sed -u 's/^/  /' >&2) >"$scratch/figures"
	printf '%-15s %-5s' way how
	printf ' %10s' $(printf 'us/2-%s ' "${SIZES[@]}") $(printf 'Mb-%s ' "${SIZES[@]}")
	printf '\n'
	sed '/ none$/d' "$scratch/figures" | sort -k1,3 -k4,4n | awk -v sizes="${SIZES[*]}" '
		{ key = $1 " " $2 " " $3; if (key != last) { if (last) median[last] = values[int((count + 1) / 2)]; count = 0; last = key } values[++count] = $4 }
		{ ways[$1 " " $2] = 1 }
		END {
			median[last] = values[int((count + 1) / 2)]
			columns = split(sizes, size, " ")
			for (way in ways) {
				split(way, part, " ")
				printf "%-15s %-5s", part[1], part[2]
				for (i = 1; i <= columns; i++) printf " %10.1f", median[way " rtt/2-" size[i]]
				for (i = 1; i <= columns; i++) printf " %10.1f", median[way " mbit-" size[i]]
				printf "\n"
			}
		}' | sort
}

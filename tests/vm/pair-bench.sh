# shellcheck shell=bash
# Sourced by `fabric`: TCP and TIPC over the bare cable and over each fabric, in turn, medians of several rounds.

# Longest frame of the memory's fabric in its second row; the cable takes no more than 1,500.
LONG_MTU=65521
# Of a cable, that with a fabric over it, the memory, the memory with long frames: which device, and its MTU.
WAYS=(eth0:1500 fab0:1500 fab1:1500 "fab1:$LONG_MTU")
SIZES=(64 512 1024 8192 65000)
# For each: messages there and back for a latency, and one way for a throughput. On a busy machine a message of the longest size
# was seen to take half a second: all of them together take a part of the time for an answer even so.
CALLS=(100 100 100 50 20)
STREAM=(1000 1000 1000 128 32)
# TIPC gives a link up that is silent for so many ms, 1,500 unless told otherwise; its connections end with it. An emulated processor
# that is not given a real one is silent for longer, though nothing is lost.
TOLERANCE_MS=30000
# Of one figure, before there is none.
TRIES=5
# How many figures a round may lack before the guests are given up.
LACKS=4

# way_up DEVICE MTU
way_up() {
	local name
	[ "$1" = eth0 ] || for name in a b; do
		on "$name" linkbraid fabric set "$1" --mtu "$2"
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
	local device=${1%:*} how at
	for how in "tcp:$(address "$device" b)" tipc; do
		for at in "${!SIZES[@]}"; do
			figure "$1" "$how" "rtt/2-${SIZES[at]}" call "${CALLS[at]}" "${SIZES[at]}"
			figure "$1" "$how" "mbit-${SIZES[at]}" stream "${STREAM[at]}" "${SIZES[at]}"
		done
	done
}

# bench ROUNDS
bench() {
	local round way lacking
	for round in $(seq "$1"); do
		lacking=0
		for way in "${WAYS[@]}"; do
			printf 'round %s of %s: %s\n' "$round" "$1" "$way" >&2
			way_up "${way%:*}" "${way#*:}"
			measure "$way"
		done
	done | tee >(sed -u 's/^/  /' >&2) >"$scratch/figures"
	printf '%-12s %-5s' way how
	printf ' %9s' $(printf 'us/2-%s ' "${SIZES[@]}") $(printf 'Mb-%s ' "${SIZES[@]}")
	printf '\n'
	sed '/ none$/d' "$scratch/figures" | sort -k1,3 -k4,4n | awk -v sizes="${SIZES[*]}" '
		{ key = $1 " " $2 " " $3; if (key != last) { if (last) median[last] = values[int((count + 1) / 2)]; count = 0; last = key } values[++count] = $4 }
		{ ways[$1 " " $2] = 1 }
		END {
			median[last] = values[int((count + 1) / 2)]
			columns = split(sizes, size, " ")
			for (way in ways) {
				split(way, part, " ")
				printf "%-12s %-5s", part[1], part[2]
				for (i = 1; i <= columns; i++) printf " %9.1f", median[way " rtt/2-" size[i]]
				for (i = 1; i <= columns; i++) printf " %9.1f", median[way " mbit-" size[i]]
				printf "\n"
			}
		}' | sort
}

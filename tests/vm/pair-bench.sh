# shellcheck shell=bash
# Sourced by `fabric`: TCP and TIPC over the bare cable and over each fabric, in turn, medians of several rounds.

# Longest frame of the memory's fabric in its second row; the cable takes no more than 1,500.
LONG_MTU=65521
# Of a cable, that with a fabric over it, the memory, the memory with long frames: which device, and its MTU.
WAYS=(eth0:1500 fab0:1500 fab1:1500 "fab1:$LONG_MTU")
SIZES=(64 8192 65000)
# Messages there and back for a latency, and bytes one way for a throughput.
CALLS=200
STREAM_BYTES=$((8 << 20))

# way_up DEVICE MTU
way_up() {
	local name
	[ "$1" = eth0 ] || for name in a b; do
		on "$name" linkbraid fabric set "$1" --mtu "$2"
	done
	[ "$1" = eth0 ] || wait_for "$SOON" "carrier on $1" carrier "$1"
	bearers "$1"
	wait_for "$SOON" "service of guest b" messages a call tipc 1 64
}

# measure WAY ROUND: a line for each figure: way, protocol, what, value.
measure() {
	local device=${1%:*} how name size value
	for how in "tcp:$(address "$device" b)" tipc; do
		name=${how%%:*}
		for size in "${SIZES[@]}"; do
			value=$(messages a call "$how" "$CALLS" "$size") || bad "$1: no $name: $value"
			echo "$1 $name rtt/2-$size ${value%% *}"
			value=$(messages a stream "$how" $((STREAM_BYTES / size < 4000 ? STREAM_BYTES / size : 4000)) "$size") ||
				bad "$1: no $name: $value"
			echo "$1 $name mbit-$size $value"
		done
	done
}

# bench ROUNDS
bench() {
	local round way
	for round in $(seq "$1"); do
		for way in "${WAYS[@]}"; do
			printf 'round %s of %s: %s\n' "$round" "$1" "$way" >&2
			way_up "${way%:*}" "${way#*:}"
			measure "$way"
		done
	done | tee /dev/stderr >"$scratch/figures"
	printf '%-12s %-5s' way how
	printf ' %9s' $(printf 'us/2-%s ' "${SIZES[@]}") $(printf 'Mb-%s ' "${SIZES[@]}")
	printf '\n'
	sort -k1,3 -k4,4n "$scratch/figures" | awk -v sizes="${SIZES[*]}" '
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

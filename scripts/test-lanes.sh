#!/usr/bin/env bash
# Runs the tests that touch the kernel: first those that measure with the whole machine, then the others in two lanes side by
# side, for most of their time they wait for something.
#
# usage: test-lanes.sh LIST CRATE...     LIST: the tests, as run-tests.sh lists them; CRATE: crates that are tested elsewhere
#
# In one lane are the tests that measure rates or count what a busy machine would lose, and some of the others so that both
# end together; in the other lane all the rest, so that a new test needs no line here. What a lane says is shown when it has
# ended, in full if it failed; a lane that is ended from outside shows where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUST_TEST_THREADS=1

list=$1
shift
elsewhere=" $* "
alone=(bench)
measured=(fabric lab)
for test in broadcast classes cluster containers demo fabric fabric_clock fabric_crashes fabric_default fabric_encryption fabric_keys \
	fabric_memory fabric_vxlan failover families guests heartbeats hosts keys layouts plain rates recovery snooping; do
	measured+=("netns/$test")
done

others=()
while read -r crate test _; do
	case "$elsewhere ${alone[*]} ${measured[*]} " in
	*" $crate "* | *" $crate/$test "*) ;;
	*) others+=("$crate/$test") ;;
	esac
done <"$list"

scripts/run-tests.sh "$list" "${alone[@]}"

first() {
	scripts/run-tests.sh "$list" "${measured[@]}"
}
second() {
	scripts/run-tests.sh "$list" "${others[@]}"
}

scratch=$(mktemp -d)
lanes=()
declare -A names=()
finish() {
	for lane in "${lanes[@]}"; do
		# A lane is a process group of its own; what its tests started ends with it.
		kill -- "-$lane" 2>/dev/null || true
	done
	for lane in "${!names[@]}"; do
		printf -- '-- the %s lane has not ended; it was here:\n' "${names[$lane]}"
		{ grep '^-- .*: ok' || true; } <"$scratch/${names[$lane]}"
		tail -n 20 "$scratch/${names[$lane]}"
	done
	rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

begun=$SECONDS
set -m
(first) >"$scratch/first" 2>&1 &
lanes+=($!)
(second) >"$scratch/second" 2>&1 &
lanes+=($!)
set +m

names=(["${lanes[0]}"]=first ["${lanes[1]}"]=second)
while [ ${#names[@]} -gt 0 ]; do
	status=0
	wait -n -p ended "${!names[@]}" || status=$?
	name=${names[$ended]}
	unset "names[$ended]"
	if [ "$status" != 0 ]; then
		printf -- '-- the %s lane failed\n' "$name"
		cat "$scratch/$name"
		exit 1
	fi
	printf -- '-- the %s lane: ok, %d s\n' "$name" $((SECONDS - begun))
	grep '^-- .*: ok' "$scratch/$name"
done

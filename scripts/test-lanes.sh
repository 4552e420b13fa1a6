#!/usr/bin/env bash
# Runs the tests that touch the kernel: those of the crates, and then those in namespaces in two lanes side by side, for most
# of their time they wait for something.
#
# usage: test-lanes.sh CRATE...     the crates that are tested elsewhere
#
# In one lane are those that measure rates or count what a busy machine would lose; in the other all the rest, so that a
# new test needs no line here. What a lane says is shown when it has ended, in full if it failed. CARGO names the cargo to use.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"
export RUST_TEST_THREADS=1

measured=(broadcast classes demo fabric fabric_clock fabric_crashes fabric_memory fabric_vxlan failover families hosts plain recovery)
namespaces=linkbraid-netns-tests

one=() two=()
for path in tests/netns/tests/*.rs tests/netns/tests/*/main.rs; do
	[ -e "$path" ] || continue
	name=${path#tests/netns/tests/}
	name=${name%/main.rs}
	name=${name%.rs}
	case " ${measured[*]} " in
	*" $name "*) one+=(--test "$name") ;;
	*) two+=(--test "$name") ;;
	esac
done
elsewhere=(--exclude "$namespaces")
for crate in "$@"; do
	elsewhere+=(--exclude "$crate")
done

# Some of these measure with the whole machine.
"$CARGO" test --locked --quiet --workspace "${elsewhere[@]}"
# Built before, so that neither lane waits for the other's compiler.
"$CARGO" test --locked --quiet -p "$namespaces" --no-run

first() {
	"$CARGO" test --locked --quiet -p "$namespaces" "${one[@]}"
}
second() {
	"$CARGO" test --locked --quiet -p "$namespaces" --lib "${two[@]}"
}

scratch=$(mktemp -d)
lanes=()
finish() {
	for lane in "${lanes[@]}"; do
		# A lane is a process group of its own; what its tests started ends with it.
		kill -- "-$lane" 2>/dev/null || true
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

declare -A names=(["${lanes[0]}"]=first ["${lanes[1]}"]=second)
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
	grep '^test result' "$scratch/$name"
done

#!/usr/bin/env bash
# Runs every test, fastest first; each step says its name and how long it took, and the first that fails ends it.
#
# CARGO names the cargo to use, LINKBRAID_BIN the release binary that tests and demo run.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}" "${LINKBRAID_BIN:?}"
export LINKBRAID_BIN

# Longer than any step takes on two cores; a test that hangs must not hang the whole.
STEP_SECONDS=2100

scratch=$(mktemp -d)
child=
declare -A beside=()
# timeout(1) gives the step a process group of its own, which an interrupt at the terminal would not reach.
trap '[ ${#beside[@]} = 0 ] || kill "${beside[@]}" || true; rm -rf "$scratch"' EXIT
trap '[ -z "$child" ] || kill "$child"; exit 130' INT TERM
started=$SECONDS

# ended NAME BEGUN STATUS: says how a step ended; one that failed ends all.
ended() {
	if [ "$3" != 0 ]; then
		[ "$3" != 124 ] || printf '== %s: not done after %d s\n' "$1" "$STEP_SECONDS"
		printf '== %s: FAILED after %d s\n' "$1" $((SECONDS - $2))
		exit 1
	fi
	printf '== %s: ok, %d s\n' "$1" $((SECONDS - $2))
}

# step NAME COMMAND...
step() {
	local name=$1 begun=$SECONDS status=0
	shift
	printf '== %s\n' "$name"
	timeout --kill-after=10 "$STEP_SECONDS" "$@" </dev/null &
	child=$!
	wait "$child" || status=$?
	child=
	ended "$name" "$begun" "$status"
}

# beside NAME COMMAND...: begins a step whose outcome does not depend on how fast it runs. It takes the time that processors have left
# beside the next steps, most of which wait for something.
beside() {
	local name=$1
	shift
	timeout --kill-after=10 "$STEP_SECONDS" chrt --idle 0 "$@" </dev/null >"$scratch/$name" 2>&1 &
	beside[$name]=$!
}

# join NAME: waits for such a step, and shows what it said.
join() {
	local begun=$SECONDS status=0
	printf '== %s, begun before\n' "$1"
	wait "${beside[$1]}" || status=$?
	unset "beside[$1]"
	cat "$scratch/$1"
	ended "$1" "$begun" "$status"
}

# The crates that touch no kernel: their tests run side by side. All others make interfaces and some measure traffic:
# those run one at a time, see test-lanes.sh.
pure=(wire proto api)
list=$scratch/tests

scripts/snapshot.sh >"$scratch/before"
step "format" "$CARGO" fmt --all --check
step "documents" scripts/check-docs.sh
step "scripts" scripts/test-scripts.sh
step "lints" "$CARGO" clippy --workspace --all-targets --locked --quiet -- -D warnings
step "build of the tests" scripts/run-tests.sh --build "$list"
step "protocol" scripts/run-tests.sh "$list" "${pure[@]}"
step "build" "$CARGO" build --release --locked --quiet --bins
# Its own folder: another RUSTFLAGS would have everything built anew. Without them loom's memory is not there.
beside "orders of memory accesses" env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
	"$CARGO" test --release --locked --quiet -p linkbraid-fabric --lib ring::orders
beside "stock kernel in a guest" tests/vm/smoke
step "data path and namespaces" scripts/test-lanes.sh "$list" "${pure[@]}"
step "install" scripts/test-install.sh "$LINKBRAID_BIN"
join "orders of memory accesses"
join "stock kernel in a guest"
step "demo" "$LINKBRAID_BIN" lab demo
step "fabrics between two kernels" tests/vm/fabric
step "nothing left behind" scripts/snapshot.sh "$scratch/before"
printf '== all passed in %d s\n' $((SECONDS - started))

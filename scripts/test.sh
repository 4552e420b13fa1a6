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
trap 'rm -rf "$scratch"' EXIT
# timeout(1) gives the step a process group of its own, which an interrupt at the terminal would not reach.
trap '[ -z "$child" ] || kill "$child"; exit 130' INT TERM
started=$SECONDS

# step NAME COMMAND...
step() {
	local name=$1 begun=$SECONDS status=0
	shift
	printf '== %s\n' "$name"
	timeout --kill-after=10 "$STEP_SECONDS" "$@" </dev/null &
	child=$!
	wait "$child" || status=$?
	child=
	if [ "$status" != 0 ]; then
		[ "$status" != 124 ] || printf '== %s: not done after %d s\n' "$name" "$STEP_SECONDS"
		printf '== %s: FAILED after %d s\n' "$name" $((SECONDS - begun))
		exit 1
	fi
	printf '== %s: ok, %d s\n' "$name" $((SECONDS - begun))
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
# Its own folder: another RUSTFLAGS would have everything built anew. Without them loom's memory is not there.
step "orders of memory accesses" env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
	"$CARGO" test --release --locked --quiet -p linkbraid-fabric --lib ring::orders
step "build" "$CARGO" build --release --locked --quiet --bins
step "data path and namespaces" scripts/test-lanes.sh "$list" "${pure[@]}"
step "install" scripts/test-install.sh "$LINKBRAID_BIN"
step "demo" "$LINKBRAID_BIN" lab demo
step "stock kernel in a guest" tests/vm/smoke
step "fabrics between two kernels" tests/vm/fabric
step "nothing left behind" scripts/snapshot.sh "$scratch/before"
printf '== all passed in %d s\n' $((SECONDS - started))

#!/usr/bin/env bash
# Changes the protocol's code in one place at a time, and names each change that neither the unit tests nor the
# simulation of whole hosts notices. .cargo/mutants.toml names the changes that no test can notice.
#
# usage: mutants.sh [OPTION OF cargo mutants]...     for example --file crates/proto/src/plan.rs, or --shard 0/8
#
# The results go to results/mutants.out.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh
: "${CARGO:=cargo}"

VERSION=27.1.0
[ "$("$CARGO" mutants --version 2>/dev/null)" = "cargo-mutants $VERSION" ] ||
	"$CARGO" install --quiet --locked cargo-mutants --version "=$VERSION" ||
	fail "make mutants" "no cargo-mutants $VERSION" "it could not be installed" \
		"cargo install --locked cargo-mutants --version $VERSION"

# mutants WHAT OPTION...: fails if some were missed.
mutants() {
	local status=0
	printf '== %s\n' "$1"
	shift
	"$CARGO" mutants --package linkbraid-proto --output results "$@" || status=$?
	case $status in
	# 3: some hung, none was missed.
	0 | 3) ;;
	2) return 1 ;;
	*) exit "$status" ;;
	esac
}

mkdir -p results
mutants "unit tests" --cargo-arg=--lib "$@" && exit
# Only what those have missed. What the first seeds do not find, hardly any seed does.
SIM_SEEDS=${SIM_SEEDS:-40} mutants "whole hosts" --iterate --cargo-arg=--test=sim_host "$@"

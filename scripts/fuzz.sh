#!/usr/bin/env bash
# Fuzzes every target of fuzz/ for some seconds each.
#
# usage: fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh
: "${CARGO:=cargo}"

"$CARGO" +nightly --version >/dev/null 2>&1 ||
	fail "make fuzz" "no nightly tool chain" "libFuzzer needs one" "rustup toolchain install nightly"
"$CARGO" fuzz --version >/dev/null 2>&1 ||
	fail "make fuzz" "no cargo-fuzz" "it drives the fuzzer" "cargo install cargo-fuzz"
for target in $("$CARGO" +nightly fuzz list); do
	printf '== fuzz %s, %d s\n' "$target" "$1"
	"$CARGO" +nightly fuzz run "$target" -- -max_total_time="$1"
done

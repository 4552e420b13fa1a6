#!/usr/bin/env bash
# Runs tests that are built, one program after the other; the first that fails ends it.
#
# usage: run-tests.sh --build LIST       builds the tests of all crates; the file LIST gets a line for each program: crate,
#                                        test, folder to run it in, path
#        run-tests.sh LIST WHICH...      WHICH: a crate, or CRATE/TEST
#
# cargo builds the tests of one crate with other features of libraries than those of another one, and so each library several
# times. Built all at once, each is built once. CARGO names the cargo to use.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"

if [ "$1" = --build ]; then
	"$CARGO" test --workspace --locked --quiet --no-run --message-format=json-render-diagnostics |
		sed -nE 's|.*"manifest_path":"([^"]*/([^/"]*))/Cargo.toml".*"name":"([^"]*)".*"profile":\{[^}]*"test":true\}.*"executable":"([^"]*)".*|\2 \3 \1 \4|p' >"$2"
	exit
fi

list=$1
shift
for which in "$@"; do
	ran=0
	while read -r crate test folder program; do
		case "$which" in
		"$crate" | "$crate/$test") ;;
		*) continue ;;
		esac
		ran=1
		# The one that fails is to be named.
		(cd "$folder" && "$program" --quiet </dev/null) || {
			printf 'run-tests.sh: %s/%s failed\n' "$crate" "$test" >&2
			exit 1
		}
	done <"$list"
	[ "$ran" = 1 ] || {
		printf "run-tests.sh: there is no test '%s'\n" "$which" >&2
		exit 1
	}
done

#!/usr/bin/env bash
# Runs tests that are built, one program after the other; the first that fails ends it.
#
# usage: run-tests.sh --build LIST       builds the tests of all crates; the file LIST gets a line for each test: crate, test,
#                                        folder to run it in, program, and its module, if the program has several
#        run-tests.sh LIST WHICH...      WHICH: a crate, or CRATE/TEST
#
# cargo builds the tests of one crate with other features of libraries than those of another one, and so each library several
# times. Built all at once, each is built once. CARGO names the cargo to use.
#
# Many tests measure. One that fails while other machines on this host took much of the processors' time is run again, and
# that is said; one that fails on a machine that is its own has failed.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"

if [ "$1" = --build ]; then
	"$CARGO" test --workspace --locked --quiet --no-run --message-format=json-render-diagnostics |
		sed -nE 's|.*"manifest_path":"([^"]*/([^/"]*))/Cargo.toml".*"name":"([^"]*)".*"profile":\{[^}]*"test":true\}.*"executable":"([^"]*)".*|\2 \3 \1 \4|p' |
		while read -r crate test folder program; do
			if [ "$crate/$test" = netns/netns ]; then
				"$program" --list | sed -n "s|^\([a-z0-9_]*\)::.*: test$|$crate \1 $folder $program \1|p" | sort -u
			else
				echo "$crate $test $folder $program"
			fi
		done >"$2"
	exit
fi

# So many times a test is run at most, and from this part of the time that processors were asked for, in percent, it is.
TRIES=3
STOLEN_PERCENT=10

# What processors were asked for since the start, and what of it others had, in ticks (proc_stat(5)).
asked() {
	awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9, $9 }' /proc/stat
}

# run CRATE TEST FOLDER PROGRAM [MODULE]
run() {
	local try before after stolen begun only=()
	if [ -n "$5" ]; then
		mapfile -t only < <("$4" --list | sed -n "s/^\($5::.*\): test$/\1/p")
		only=(--exact "${only[@]:?no test in $5}")
	fi
	printf -- '-- %s/%s\n' "$1" "$2"
	for ((try = 1; ; try++)); do
		begun=$SECONDS
		read -ra before < <(asked)
		if (cd "$3" && "$4" --quiet "${only[@]}" </dev/null); then
			printf -- '-- %s/%s: ok, %d s\n' "$1" "$2" $((SECONDS - begun))
			return
		fi
		read -ra after < <(asked)
		stolen=$((100 * (after[1] - before[1]) / (after[0] - before[0] + 1)))
		if [ "$try" = "$TRIES" ] || [ "$stolen" -lt "$STOLEN_PERCENT" ]; then
			# The one that fails is to be named.
			printf 'run-tests.sh: %s/%s failed\n' "$1" "$2" >&2
			return 1
		fi
		printf "run-tests.sh: %s/%s is run again: others had %d %% of the processors' time\n" "$1" "$2" "$stolen"
	done
}

list=$1
shift
for which in "$@"; do
	ran=0
	while read -r crate test folder program module; do
		case "$which" in
		"$crate" | "$crate/$test") ;;
		*) continue ;;
		esac
		ran=1
		run "$crate" "$test" "$folder" "$program" "$module"
	done <"$list"
	[ "$ran" = 1 ] || {
		printf "run-tests.sh: there is no test '%s'\n" "$which" >&2
		exit 1
	}
done

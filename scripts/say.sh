# shellcheck shell=bash
# Sourced by the other scripts: how they speak, in the shape of the command itself.

# fail OBJECT WHAT CAUSE HINT: one error line, one hint, and the end.
fail() {
	printf 'linkbraid: error: %s: %s: %s\n' "$1" "$2" "$3" >&2
	printf '  hint: %s\n' "$4" >&2
	exit 1
}

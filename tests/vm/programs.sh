# shellcheck shell=bash
# Sourced by what runs in the guest: LINKBRAID_BIN and the programs that come with it are brought into memory, below /run/vm.

: "${LINKBRAID_BIN:?}"

# bring PROGRAM...: of those that come with the command; one that is missing is named where it is called.
bring() {
	local folder program
	folder=$(dirname "$LINKBRAID_BIN")
	for program in "$@"; do
		cp "$folder/$program" /run/vm/ 2>/dev/null || cp "$folder/../libexec/linkbraid/$program" /run/vm/ || true
	done
	cp "$LINKBRAID_BIN" /run/vm/linkbraid
	export LINKBRAID_BIN=/run/vm/linkbraid
}

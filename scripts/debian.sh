# shellcheck shell=bash
# Sourced, after say.sh, by the scripts that build or try something in a Debian of its own: how such a system is made.

SUITE=bookworm

# What lintian has to say nothing about; `lintian` of that Debian or of a later one.
LINTIAN=(lintian --allow-root --fail-on "error,warning" --tag-display-limit 0)

# apart NAME SCRIPT ARGUMENT...: runs the script again, with mount and process namespaces of its own, which go with it. The
# variable NAME names an empty folder there, which is removed at the end, however that comes. Returns there only.
apart() {
	local name=$1 status=0
	shift
	[ -z "${!name:-}" ] || return 0
	folder=$(mktemp -d /var/tmp/linkbraid.XXXXXX)
	inside=
	trap apart_ends EXIT
	trap 'exit 130' HUP INT TERM
	env "$name=$folder" unshare --mount --mount-proc --pid --fork --kill-child "$@" &
	inside=$!
	wait "$inside" || status=$?
	inside=
	exit "$status"
}

apart_ends() {
	if [ -n "$inside" ]; then
		# unshare blocks SIGTERM while its child runs, and takes it along when it is killed.
		kill -KILL "$inside" 2>/dev/null || true
		wait "$inside" 2>/dev/null || true
	fi
	rm -rf --one-file-system "$folder"
}

# step WHAT COMMAND...
step() {
	printf '== %s\n' "$1"
	shift
	"$@"
	printf '== ok, %d s since the start\n' "$SECONDS"
}

# mounts ROOT: what every program expects; /sys is for whoever has the network.
mounts() {
	mount -t proc proc "$1/proc"
	mount -t tmpfs tmpfs "$1/run"
	mount --rbind /dev "$1/dev"
	mount --make-rslave "$1/dev"
}

# kept_system NAME PACKAGES OPTION...: the folder of a Debian that has these packages (with commas between), made by mmdebstrap with
# these options once, and kept below ${XDG_CACHE_HOME:-~/.cache}/linkbraid.
kept_system() {
	local cache=${XDG_CACHE_HOME:-$HOME/.cache}/linkbraid image name=$1 list=$2 lock
	shift 2
	image=$cache/$name-$(cksum <<<"$SUITE $list $*" | cut -d' ' -f1)
	mkdir -p "$cache"
	exec {lock}>"$cache/lock"
	flock "$lock"
	if [ ! -d "$image" ]; then
		rm -rf "$image.part"
		mmdebstrap --quiet --variant=minbase --include="$list" "$@" "$SUITE" "$image.part" >&2
		mv "$image.part" "$image"
	fi
	exec {lock}>&-
	echo "$image"
}

# earlier PACKAGE VERSION FOLDER: the same package, as one of that version.
earlier() {
	local unpacked version
	unpacked=$(mktemp -d)
	version=$(dpkg-deb -f "$1" Version)
	dpkg-deb -R "$1" "$unpacked/package"
	sed -i "s/^Version: .*/Version: $2/; s/(\(>\?=\) $version)/(\1 $2)/" "$unpacked/package/DEBIAN/control"
	dpkg-deb -b --root-owner-group "$unpacked/package" "$3/$(basename "${1/_${version}_/_$2_}")" >/dev/null
	rm -rf "$unpacked"
}

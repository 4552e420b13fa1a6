#!/usr/bin/env bash
# Does what README.md says in a minimal Debian 12 that has git, make and ca-certificates: installs what `make demo` and
# `make test` need, and runs `make demo`.
#
# usage: test-bare.sh [--setup]     --setup: installs and checks only, and builds nothing
#
# Needs root, mmdebstrap and Debian's mirrors. The system lies in a folder of its own below /var/tmp, which is removed at
# the end, however that comes. Mounts are in a mount namespace and processes in a process namespace, which go with it.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh
# shellcheck source=scripts/debian.sh
. scripts/debian.sh

PACKAGES=git,make,ca-certificates

apart LINKBRAID_BARE_ROOT "scripts/$(basename "$0")" "$@"
root=$LINKBRAID_BARE_ROOT/root

# in_bare COMMAND...: there, with nothing of this machine's environment.
in_bare() {
	chroot "$root" env -i HOME=/root LANG=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		sh -ec 'cd /root/linkbraid && "$@"' sh "$@"
}

make_system() {
	mmdebstrap --quiet --variant=minbase --include="$PACKAGES" "$SUITE" "$root"
	# The network is this machine's, and so are the certificates that its administrator added for it.
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \;
	chroot "$root" update-ca-certificates >/dev/null
	mkdir "$root/root/linkbraid"
	git ls-files --cached --others --exclude-standard -z | tar --null --ignore-failed-read -cf - -T - |
		tar -xf - -C "$root/root/linkbraid"
	# So that / is a mount point there, as on any machine.
	mount --bind "$root" "$root"
	mounts "$root"
	mount -t sysfs sysfs "$root/sys"
}

step "a minimal Debian ($SUITE) with $PACKAGES" make_system
! in_bare sh -c 'command -v cargo || command -v cc' || fail "test-bare" "it is not bare" "it has a compiler" "$0"
step "what 'make demo' installs" in_bare scripts/deps.sh build run
step "what 'make demo' checks" in_bare scripts/need-root.sh demo
step "what 'make test' installs" in_bare scripts/deps.sh build run test
step "format and version of Rust" in_bare sh -ec 'cargo --version; cargo fmt --all --check; cargo clippy --version'
[ "${1:-}" != --setup ] || exit 0
step "make demo" in_bare make demo

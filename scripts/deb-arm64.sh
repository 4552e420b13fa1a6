#!/usr/bin/env bash
# Builds the Debian packages for arm64, checks them, and runs the unit tests of the crates that touch no kernel as arm64
# programs, in a Debian 12 for amd64 that has a cross compiler, the libraries of arm64 and qemu-user.
#
# usage: deb-arm64.sh     the packages go to target/arm64/debian
#
# Needs root, mmdebstrap, and Debian's mirrors the first time: the system is kept below ${XDG_CACHE_HOME:-~/.cache}/linkbraid.
# CARGO names the cargo that fetches the crates; the one of that system builds them, without a network.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh
# shellcheck source=scripts/debian.sh
. scripts/debian.sh

TARGET=aarch64-unknown-linux-gnu
# What is built for arm64 needs of that architecture, and what builds and runs it.
CROSS=crossbuild-essential-arm64,libelf-dev:arm64,zlib1g-dev:arm64,cargo-web,rustc-web,libstd-rust-web-dev:arm64,qemu-user,git
# Below target, so that nothing that another Rust has built is taken for ours.
BUILT=target/arm64

[ "$(dpkg --print-architecture)" = amd64 ] ||
	fail "deb-arm64" "this machine" "it is no amd64, which the cross compiler is for" "make deb"
apart LINKBRAID_ARM64 "scripts/$(basename "$0")" "$@"
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}

make_system() {
	root=$(kept_system arm64 "$(scripts/deps.sh --list build deb | paste -sd,),$CROSS" --architectures=amd64,arm64 \
		--customize-hook='mkdir "$1/linkbraid" "$1/cargo"')
	mounts "$root"
	mount -t tmpfs tmpfs "$root/tmp"
	mount --bind . "$root/linkbraid"
	mount --bind "$CARGO_HOME" "$root/cargo"
}

# there COMMAND...: in that system and its namespace, as one builds for arm64, with nothing of this machine's environment.
there() {
	chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin CARGO_HOME=/cargo CARGO_NET_OFFLINE=true \
		CARGO_TARGET_DIR="$BUILT" CARGO_BUILD_TARGET="$TARGET" RUN=qemu-aarch64 DEB_BUILD_OPTIONS=nocheck \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 \
		sh -ec 'cd /linkbraid && exec dpkg-architecture --host-arch arm64 --command "$*"' sh "$@"
}

unit_tests() {
	local crates
	# The same that scripts/test.sh runs side by side.
	read -ra crates < <(sed -n 's/^pure=(\(.*\))$/\1/p' scripts/test.sh)
	there cargo test --locked --quiet --lib "${crates[@]/#/--package=linkbraid-}"
}

step "crates" "${CARGO:-cargo}" fetch --locked --quiet
step "a Debian ($SUITE) that builds for arm64" make_system
step "packages" there make --no-print-directory deb
step "lintian" there "${LINTIAN[@]}" "$BUILT"/debian/*_arm64.deb
step "unit tests of what touches no kernel" unit_tests

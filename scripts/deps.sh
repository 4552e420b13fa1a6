#!/usr/bin/env bash
# Installs the Debian packages that are missing, by name, and checks the Rust tool chain.
#
# usage: deps.sh GROUP...     groups: build (compile), run (lab and demo), test (the rest of the tests)
#
# Only apt is ever called, and only when a package is missing. Where apt cannot be used, it says what is lacking.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

# Older ones cannot build the workspace: `rust-version` in Cargo.toml.
RUST_MIN=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
RUSTUP="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . ~/.cargo/env"

# Each line: a package, and how to see without dpkg that its content is there.
packages() {
	case $1 in
	build)
		echo "clang command:clang"
		echo "gcc command:cc"
		echo "libc6-dev header:stdio.h"
		echo "libelf-dev header:libelf.h"
		echo "zlib1g-dev header:zlib.h"
		echo "pkg-config command:pkg-config"
		echo "make command:make"
		;;
	run)
		echo "iproute2 command:ip"
		echo "iperf3 command:iperf3"
		echo "ethtool command:ethtool"
		echo "iputils-ping command:ping"
		;;
	test)
		# Virtual machines with stock kernels are part of the tests only where they are present.
		if [ -e tests/vm ]; then
			echo "qemu-system-x86 command:qemu-system-x86_64"
			echo "busybox-static command:busybox"
			echo "kmod command:modprobe"
			echo "cpio command:cpio"
			echo "xz-utils command:xz"
		fi
		;;
	*) fail "deps" "group '$1'" "no such group; allowed are build, run, test" "scripts/deps.sh build run test" ;;
	esac
}

# present PACKAGE PROBE: asks dpkg where there is one. pkgconf and others may provide a package, so the probe counts too.
present() {
	local kind=${2%%:*} name=${2#*:}
	if command -v dpkg-query >/dev/null &&
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; then
		return 0
	fi
	case $kind in
	command) PATH=$PATH:/usr/sbin:/sbin command -v "$name" >/dev/null ;;
	header) echo "#include <$name>" | cc -E - >/dev/null 2>&1 ;;
	esac
}

missing=()
for group in "$@"; do
	while read -r package probe; do
		[ -n "$package" ] || continue
		present "$package" "$probe" || missing+=("$package")
	done < <(packages "$group")
done

if [ ${#missing[@]} -gt 0 ]; then
	install="apt-get install -y --no-install-recommends ${missing[*]}"
	if ! command -v apt-get >/dev/null; then
		fail "deps" "missing: ${missing[*]}" "this machine has no apt-get, so they cannot be installed from here" \
			"install what these Debian packages hold with this machine's own package manager"
	fi
	if [ "$(id -u)" != 0 ]; then
		fail "deps" "missing: ${missing[*]}" "installing packages needs root" "sudo $install"
	fi
	echo "deps: installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # a list of words
	if ! $install >/dev/null 2>&1; then
		# The package lists are absent or stale on a fresh machine.
		apt-get update -qq ||
			fail "deps" "apt-get update" "the package lists cannot be read" "apt-get update"
		# shellcheck disable=SC2086 # a list of words
		$install -qq >/dev/null || fail "deps" "cannot install ${missing[*]}" "apt-get refused" "$install"
	fi
fi

cargo=${CARGO:-cargo}
if ! command -v "$cargo" >/dev/null; then
	owner=${SUDO_USER:-}
	if [ -n "$owner" ] && [ -x "$(getent passwd "$owner" | cut -d: -f6)/.cargo/bin/cargo" ]; then
		fail "deps" "no cargo" "root does not see the one of '$owner'" \
			"sudo --preserve-env=PATH env HOME=\"\$HOME\" make test"
	fi
	fail "deps" "no cargo" "Rust $RUST_MIN or newer is needed, and Debian 12's own is older" "$RUSTUP"
fi
have=$("$cargo" --version | cut -d' ' -f2)
if [ "$(printf '%s\n' "$RUST_MIN" "${have%%-*}" | sort -V | head -n 1)" != "$RUST_MIN" ]; then
	if command -v rustup >/dev/null; then update="rustup update stable"; else update=$RUSTUP; fi
	fail "deps" "cargo $have" "it is too old; Rust $RUST_MIN or newer is needed" "$update"
fi
case " $* " in
*" test "*)
	for tool in fmt clippy; do
		"$cargo" "$tool" --version >/dev/null 2>&1 ||
			fail "deps" "no cargo $tool" "the tests check format and lints" "rustup component add rustfmt clippy"
	done
	;;
esac

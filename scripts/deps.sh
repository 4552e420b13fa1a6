#!/usr/bin/env bash
# Installs the Debian packages that are missing, by name, a Rust tool chain among them.
#
# usage: deps.sh GROUP...     groups: build (compile), run (lab and demo), test (the rest of the tests),
#                             bare (make a minimal Debian to try the commands in), deb (make packages and check them)
#        deps.sh --list GROUP...     only prints the names of these packages, one a line
#
# Only apt is ever called, and only when a package is missing. Where apt cannot be used, it says what is missing.
#
# A Rust tool chain that is there and new enough is used, whoever installed it. Otherwise Debian's packages of a new
# enough one are installed: Debian 12 has them in its security suite, under names that end in "-web".
#
# The group test has servers among its packages (nginx, vsftpd, samba, nfs-ganesha, prometheus, cockpit, corosync, etcd), which the tests start themselves, inside
# their own namespaces and with their own files. On the machine none is wanted: see install_quietly().
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

# Older ones cannot build the workspace: `rust-version` in Cargo.toml.
RUST_MIN=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
RUSTUP="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . ~/.cargo/env"

# Asked by every Debian package before it starts a service; deb-systemd-invoke(1p), invoke-rc.d(8).
POLICY=/usr/sbin/policy-rc.d
# How ours is known, should a run have been killed before it could take it away.
POLICY_MARK="# put here by linkbraid's scripts/deps.sh for as long as it installs packages"
LOCK=/run/lock/linkbraid-deps

# Each line: a package, how to see without dpkg that its content is there, and the service it would start, if any.
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
		# The crate for etcd generates its code.
		echo "protobuf-compiler command:protoc"
		echo "libprotobuf-dev file:/usr/include/google/protobuf/descriptor.proto"
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
			# The guest runs this machine's programs: what `linkbraid bench run peers` measures beside linkbraid.
			echo "libteam-utils command:teamd"
			echo "mptcpize command:mptcpize"
		fi
		# The fabric finds libfabric at run time; its headers are compared with what the program declares of them.
		if [ -e crates/ofi ]; then
			echo "libfabric1 library:libfabric.so.1"
			echo "libfabric-dev header:rdma/fabric.h"
			echo "ibverbs-providers file:/usr/share/doc/ibverbs-providers/copyright"
		fi
		# The report, and the page for Cockpit, are looked at in a real browser.
		echo "chromium command:chromium"
		echo "chromium-driver command:chromedriver"
		echo "cockpit-bridge command:cockpit-bridge"
		echo "cockpit-ws file:/usr/lib/cockpit/cockpit-ws cockpit.socket"
		# What the papers measure latency with; `linkbraid bench run fabric` has it beside its own.
		echo "netpipe-tcp command:NPtcp"
		echo "sockperf command:sockperf"
		# Programs that compute together, which the papers name: `linkbraid bench run mpi`.
		echo "openmpi-bin command:mpirun.openmpi"
		echo "netpipe-openmpi command:NPopenmpi"
		echo "hpcc command:hpcc"
		# Filters of the host that keep frames of guests.
		echo "nftables command:nft nftables"
		# Real servers and clients, for the tests of applications.
		echo "nginx command:nginx nginx"
		echo "vsftpd command:vsftpd vsftpd"
		echo "samba command:smbd smbd"
		echo "smbclient command:smbclient"
		echo "nfs-ganesha command:ganesha.nfsd nfs-ganesha"
		echo "nfs-ganesha-vfs file:/usr/share/doc/nfs-ganesha-vfs/copyright nfs-ganesha"
		echo "libnfs-utils command:nfs-cp"
		echo "curl command:curl"
		echo "postgresql-15 file:/usr/lib/postgresql/15/bin/postgres postgresql"
		# Nodes of a fabric find each other by it.
		echo "etcd-server command:etcd etcd"
		echo "openssl command:openssl"
		# Attaches containers to a bond, as container managers have it done.
		echo "containernetworking-plugins file:/usr/lib/cni/bridge"
		echo "podman command:podman podman"
		echo "crun command:crun"
		echo "conmon command:conmon"
		# The types of a cluster's resources, which read those of dist/kubernetes.
		echo "python3-kubernetes file:/usr/lib/python3/dist-packages/kubernetes/__init__.py"
		# A cluster whose token may not be late.
		echo "corosync command:corosync corosync"
		# Reads captures with the dissectors of dist/wireshark/linkbraid.lua.
		echo "tshark command:tshark"
		# Runs a second implementation of ARP+.
		echo "python3 command:python3"
		# Scrapes the daemons, and brings promtool.
		echo "prometheus command:prometheus prometheus"
		;;
	bare)
		echo "mmdebstrap command:mmdebstrap"
		# Into a guest with such a Debian, as its administrator would.
		if [ -e tests/vm/guides ]; then
			echo "openssh-client command:ssh"
			# An initiator of iSCSI that needs nothing of the kernel.
			echo "qemu-utils command:qemu-img"
			echo "qemu-block-extra file:/usr/share/doc/qemu-block-extra/copyright"
		fi
		;;
	deb)
		echo "debhelper command:dh"
		echo "dpkg-dev command:dpkg-shlibdeps"
		echo "lintian command:lintian"
		;;
	*) fail "deps" "group '$1'" "no such group; allowed are build, run, test, bare, deb" "scripts/deps.sh build run test" ;;
	esac
}

if [ "${1:-}" = --list ]; then
	for group in "${@:2}"; do packages "$group" | cut -d' ' -f1; done
	exit
fi

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
	file) [ -e "$name" ] ;;
	library) PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep "^[[:space:]]*$name " >/dev/null ;;
	esac
}

cargo=${CARGO:-cargo}
# What cargo must know beside building.
cargo_commands=()
case " $* " in
*" test "*) cargo_commands=(fmt clippy) ;;
esac

cargo_version() {
	if command -v "$cargo" >/dev/null; then "$cargo" --version | cut -d' ' -f2; fi
}

# new_enough VERSION: of cargo, or of a Debian package of it.
new_enough() {
	[ -n "$1" ] && [ "$(printf '%s\n' "$RUST_MIN" "${1%%[-+~]*}" | sort -V | head -n 1)" = "$RUST_MIN" ]
}

has_rust() {
	local name
	new_enough "$(cargo_version)" || return 1
	for name in "${cargo_commands[@]}"; do
		"$cargo" "$name" --version >/dev/null 2>&1 || return 1
	done
}

# Debian's packages stand in nobody's way: no other tool chain is there that make would use in their place.
may_use_debian_rust() {
	[ -z "${CARGO:-}" ] || [ "$CARGO" = cargo ] || return 1
	! command -v rustup >/dev/null || return 1
	case $(command -v cargo) in
	'' | /usr/bin/cargo) command -v apt-get >/dev/null ;;
	*) return 1 ;;
	esac
}

# candidate PACKAGE: the version that apt would install.
candidate() {
	apt-cache policy "$1" | sed -n 's/^  Candidate: //p'
}

# Prints Debian's packages of a new enough Rust, nothing if apt knows none.
debian_rust() {
	local names
	for names in "cargo rustc rustfmt rust-clippy" "cargo-web rustc-web rustfmt-web rust-web-clippy"; do
		new_enough "$(candidate "${names%% *}")" || continue
		if [ ${#cargo_commands[@]} = 0 ]; then
			echo "$names" | cut -d' ' -f1-2
		else
			echo "$names"
		fi
		return
	done
}

# The tool chain of whoever called sudo, which root does not see.
hidden_rust() {
	[ -n "${SUDO_USER:-}" ] && [ -x "$(getent passwd "$SUDO_USER" | cut -d: -f6)/.cargo/bin/cargo" ]
}

# What the machine starts when it boots, one link a line.
started_at_boot() {
	{
		find /etc/systemd/system -path '*.wants/*' -o -path '*.requires/*'
		find /etc/rc[S2345].d -name 'S*'
		# Not every machine has both.
		true
	} 2>/dev/null | sort
}

our_policy() { grep -qsxF "$POLICY_MARK" "$POLICY"; }
another_policy() { [ -e "$POLICY" ] && ! our_policy; }

# Runs at the end of this script, however it ends.
as_it_was() {
	local link
	if our_policy; then rm -f "$POLICY"; fi
	[ -n "${boot_before+known}" ] || return 0
	comm -13 <(echo "$boot_before") <(started_at_boot) | while read -r link; do
		# Both remember that it was an administrator's wish, so that an upgrade does not enable it again.
		case $link in
		/etc/rc*) update-rc.d "$(basename "$link" | cut -c 4-)" disable ;;
		*) systemctl disable --quiet "$(basename "$link")" ;;
		esac >/dev/null 2>&1 || true
		# The second of two links of one service is gone by now.
		[ ! -L "$link" ] || rm -f "$link"
	done
}

# install_quietly SERVICE...: from here to the end of the script, packages can be installed without any effect on what
# this machine runs: none of their services is started, now or at the next boot. A service that was there before, and
# its settings, stay as they are. What remains are the packages themselves, with their users and files below /etc
# (`apt-get purge` takes them away again), and services that `systemctl enable --now NAME` starts for whoever wants them.
install_quietly() {
	local service status
	mkdir -p "$(dirname "$LOCK")"
	exec 9>"$LOCK"
	# Another checkout may be installing; its policy must stay until it is done.
	flock 9
	for service in "$@"; do
		another_policy || continue
		status=0
		"$POLICY" "$service" start >/dev/null 2>&1 || status=$?
		[ "$status" = 101 ] ||
			fail "deps" "cannot install the servers that the tests need" \
				"this machine's $POLICY would let '$service' start" "$install"
	done
	boot_before=$(started_at_boot)
	trap as_it_was EXIT
	trap 'exit 130' HUP INT TERM
	if another_policy; then return; fi
	printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" >"$POLICY.linkbraid"
	chmod 755 "$POLICY.linkbraid"
	mv "$POLICY.linkbraid" "$POLICY"
}

# A killed run may have left its policy here, or another one may still need it: the lock tells.
if [ "$(id -u)" = 0 ] && our_policy; then install_quietly; fi

missing=() services=()
for group in "$@"; do
	while read -r package probe service; do
		[ -n "$package" ] || continue
		present "$package" "$probe" && continue
		missing+=("$package")
		[ -z "$service" ] || services+=("$service")
	done < <(packages "$group")
done

if ! has_rust && ! hidden_rust && may_use_debian_rust; then
	rust=$(debian_rust)
	if [ -z "$rust" ] && [ "$(id -u)" = 0 ]; then
		# The package lists are absent or stale on a fresh machine.
		apt-get update -qq >/dev/null 2>&1 9>&- || true
		rust=$(debian_rust)
	fi
	for package in $rust; do
		missing+=("$package")
	done
fi

if [ ${#missing[@]} -gt 0 ]; then
	# Whatever is on the machine stays there.
	install="apt-get install -y --no-install-recommends --no-remove ${missing[*]}"
	if ! command -v apt-get >/dev/null; then
		fail "deps" "missing: ${missing[*]}" "this machine has no apt-get, so they cannot be installed from here" \
			"install what these Debian packages hold with this machine's own package manager"
	fi
	if [ "$(id -u)" != 0 ]; then
		fail "deps" "missing: ${missing[*]}" "installing packages needs root" \
			"sudo --preserve-env=PATH env HOME=\"\$HOME\" scripts/deps.sh $*"
	fi
	echo "deps: installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	[ ${#services[@]} = 0 ] || install_quietly "${services[@]}"
	# shellcheck disable=SC2086 # a list of words
	if ! $install >/dev/null 2>&1 9>&-; then
		apt-get update -qq 9>&- ||
			fail "deps" "apt-get update" "the package lists cannot be read" "apt-get update"
		# shellcheck disable=SC2086 # a list of words
		$install -qq >/dev/null 9>&- || fail "deps" "cannot install ${missing[*]}" "apt-get refused" "${install/ --no-remove/}"
	fi
	hash -r
fi

has_rust && exit
if hidden_rust; then
	fail "deps" "no cargo" "root does not see the one of '$SUDO_USER'" \
		"sudo --preserve-env=PATH env HOME=\"\$HOME\" make test"
fi
have=$(cargo_version)
[ -n "$have" ] ||
	fail "deps" "no cargo" "Rust $RUST_MIN or newer is needed, and apt knows none on this machine" "$RUSTUP"
if ! new_enough "$have"; then
	if command -v rustup >/dev/null; then update="rustup update stable"; else update=$RUSTUP; fi
	fail "deps" "cargo $have" "it is too old; Rust $RUST_MIN or newer is needed" "$update"
fi
for name in "${cargo_commands[@]}"; do
	"$cargo" "$name" --version >/dev/null 2>&1 ||
		fail "deps" "no cargo $name" "the tests check format and lints" "rustup component add rustfmt clippy"
done

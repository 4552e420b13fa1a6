#!/usr/bin/env bash
# Checks the Debian packages, and installs, upgrades and purges them in a minimal Debian 12, with a bond that has to
# live through it.
#
# usage: test-deb.sh DIR     the folder with the packages, as 'make deb' leaves them
#
# Needs root, lintian, mmdebstrap and Debian's mirrors. The system lies in a folder of its own below /var/tmp, which is
# removed at the end, however that comes. Mounts, processes and network are in namespaces of their own. No systemd runs
# there, so what it would do with the service is done by hand.
set -euo pipefail
# shellcheck source=scripts/say.sh
. "$(dirname "$0")/say.sh"
# shellcheck source=scripts/debian.sh
. "$(dirname "$0")/debian.sh"

# What the packages depend on, so that nothing is downloaded later, and sos.
DEPENDS=libelf1,zlib1g,libgcc-s1,iproute2,iperf3,ethtool,iputils-ping,init-system-helpers,bash-completion,sosreport,cockpit-bridge
STATE=/run/linkbraid/linkbraid.sock.state

apart LINKBRAID_DEB_ROOT "$0" "$@"
packages=$1 root=$LINKBRAID_DEB_ROOT/root
version=$(dpkg-deb -f "$packages"/linkbraid_*.deb Version)

# Runs a command there, with nothing of this machine's environment, in a network of its own.
enter=(nsenter --net="$LINKBRAID_DEB_ROOT/net" chroot "$root" env -i HOME=/root LANG=C DEBIAN_FRONTEND=noninteractive
	PATH=/usr/sbin:/usr/bin:/sbin:/bin)
inside() { "${enter[@]}" "$@"; }

# is WHAT COMMAND...: it holds.
is() {
	local what=$1
	shift
	inside "$@" >/dev/null || fail "test-deb" "$what" "it does not hold: $*" "scripts/test-deb.sh $packages"
}

check_packages() {
	"${LINTIAN[@]}" "$packages"/*.deb
	# Bonds are not stopped by an upgrade: the daemon is replaced when the new one is in place.
	dpkg-deb -e "$packages"/linkbraid_*.deb "$LINKBRAID_DEB_ROOT/control"
	grep -q 'deb-systemd-invoke $_dh_action' "$LINKBRAID_DEB_ROOT/control/postinst" &&
		grep -q '_dh_action=restart' "$LINKBRAID_DEB_ROOT/control/postinst" &&
		grep -q '"$1" = remove' "$LINKBRAID_DEB_ROOT/control/prerm" ||
		fail "test-deb" "maintainer scripts" "an upgrade does not restart the service, or stops it first" \
			"cat $LINKBRAID_DEB_ROOT/control/postinst"
}

make_system() {
	mmdebstrap --quiet --variant=minbase --include="$DEPENDS" "$SUITE" "$root"
	mounts "$root"
	touch "$LINKBRAID_DEB_ROOT/net"
	unshare --net="$LINKBRAID_DEB_ROOT/net" true
	nsenter --net="$LINKBRAID_DEB_ROOT/net" mount -t sysfs sysfs "$root/sys"
	# The same packages, as an earlier version.
	local package
	mkdir "$root/new" "$root/old"
	cp "$packages"/*.deb "$root/new"
	for package in "$root"/new/*.deb; do earlier "$package" 0.0.9 "$root/old"; done
	inside find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /dev -o -path /new -o -path /old \
		-o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \) -prune -o -print | sort \
		>"$LINKBRAID_DEB_ROOT/before"
}

install_old() {
	inside sh -ec 'apt-get install -qq -y --no-install-recommends /old/*.deb' >"$LINKBRAID_DEB_ROOT/log" 2>&1 ||
		fail "test-deb" "apt-get install" "$(cat "$LINKBRAID_DEB_ROOT/log")" "scripts/test-deb.sh $packages"
	local file
	for file in /usr/bin/linkbraid /usr/libexec/linkbraid/linkbraid-{lab,bench,ofi,etcd} /usr/lib/cni/linkbraid-cni /lib/systemd/system/linkbraid.service \
		/usr/share/man/man8/linkbraid{,-bond-add,-apply,-lab,-bench}.8.gz /usr/share/man/man5/linkbraid.toml.5.gz \
		/usr/share/bash-completion/completions/linkbraid /usr/share/zsh/vendor-completions/_linkbraid \
		/usr/share/fish/vendor_completions.d/linkbraid.fish /usr/share/doc/linkbraid/{copyright,changelog.gz,crates.txt} \
		/usr/share/doc/linkbraid/examples/{linkbraid.toml,prometheus/linkbraid.rules.yml,grafana/linkbraid.json,kubernetes/linkbraid.yaml} /lib/udev/rules.d/82-linkbraid.rules \
		/lib/systemd/network/{00-linkbraid,zzz-linkbraid-bond}.network /etc/network/if-pre-up.d/linkbraid \
		/lib/systemd/system/{networking,ifup@}.service.d/linkbraid.conf /usr/share/ifupdown2/addons/linkbraid.py \
		/etc/dhcp/dhclient-enter-hooks.d/linkbraid /usr/lib/python3/dist-packages/sos/report/plugins/linkbraid.py; do
		is "file $file" test -s "$file"
	done
	is "the dissectors are where Wireshark looks" sh -c 'test -s /usr/lib/*/wireshark/plugins/linkbraid.lua'
	is "Cockpit finds our page" sh -c "cockpit-bridge --packages | grep -q '^linkbraid  *Bonded links  */usr/share/cockpit/linkbraid$'"
	is "folder /etc/linkbraid" test -d /etc/linkbraid
	is "the service is enabled" test -L /etc/systemd/system/multi-user.target.wants/linkbraid.service
	is "the service starts what is installed" grep -q '^ExecStart=/usr/bin/linkbraid daemon' /lib/systemd/system/linkbraid.service
	is "linkbraid runs" linkbraid --version
	is "linkbraid lab runs" linkbraid lab --help
	is "linkbraid bench runs" linkbraid bench list
	is "no program of this package is missing a library" sh -c '! ldd /usr/bin/linkbraid /usr/libexec/linkbraid/* /usr/lib/cni/linkbraid-cni | grep "not found"'
}

# The daemon as the service runs it.
start_daemon() {
	"${enter[@]}" linkbraid daemon --config /etc/linkbraid.toml --config /etc/linkbraid >"$LINKBRAID_DEB_ROOT/log" 2>&1 &
	daemon=$!
	local tries=0
	until inside linkbraid show >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || fail "test-deb" "the daemon" "$(cat "$LINKBRAID_DEB_ROOT/log")" "scripts/test-deb.sh $packages"
		sleep 0.1
	done
}

stop_daemon() {
	kill "$daemon"
	wait "$daemon" || true
}

# What the bond is made of, with the numbers of its interfaces.
machine() { inside sh -c 'ip -o link | sed "s/ state .*//"; ip -br -4 address; tc filter show dev eth1 ingress'; }

upgrade() {
	inside sh -ec 'ip link set lo up
		for n in 1 2; do ip link add eth$n type veth peer name far$n; ip link set far$n up; ip link set eth$n up; done
		ip address add 198.18.0.1/24 dev eth1
		printf "[bond.bond0]\nmember = [\"eth1\", \"eth2\"]\n" >/etc/linkbraid/bond0.toml'
	start_daemon
	is "the bond of /etc/linkbraid is there" linkbraid show bond0
	is "the address has moved" sh -c 'ip -br address show bond0 | grep -q 198.18.0.1'
	machine >"$LINKBRAID_DEB_ROOT/machine"
	inside sh -ec 'apt-get install -qq -y --no-install-recommends /new/*.deb' >"$LINKBRAID_DEB_ROOT/log2" 2>&1 ||
		fail "test-deb" "upgrade" "$(cat "$LINKBRAID_DEB_ROOT/log2")" "scripts/test-deb.sh $packages"
	kill -0 "$daemon" || fail "test-deb" "upgrade" "the daemon is gone" "scripts/test-deb.sh $packages"
	# What systemd does at the restart.
	stop_daemon
	machine | diff "$LINKBRAID_DEB_ROOT/machine" - ||
		fail "test-deb" "upgrade" "the bond is not what it was" "scripts/test-deb.sh $packages"
	start_daemon
	is "the file of the administrator is there" grep -q eth2 /etc/linkbraid/bond0.toml
	is "the version" sh -c "dpkg-query -W -f '\${Version}' linkbraid | grep -qxF '$version'"
	is "the bond lives on" linkbraid show bond0
}

# What is in a report, with a key in its usual place, and one where only a configuration should be.
report() {
	inside sh -ec 'cd /etc/linkbraid
		linkbraid key new /etc/linkbraid/bond0.key
		linkbraid bond set bond0 --key /etc/linkbraid/bond0.key --auth permit
		cp bond0.key astray.toml
		mkdir /tmp/report
		sos report --batch -z gzip -o linkbraid --tmp-dir /tmp/report
		cd /tmp/report
		mkdir all
		tar -xf *.tar.gz -C all --strip-components 1' >"$LINKBRAID_DEB_ROOT/log2" 2>&1 ||
		fail "test-deb" "sos report" "$(cat "$LINKBRAID_DEB_ROOT/log2")" "scripts/test-deb.sh $packages"
	local words
	is "the report has what 'show' says" grep -q '^bond0: ' /tmp/report/all/sos_commands/linkbraid/linkbraid_show
	for words in show peers lanes class_show fabric_show stats_--all check; do
		is "the report has JSON of '$words'" python3 -m json.tool "/tmp/report/all/sos_commands/linkbraid/linkbraid_--json_$words"
	done
	is "the report has the configuration" grep -q eth2 /tmp/report/all/etc/linkbraid/bond0.toml
	is "the report has the state" test -s "/tmp/report/all$STATE/bond0.json"
	is "the report has no key file" test ! -e /tmp/report/all/etc/linkbraid/bond0.key
	is "the report has the file that is astray" grep -q '(a key) signs' /tmp/report/all/etc/linkbraid/astray.toml
	is "the report has no key" sh -c '! grep -rqF "$(sed -n "s/^[0-9a-f]* \([0-9a-f]*\) signs$/\1/p" /etc/linkbraid/bond0.key)" /tmp/report/all'
	inside rm -r /tmp/report /etc/linkbraid/astray.toml
}

# Services are stopped before a package is removed.
remove() {
	stop_daemon
	inside apt-get remove -qq -y linkbraid-cockpit linkbraid-bench linkbraid >"$LINKBRAID_DEB_ROOT/log2" 2>&1 ||
		fail "test-deb" "remove" "$(cat "$LINKBRAID_DEB_ROOT/log2")" "scripts/test-deb.sh $packages"
	is "the bond stays" sh -c 'ip -br address show bond0 | grep -q 198.18.0.1'
	is "its state stays" test -s "$STATE/bond0.json"
	is "the program is gone" test ! -e /usr/bin/linkbraid
}

purge() {
	inside apt-get purge -qq -y linkbraid-cockpit linkbraid-bench linkbraid >"$LINKBRAID_DEB_ROOT/log2" 2>&1 ||
		fail "test-deb" "purge" "$(cat "$LINKBRAID_DEB_ROOT/log2")" "scripts/test-deb.sh $packages"
	is "the bond is gone" sh -c '! ip link show bond0 2>/dev/null'
	is "the address is back" sh -c 'ip -br address show eth1 | grep -q 198.18.0.1'
	is "no program is left" sh -c 'test -z "$(tc filter show dev eth1 ingress)$(tc filter show dev eth1 egress)"'
	is "no state is left" test ! -e /run/linkbraid
	inside find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /dev -o -path /new -o -path /old \
		-o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \) -prune -o -print | sort |
		diff "$LINKBRAID_DEB_ROOT/before" - ||
		fail "test-deb" "purge" "files are left, or gone" "scripts/test-deb.sh $packages"
	# At once, with the daemon's state there.
	inside sh -ec 'apt-get install -qq -y --no-install-recommends /new/linkbraid_*.deb' >/dev/null 2>&1
	start_daemon
	inside sh -ec 'ip address flush dev eth1
		linkbraid bond add bond1 --member eth1,eth2
		ip address add 198.18.1.1/24 dev bond1
		ip route add default via 198.18.1.254' >"$LINKBRAID_DEB_ROOT/log2" 2>&1 ||
		fail "test-deb" "a bond by hand" "$(cat "$LINKBRAID_DEB_ROOT/log2")" "scripts/test-deb.sh $packages"
	stop_daemon
	inside apt-get purge -qq -y linkbraid >"$LINKBRAID_DEB_ROOT/log2" 2>&1 ||
		fail "test-deb" "purge at once" "$(cat "$LINKBRAID_DEB_ROOT/log2")" "scripts/test-deb.sh $packages"
	is "the bond is gone" sh -c '! ip link show bond1 2>/dev/null'
	is "its address is on its first member" sh -c 'ip -br address show eth1 | grep -q 198.18.1.1'
	is "and so is its route" sh -c 'ip route show default | grep -q "via 198.18.1.254 dev eth1"'
	is "nothing is left" sh -c 'test ! -e /run/linkbraid && test ! -e /var/lib/linkbraid && test ! -e /etc/linkbraid'
}

step "lintian, and what the maintainer scripts do" check_packages
step "a minimal Debian ($SUITE)" make_system
step "install" install_old
step "upgrade under a bond" upgrade
step "what sos collects" report
step "remove" remove
step "purge" purge

# shellcheck shell=bash
# Sourced by what boots a Debian 12 with systemd, its own kernel and our package: one guest with four NICs on a learning switch, which
# is a bridge in a network namespace of this machine (as root). A DHCP server and a peer that bonds four links, too, are on the same
# switch. Emulated processors in real time: seconds compare, and say nothing of a real machine.
#
# It takes these options off the arguments, and where no case is left, all cases are there: functions named case_CASE.
#   --logs FOLDER      keeps the journals there
#   --packages FOLDER  where `make deb` has left the packages (target/debian)
#
# The systems are made once by mmdebstrap and kept below ${XDG_CACHE_HOME:-~/.cache}/linkbraid. LINKBRAID_BIN names the binary that
# the peer runs, else it is the one that `make build` makes.

: "${here:?}"
# shellcheck source=scripts/say.sh
. "$here/../../scripts/say.sh"
# shellcheck source=scripts/debian.sh
. "$here/../../scripts/debian.sh"

MEMBERS=4
# What is upgraded while it runs: each system that has one keeps its package.
UPGRADED=(systemd network-manager ifupdown ifupdown2 netplan.io)
# What every system has, and what our package depends on.
BASE=systemd,systemd-sysv,udev,dbus,kmod,iproute2,iputils-ping,procps,libelf1,zlib1g,libgcc-s1,init-system-helpers
# To boot on a busy machine; and for the network once the daemon is ready: less than the two minutes after which systemd gives up.
UP_SECONDS=300
ONLINE_SECONDS=75
# For a change to be over, and for how long all must be well then.
WHOLE_SECONDS=60
HOLD_SECONDS=15
STATIC=198.18.0.1/24
# Between the peer's pings: in most events, and where none may be lost.
PING_SECONDS=0.2
FINE_SECONDS=0.02
# The DHCP server has this for the MAC of the member that is first in the file.
RESERVED=198.18.0.50/24

logs='' packages=$here/../../target/debian
while [ $# -gt 0 ]; do
	case $1 in
	--logs) logs=$2 ;;
	--packages) packages=$2 ;;
	*) break ;;
	esac
	shift 2
done
[ $# -gt 0 ] || mapfile -t all < <(sed -n 's/^case_\([a-z0-9_]*\)() {$/\1/p' "$0")
[ $# -gt 0 ] || set -- "${all[@]}"
LINKBRAID_BIN=$(realpath -m "${LINKBRAID_BIN:-$here/../../target/release/linkbraid}")
[ -x "$LINKBRAID_BIN" ] || fail "vm" "no $LINKBRAID_BIN" "it is what the peer runs" "make build"
package=$(find "$packages" -maxdepth 1 -name 'linkbraid_*.deb' 2>/dev/null | sed -n 1p)
[ -n "$package" ] || fail "vm" "no package in $packages" "it is what the guest gets" "make deb"
LIMIT=3600
# shellcheck source=tests/vm/pair.sh
. "$here/pair.sh"
MEMORY_MIB=1024
# All that holds for a while is one answer.
ANSWER_SECONDS=300
kernel=$("$here/run" --kernel 6.1 --fetch)

switch=lb-debian-$$ peer=lb-debian-$$-peer
within=(ip netns exec "$switch")
# The disk that the guest writes to; else what it writes is lost when it ends.
layer=
# Further lines of the DHCP server's file.
leases=()
helpers=() monitor='' may_fail=''
# The bond's name in the guest, and what must hold there: `state`, or another function of debian-host.
bond=bond0 must=state
# Rows of the table, and whether one of them says FAILED.
manager='' address='' failed=''

# net_up: the switch with a DHCP server, and the peer.
net_up() {
	local at
	ip netns add "$switch"
	ip netns add "$peer"
	"${within[@]}" ip link add switch type bridge mcast_snooping 0
	"${within[@]}" ip address add 198.18.0.254/24 dev switch
	"${within[@]}" ip link set lo up
	"${within[@]}" ip link set switch up
	for at in $(seq 0 $((MEMBERS - 1))); do
		"${within[@]}" ip tuntap add "port$at" mode tap
		"${within[@]}" ip link set "port$at" master switch up
		ip -n "$peer" link add "eth$at" type veth peer name "peer$at" netns "$switch"
		ip -n "$peer" link set "eth$at" up
		"${within[@]}" ip link set "peer$at" master switch up
	done
	printf '%s\n' "start 198.18.0.100" "end 198.18.0.150" "interface switch" "option subnet 255.255.255.0" \
		"option router 198.18.0.254" "option lease 120" "static_lease 52:54:00:00:01:00 ${RESERVED%/*}" "${leases[@]}" \
		"lease_file $scratch/leases" "pidfile $scratch/udhcpd.pid" >"$scratch/udhcpd.conf"
	: >"$scratch/leases"
	"${within[@]}" busybox udhcpd -f "$scratch/udhcpd.conf" >"$scratch/udhcpd.log" 2>&1 &
	helpers+=($!)
	printf '[bond.bond0]\nmember = ["eth0", "eth1", "eth2", "eth3"]\naddress = "198.18.0.2/24"\nprobe-multiplier = 20\n' \
		>"$scratch/peer.toml"
	ip netns exec "$peer" "$LINKBRAID_BIN" --socket "$scratch/peer.sock" daemon --config "$scratch/peer.toml" \
		>"$scratch/peer.log" 2>&1 &
	helpers+=($!)
}

debian_ends() {
	local pid
	pair_kill
	for pid in "${helpers[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	ip netns del "$switch" 2>/dev/null || true
	ip netns del "$peer" 2>/dev/null || true
	rm -rf "$scratch" "${system:-}"
}
trap debian_ends EXIT

# system_with PACKAGES: sets `system` to a folder with a Debian that has these and ours.
system_with() {
	system_of "$1"
	[ ! -e "$system/linkbraid.deb" ] || return 0
	cp "$package" "$system/linkbraid.deb"
	chroot "$system" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive dpkg -i /linkbraid.deb \
		>"$scratch/install.log" 2>&1 || bad "the package cannot be installed: $(cat "$scratch/install.log")"
}

# system_of PACKAGES: the same without ours, unless it is there already.
system_of() {
	local list=$BASE,$1 image keep
	# The packages are there until it is done.
	keep='mkdir "$1/var/packages"; for name in '${UPGRADED[*]}'; do
		find "$1/var/cache/apt/archives" -name "${name}_*.deb" -exec cp {} "$1/var/packages/$name.deb" \;; done'
	image=$(kept_system debian "$list" --customize-hook="$keep")
	if [ -n "${system:-}" ] && [ "$(cat "$system/image")" = "$image" ]; then return; fi
	rm -rf "${system:-}"
	system=$(mktemp -d /var/tmp/linkbraid-debian.XXXXXX)
	cp -a "$image/." "$system"
	chmod 755 "$system"
	echo "$image" >"$system/image"
}

# Files above those of the system, made anew for each case.
above=$scratch/above

# file PATH LINE...
file() {
	mkdir -p "$above/$(dirname "$1")"
	printf '%s\n' "${@:2}" >"$above/$1"
}

# unit LINK TARGET: a link below /etc/systemd/system.
unit() {
	mkdir -p "$above/etc/systemd/system/$(dirname "$1")"
	ln -sfn "$2" "$above/etc/systemd/system/$1"
}

off() {
	local name
	for name; do unit "$name" /dev/null; done
}

networkd_on() {
	unit multi-user.target.wants/systemd-networkd.service /lib/systemd/system/systemd-networkd.service
	unit dbus-org.freedesktop.network1.service /lib/systemd/system/systemd-networkd.service
	unit network-online.target.wants/systemd-networkd-wait-online.service /lib/systemd/system/systemd-networkd-wait-online.service
}

# common ADDRESS: what every case has. The address, if there is one, is the bond's in the file.
common() {
	local address=
	rm -rf "$above"
	may_fail=
	[ -z "$1" ] || address="address = \"$1\""
	file etc/linkbraid.toml "[bond.bond0]" 'member = ["enp0s16", "enp0s17", "enp0s18", "enp0s19"]' "probe-multiplier = 20" "$address"
	mkdir -p "$above/etc/vm"
	cp "$here/agent" "$above/etc/vm/agent"
	cp "$here/debian-host" "$above/etc/vm/host"
	file etc/systemd/system/agent.service "[Unit]" DefaultDependencies=no "[Service]" ExecStart=/etc/vm/agent \
		Environment=LINKBRAID_BIN=/usr/bin/linkbraid RuntimeDirectory=vm
	unit sysinit.target.wants/agent.service ../agent.service
	file etc/systemd/system/after-online.service "[Unit]" Wants=network-online.target After=network-online.target \
		"[Service]" Type=oneshot RemainAfterExit=yes "ExecStart=/etc/vm/host online"
	unit multi-user.target.wants/after-online.service ../after-online.service
	file etc/hostname debian
	file etc/fstab ""
	file etc/machine-id 00112233445566778899aabbccddeeff
	off apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer systemd-timesyncd.service \
		getty.target getty@tty1.service serial-getty@ttyS0.service
}

# switch_on: the guest. Its kernel may have measured its processor's clock while this machine was busy with something else: its
# seconds are too short then, time-outs end what is not late, and it is booted again.
switch_on() {
	local at try words=()
	for at in $(seq 0 $((MEMBERS - 1))); do
		words+=(-netdev "tap,id=n$at,ifname=port$at,script=no,downscript=no")
		words+=(-device "virtio-net-pci,id=nic$at,netdev=n$at,mac=52:54:00:00:01:0$at,addr=0x1$at,speed=1000,duplex=full")
	done
	words+=(-chardev "pipe,id=monitor,path=$scratch/monitor" -mon "chardev=monitor,mode=readline")
	for ((try = 1; ; try++)); do
		rm -f "$scratch"/monitor.*
		mkfifo "$scratch/monitor.in" "$scratch/monitor.out"
		start_guest a "$kernel" "${words[@]}" -- --root "$system" --above "$above" ${layer:+--layer "$layer"}
		exec {monitor}<>"$scratch/monitor.in" {monitor_out}<>"$scratch/monitor.out"
		ANSWER_SECONDS=$UP_SECONDS on a true || bad "the guest does not come up: $(tail -n 30 "$scratch/a.console")"
		! clock_is_right || return 0
		[ "$try" -lt "$BOOT_TRIES" ] || bad "the guest's clock is wrong, booted $try times"
		pair_kill
		exec {monitor}>&- {monitor_out}>&-
	done
}

# clock_is_right: whether the guest's seconds are at least half as long as ours.
clock_is_right() {
	local began=$EPOCHREALTIME its
	its=$(ask clock)
	read -rt 2 <> <(:) || true
	awk -v its="$its" -v its_now="$(ask clock)" -v began="$began" -v now="$EPOCHREALTIME" \
		'BEGIN { exit !(its_now - its <= 2 * (now - began)) }'
}

# boots: waits until it has started all; how that went.
boots() {
	local until=$((SECONDS + UP_SECONDS))
	until ask booted; do
		[ "$SECONDS" -lt "$until" ] || {
			on a systemctl list-jobs --no-legend >&2
			echo "not all is started after $UP_SECONDS s"
			return 1
		}
		read -rt 1 <> <(:) || true
	done
	ask boot "$ONLINE_SECONDS" "$may_fail"
}

ask() {
	on a env BOND="$bond" /etc/vm/host "$@"
}

# row EVENT RESULT WORDS
row() {
	local silence=-
	[ ! -s "$scratch/silence" ] || silence=$(cat "$scratch/silence")
	printf '%-15s %-16s %-14s %-8s %-22s %s\n' "$manager" "$address" "$1" "$2" "$silence" "${3//$'\n'/, }"
	[ "$2" = held ] || failed=1
}

# event NAME HOLD COMMAND...: what follows from it; the peer pings the address meanwhile.
event() {
	event_with "$PING_SECONDS" '' "$@"
}

# lossless NAME HOLD COMMAND...: the same, and none of many pings may be lost.
lossless() {
	event_with "$FINE_SECONDS" 0 "$@"
}

# event_with SECONDS LOST NAME HOLD COMMAND...: between pings, and how many of them may be lost, if that is limited.
event_with() {
	local seconds=$1 most=$2 name=$3 hold=$4 said result=held pings lost
	shift 4
	ip netns exec "$peer" ping -n -D -i "$seconds" "${address%/*}" >"$scratch/pings" 2>&1 &
	pings=$!
	said=$("$@" 2>&1) && said="$said${said:+, }$(ask holds "$WHOLE_SECONDS" "$hold" "$address" "$must")" || result=FAILED
	kill -INT "$pings" 2>/dev/null || true
	wait "$pings" || true
	# The last one may be on its way.
	awk '/bytes from/ { gsub(/[][]/, "", $1); if (last && $1 - last > most) most = $1 - last; last = $1
			match($0, /icmp_seq=[0-9]+/); number = substr($0, RSTART + 9, RLENGTH - 9) + 0
			if (!seen[number]++) count++; if (number > top) top = number }
		/packets transmitted/ { if (!count) top = $1 }
		END { printf "%d of %d lost, %.1f s", top - count, top, most }' "$scratch/pings" >"$scratch/silence"
	lost=$(cut -d' ' -f1 "$scratch/silence")
	if [ -n "$most" ] && [ "$lost" -gt "$most" ]; then result=FAILED; fi
	row "$name" "$result" "$said"
	: >"$scratch/silence"
}

cable() {
	echo "set_link nic1 off" >&"$monitor"
	ask degraded "$WHOLE_SECONDS" || return
	echo "set_link nic1 on" >&"$monitor"
}

# upgraded: our own package, with the same version again.
upgraded() {
	local said
	said=$(ask reinstalled linkbraid /linkbraid.deb) || {
		echo "$said"
		return 1
	}
	echo "$said"
	[ "$said" = 'linkbraid was started again' ]
}

quietly() {
	on a "$@" >/dev/null
}

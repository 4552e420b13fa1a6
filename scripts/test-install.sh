#!/usr/bin/env bash
# Installs into an empty folder, reads every file with the program it is for, removes it and looks for leftovers.
#
# usage: test-install.sh BINARY     the release binary, so that nothing is built here
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
make --no-print-directory --silent install BIN="$1" DESTDIR="$root" PREFIX=/opt/lb

"$root/opt/lb/bin/linkbraid" --version >/dev/null
"$root/opt/lb/bin/linkbraid" bench list >/dev/null
"$root/opt/lb/libexec/linkbraid/linkbraid-lab" --version >/dev/null
CNI_COMMAND=VERSION "$root/opt/lb/lib/cni/linkbraid-cni" <<<"{}" | grep 1.1.0 >/dev/null
grep -q '^ExecStart=/opt/lb/bin/linkbraid daemon' "$root/opt/lb/lib/systemd/system/linkbraid.service" ||
	fail "install" "the systemd unit" "it does not start the binary that was installed" "make install"
for family in AF_UNIX AF_NETLINK AF_PACKET AF_INET AF_INET6 AF_XDP; do
	grep -q "^RestrictAddressFamilies=.*\<$family\>" "$root/opt/lb/lib/systemd/system/linkbraid.service" ||
		fail "install" "the systemd unit" "it forbids $family, which the daemon needs" "systemd-analyze security linkbraid"
done

for file in /opt/lb/lib/udev/rules.d/82-linkbraid.rules /opt/lb/lib/systemd/network/{00-linkbraid,zzz-linkbraid-bond}.network \
	/opt/lb/lib/systemd/system/{networking,ifup@}.service.d/linkbraid.conf /usr/share/ifupdown2/addons/linkbraid.py \
	/etc/network/if-pre-up.d/linkbraid /etc/dhcp/dhclient-enter-hooks.d/linkbraid; do
	[ -s "$root$file" ] || fail "install" "$file" "managers of networks would take members" "make install"
done
shark=("$root"/usr/lib/*/wireshark/plugins/linkbraid.lua)
[ -s "${shark[0]}" ] || fail "install" "the dissectors" "they are not where Wireshark looks" "make install"
python3 -m json.tool "$root/opt/lb/share/cockpit/linkbraid/manifest.json" >/dev/null ||
	fail "install" "the page for Cockpit" "Cockpit cannot read its manifest" "make install"
[ -s "$root/usr/lib/python3/dist-packages/sos/report/plugins/linkbraid.py" ] ||
	fail "install" "the plugin for sos" "it is not where sos looks" "make install"
if command -v udevadm >/dev/null && udevadm verify --help >/dev/null 2>&1; then
	udevadm verify "$root/opt/lb/lib/udev/rules.d/82-linkbraid.rules" >/dev/null
fi
# Members are configured by nobody; what has another name is not looked at.
sh -n "$root/etc/network/if-pre-up.d/linkbraid"
IFACE=lb-none0 METHOD=dhcp "$root/etc/network/if-pre-up.d/linkbraid"

pages=("$root"/opt/lb/share/man/man[58]/linkbraid*.[58])
[ ${#pages[@]} -gt 10 ] || fail "install" "man pages" "only ${#pages[@]} are there" "make install"
if command -v man >/dev/null; then
	for page in "${pages[@]}"; do
		# The formatter's warnings tell of broken markup.
		complaints=$(MANROFFOPT=-ww man --warnings -l "$page" 2>&1 >/dev/null) || true
		[ -z "$complaints" ] || fail "install" "$(basename "$page")" "$complaints" "man -l $page"
	done
fi
bash -n "$root/opt/lb/share/bash-completion/completions/linkbraid"
bash -c '. "$1"; complete -p linkbraid' - "$root/opt/lb/share/bash-completion/completions/linkbraid" >/dev/null
head -n 1 "$root/opt/lb/share/zsh/site-functions/_linkbraid" | grep -q '^#compdef linkbraid$'
grep -q '^complete -c linkbraid' "$root/opt/lb/share/fish/vendor_completions.d/linkbraid.fish"

make --no-print-directory --silent uninstall DESTDIR="$root" PREFIX=/opt/lb
left=$(find "$root" -type f)
[ -z "$left" ] || fail "uninstall" "files are left" "$left" "make uninstall"

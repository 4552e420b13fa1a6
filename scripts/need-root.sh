#!/usr/bin/env bash
# Says at once what the machine does not allow, instead of failing halfway.
#
# usage: need-root.sh GOAL     the make goal to name in the hint
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

goal="make $1"
# CAP_SYS_ADMIN in /proc/PID/status; capabilities(7).
SYS_ADMIN=21
ELSEWHERE="run it on a machine, in a virtual machine or in a privileged container"

# status_of FIELD: of this process.
status_of() {
	sed -n "s/^$1:[[:space:]]*//p" /proc/self/status
}

# forbidden: why a process with CAP_SYS_ADMIN is refused what needs it.
forbidden() {
	if ! grep -qE '^ +0 +0 +4294967295$' /proc/self/uid_map; then
		echo "this is a user namespace, whose root is not the machine's root"
	elif [ "$(status_of Seccomp)" = 2 ]; then
		echo "a seccomp filter of this container forbids it"
	else
		echo "a security module of this machine forbids it"
	fi
}

if [ "$(id -u)" != 0 ]; then
	fail "$goal" "not root" "network namespaces and BPF programs need it" \
		"sudo --preserve-env=PATH env HOME=\"\$HOME\" $goal"
fi
for mounted in proc:/proc/self/status sysfs:/sys/fs; do
	[ -e "${mounted#*:}" ] ||
		fail "$goal" "no ${mounted#*:}" "the file system ${mounted%%:*} is not mounted here" \
			"mount -t ${mounted%%:*} ${mounted%%:*} /$(cut -d/ -f2 <<<"$mounted")"
done
(((0x$(status_of CapEff) >> SYS_ADMIN) & 1)) ||
	fail "$goal" "no CAP_SYS_ADMIN" "this process is root without that capability, as in an unprivileged container" "$ELSEWHERE"

# The kernel's own words, in English, tell the causes apart.
export LC_ALL=C
if ! said=$(unshare --net true 2>&1); then
	case $said in
	*"No space left on device"*)
		cause="the limit user.max_net_namespaces is reached" hint="sysctl user.max_net_namespaces" ;;
	*"Invalid argument"*) cause="the kernel has no network namespaces (CONFIG_NET_NS)" hint=$ELSEWHERE ;;
	*"Operation not permitted"*) cause=$(forbidden) hint=$ELSEWHERE ;;
	*) cause=${said#unshare: } hint=$ELSEWHERE ;;
	esac
	fail "$goal" "cannot make a network namespace" "$cause" "$hint"
fi
if ! said=$(unshare --mount true 2>&1); then
	case $said in
	*"No space left on device"*)
		cause="the limit user.max_mnt_namespaces is reached" hint="sysctl user.max_mnt_namespaces" ;;
	*propagation*"Invalid argument"*)
		cause="/ is not a mount point here, as in a plain chroot" \
			hint="mount --bind FOLDER FOLDER    # outside, before 'chroot FOLDER'" ;;
	*"Operation not permitted"*) cause=$(forbidden) hint=$ELSEWHERE ;;
	*) cause=${said#unshare: } hint=$ELSEWHERE ;;
	esac
	fail "$goal" "cannot make a mount namespace" "$cause" "$hint"
fi
if ! said=$(unshare --mount mount -t bpf bpf /sys/fs/bpf 2>&1); then
	case $said in
	*"unknown filesystem type"*) cause="the kernel has none (CONFIG_BPF_SYSCALL)" ;;
	*"permission denied"* | *"not permitted"*) cause=$(forbidden) ;;
	*) cause=${said#mount: } ;;
	esac
	fail "$goal" "cannot mount a BPF file system" "$cause" "$ELSEWHERE"
fi

#!/usr/bin/env bash
# Says at once what the machine does not allow, instead of failing halfway.
#
# usage: need-root.sh GOAL     the make goal to name in the hint
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

if [ "$(id -u)" != 0 ]; then
	fail "make $1" "not root" "network namespaces and BPF programs need it" \
		"sudo --preserve-env=PATH env HOME=\"\$HOME\" make $1"
fi
if ! unshare --net --mount true 2>/dev/null; then
	fail "make $1" "cannot make a network namespace" "this container lacks CAP_SYS_ADMIN" \
		"run it on a machine, in a virtual machine or in a privileged container"
fi
if ! unshare --mount sh -c 'mount -t bpf bpf /sys/fs/bpf' 2>/dev/null; then
	fail "make $1" "cannot mount a BPF file system" "the kernel lacks CONFIG_BPF_SYSCALL or the container forbids it" \
		"run it on a machine, in a virtual machine or in a privileged container"
fi

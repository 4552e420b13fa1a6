#!/usr/bin/env bash
# Prints what a test could leave behind: namespaces, interfaces, BPF pins, sockets, files, control groups, processes.
#
# usage: snapshot.sh            prints what there is, one line each, in order
#        snapshot.sh EARLIER    prints what there is beside what the file EARLIER has, and fails if that is anything;
#                               what went away meanwhile was somebody else's
set -euo pipefail

snapshot() {
	ip netns list | awk '{ print "namespace " $1 }'
	ip -o link | awk -F': ' '{ sub(/@.*/, "", $2); print "interface " $2 }'
	if [ -d /sys/fs/bpf ]; then
		# The kernel itself puts these two into the first BPF file system that is mounted.
		find /sys/fs/bpf -mindepth 1 ! -path /sys/fs/bpf/maps.debug ! -path /sys/fs/bpf/progs.debug -printf 'pin %p\n'
	fi
	if [ -d /run/linkbraid ]; then
		find /run/linkbraid -mindepth 1 ! -path /run/linkbraid/lab -printf 'file %p\n'
	fi
	# What others make there may go while it is looked at.
	{
		find "${TMPDIR:-/tmp}" /dev/shm -mindepth 1 -maxdepth 1 -name 'linkbraid*' -printf 'file %p\n' || true
		find /sys/fs/cgroup -type d '(' -path '*/linkbraid/*' -o -name 'linkbraid-*' ')' -printf 'control group %p\n' || true
	} 2>/dev/null
	for comm in /proc/[0-9]*/comm; do
		# A process may end while it is looked at.
		name=$(cat "$comm" 2>/dev/null) || continue
		case $name in
		linkbraid* | iperf3) echo "process $name $(dirname "$comm" | xargs basename)" ;;
		esac
	done
}

export LC_ALL=C
if [ $# = 0 ]; then
	snapshot | sort
else
	! comm -13 "$1" <(snapshot | sort) | grep .
fi

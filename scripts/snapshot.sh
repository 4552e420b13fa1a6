#!/usr/bin/env bash
# Prints what a test could leave behind: namespaces, interfaces, BPF pins, sockets, files, control groups,
# processes. Two prints of a machine that tests have left clean are equal.
set -euo pipefail

ip netns list | awk '{ print "namespace " $1 }' | sort
ip -o link | awk -F': ' '{ sub(/@.*/, "", $2); print "interface " $2 }' | sort
if [ -d /sys/fs/bpf ]; then
	find /sys/fs/bpf -mindepth 1 ! -type d | sort | sed 's/^/pin /'
fi
if [ -d /run/linkbraid ]; then
	find /run/linkbraid -mindepth 1 ! -path /run/linkbraid/lab | sort | sed 's/^/file /'
fi
# What others make there may go while it is looked at.
{ find "${TMPDIR:-/tmp}" /dev/shm -mindepth 1 -maxdepth 1 -name 'linkbraid*' || true; } 2>/dev/null | sort | sed 's/^/file /'
{ find /sys/fs/cgroup -type d '(' -path '*/linkbraid/*' -o -name 'linkbraid-*' ')' || true; } 2>/dev/null | sort | sed 's/^/control group /'
for comm in /proc/[0-9]*/comm; do
	# A process may end while it is looked at.
	name=$(cat "$comm" 2>/dev/null) || continue
	case $name in
	linkbraid* | iperf3) echo "process $name $(dirname "$comm" | xargs basename)" ;;
	esac
done | sort

#!/usr/bin/env bash
# Checks what the other scripts decide: the cause that need-root.sh names, the Rust that deps.sh installs, and what
# snapshot.sh takes for left behind; and that the service is as confined as docs/security.md says. Everything happens in namespaces and folders of its own; nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C

# expect WHAT WORDS COMMAND...: the command fails, and says these words.
expect() {
	local what=$1 words=$2 said
	shift 2
	if said=$("$@" 2>&1); then fail "scripts" "$what" "it passes, and should not" "$*"; fi
	case $said in
	*"$words"*) ;;
	*) fail "scripts" "$what" "it says '$said', not '$words'" "$*" ;;
	esac
}

# -- need-root.sh
need=(scripts/need-root.sh demo)
scripts/need-root.sh demo
cp -r scripts "$scratch/scripts"
chmod -R a+rX "$scratch"
expect "not root" "not root" \
	setpriv --reuid 65534 --regid 65534 --clear-groups "$scratch/${need[0]}" demo
expect "no capability" "no CAP_SYS_ADMIN" setpriv --bounding-set -sys_admin "${need[@]}"
if unshare --user --map-root-user true 2>/dev/null; then
	expect "user namespace" "this is a user namespace" unshare --user --map-root-user "${need[@]}"
	expect "no more namespaces" "user.max_net_namespaces" unshare --user --map-root-user \
		sh -c 'echo 0 >/proc/sys/user/max_net_namespaces; exec "$@"' sh "${need[@]}"
fi

cat >"$scratch/seccomp.c" <<'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Runs a command that may not call unshare(2).
int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_unshare, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };
	if (argc < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 125;
	return execvp(argv[1], argv + 1);
}
END
cc -o "$scratch/seccomp" "$scratch/seccomp.c"
expect "seccomp" "a seccomp filter" "$scratch/seccomp" "${need[@]}"

# A chroot that shares this system's programs: its / is a plain folder.
# plain_chroot PREPARE COMMAND...
plain_chroot() {
	local prepare=$1
	shift
	# shellcheck disable=SC2016 # for the shell inside
	unshare --mount bash -euc '
		root=$1 prepare=$2
		shift 2
		mkdir -p "$root"/{usr,etc,proc,sys,dev,work}
		for name in bin sbin lib lib32 lib64; do
			[ ! -e "/$name" ] || ln -sfn "usr/$name" "$root/$name"
		done
		for name in usr etc dev; do mount --rbind "/$name" "$root/$name"; done
		mount --bind . "$root/work"
		eval "$prepare"
		exec chroot "$root" "$@"
	' bash "$scratch/root" "$prepare" "$@"
}
# shellcheck disable=SC2016 # for the shell inside
mounts='mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"'
if [ "$(realpath /bin)" = /usr/bin ]; then
	expect "plain chroot" "/ is not a mount point" plain_chroot "$mounts" "/work/${need[0]}" demo
	expect "chroot without /proc" "the file system proc is not mounted" plain_chroot true "/work/${need[0]}" demo
fi

# -- deps.sh: a machine without cargo, whose apt-get only notes what it was asked for.
fake=$scratch/bin
mkdir "$fake"
for tool in bash cat cut dirname env grep head id mkdir sed sort; do
	ln -s "$(command -v "$tool")" "$fake/$tool"
done
# Everything but Rust is there.
printf '#!/bin/sh\necho installed\n' >"$fake/dpkg-query"
# shellcheck disable=SC2016 # for the script itself
printf '#!/bin/sh\nsed -n "s/^$2 /  Candidate: /p" "%s"\n' "$scratch/candidates" >"$fake/apt-cache"
# shellcheck disable=SC2016 # for the script itself
printf '#!/bin/sh\n[ "$1" = update ] || echo "$@" >>"%s"\nexit 1\n' "$scratch/asked" >"$fake/apt-get"
chmod +x "$fake"/{dpkg-query,apt-cache,apt-get}

# chooses PACKAGES GROUP... : with the candidates that standard input lists
chooses() {
	local wanted=$1 asked
	shift
	cat >"$scratch/candidates"
	: >"$scratch/asked"
	env -i PATH="$fake" bash scripts/deps.sh "$@" >/dev/null 2>"$scratch/said" || true
	asked=$(sed -n '1s/.* --no-remove //p' "$scratch/asked")
	[ "$asked" = "$wanted" ] ||
		fail "scripts" "deps.sh $*" "it would install '$asked', not '$wanted'; it says: $(cat "$scratch/said")" "scripts/deps.sh $*"
}
chooses "cargo-web rustc-web" build <<'END'
cargo 0.66.0+ds1-1
cargo-web 1.96.0+dfsg1-1~deb12u2
END
chooses "cargo-web rustc-web rustfmt-web rust-web-clippy" build run test <<'END'
cargo 0.66.0+ds1-1
cargo-web 1.96.0+dfsg1-1~deb12u2
END
chooses "cargo rustc" build <<'END'
cargo 1.97.0+dfsg1-1
cargo-web (none)
END
# The main suite alone has one that is too old.
chooses "" build <<'END'
cargo 0.66.0+ds1-1
cargo-web 1.85.0+dfsg3-1~deb12u3
END
grep -q "no cargo" "$scratch/said" || fail "scripts" "deps.sh" "it does not say 'no cargo'" "cat scripts/deps.sh"
# Somebody's own cargo that is too old is not replaced.
printf '#!/bin/sh\necho "cargo 1.70.0 (of somebody)"\n' >"$fake/cargo"
chmod +x "$fake/cargo"
chooses "" build <<<"cargo-web 1.96.0+dfsg1-1~deb12u2"
grep -q "cargo 1.70.0: it is too old" "$scratch/said" ||
	fail "scripts" "deps.sh" "it says '$(cat "$scratch/said")' of an old cargo" "cat scripts/deps.sh"

# -- the service, where systemd can say that of a file (250)
unit=dist/linkbraid.service
if systemd-analyze --help 2>/dev/null | grep -q -- --offline; then
	most=$(sed -n 's/.*`systemd-analyze security linkbraid` says \([0-9]\.[0-9]\)\..*/\1/p' docs/security.md | sed -n 1p)
	said=$(systemd-analyze security --no-pager --offline=true --threshold="${most/./}" "$unit" 2>&1) ||
		fail "$unit" "its limits" "docs/security.md says '$most', not: $(tail -n 1 <<<"$said")" "systemd-analyze security --offline=true $unit"
fi

# -- snapshot.sh, where nothing of this machine can be touched
# shellcheck disable=SC2016 # for the shell inside
unshare --mount --net --pid --fork --kill-child --mount-proc bash -euc '
	mount -t tmpfs tmpfs /run
	mount -t tmpfs tmpfs /tmp
	mount -t bpf bpf /sys/fs/bpf
	unset TMPDIR
	cp "$(command -v sleep)" /tmp/iperf3
	/tmp/iperf3 60 &
	old=$!
	mkdir /run/linkbraid
	touch /run/linkbraid/old
	scripts/snapshot.sh >/tmp/before
	kill "$old"
	wait "$old" || true
	rm /run/linkbraid/old
	scripts/snapshot.sh /tmp/before || { echo "it fails for what went away"; exit 1; }
	# added WHAT ADD REMOVE
	added() {
		eval "$2"
		if said=$(scripts/snapshot.sh /tmp/before); then echo "an added $1 passes"; exit 1; fi
		[ "${said%% *}" = "$1" ] || { echo "an added $1 is said to be: $said"; exit 1; }
		eval "$3"
	}
	added namespace "ip netns add new" "ip netns del new"
	added interface "ip link add new0 type bridge" "ip link del new0"
	added pin "ln -s nothing /sys/fs/bpf/new" "rm /sys/fs/bpf/new"
	added pin "mkdir /sys/fs/bpf/new" "rmdir /sys/fs/bpf/new"
	added file "touch /run/linkbraid/new" "rm /run/linkbraid/new"
	added file "touch /tmp/linkbraid-new" "rm /tmp/linkbraid-new"
	added process "/tmp/iperf3 60 & new=\$!" "kill \$new; wait \$new || true"
	scripts/snapshot.sh /tmp/before
' || fail "scripts" "snapshot.sh" "see above" "scripts/snapshot.sh"

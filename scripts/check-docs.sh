#!/usr/bin/env bash
# Every function and every file that ARCHITECTURE.md and README.md name exists.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

for page in ARCHITECTURE.md README.md; do
	# `name()` or `Type::name()` in backquotes is a function of ours.
	{ grep -oE '`[A-Za-z_:]+\(\)`' "$page" || true; } | tr -d '`()' | sed 's/.*:://' | sort -u | while read -r name; do
		grep -rqE "(fn|int|long|lb_reason|__u32|__u64|void) \*?$name\(" crates --include='*.rs' --include='*.c' --include='*.h' ||
			fail "$page" "function '$name'" "there is none of that name" "grep -rn '$name' crates"
	done
	{ grep -oE '`(crates|docs|scripts|tests|fuzz|dist)/[A-Za-z0-9_./-]+`|\]\([A-Za-z0-9_./-]+\)' "$page" || true; } |
		tr -d '`]()' | sort -u | while read -r file; do
		[ -e "$file" ] || fail "$page" "file '$file'" "it does not exist" "git log --stat -- $file"
	done
done

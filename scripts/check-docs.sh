#!/usr/bin/env bash
# Every function, file and section that the documents name exists, docs/SUMMARY.md has every page, and no document holds an
# unfinished merge.
#
# Functions are looked for in the pages that describe the code: `name()` or `Type::name()` in backquotes is one of ours, in
# Rust, or in C (static or not, whatever it returns). docs/reference is generated.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mapfile -t pages < <(find README.md ARCHITECTURE.md docs -name '*.md' ! -path 'docs/reference/*' | sort)
about_code=(README.md ARCHITECTURE.md docs/design/*.md)

{
	grep -rhoE '\bfn [a-z_0-9]+' crates --include='*.rs' | cut -d' ' -f2
	# A definition in C begins its line; a macro such as BPF_PROG(name, ...) names one as well.
	grep -rhE '^(GLOBAL )?[a-z_].*[ *(][a-z_0-9]+[(,]' crates --include='*.c' --include='*.h' |
		sed -E 's/^[^(]*BPF_[A-Z]+\(([a-z_0-9]+).*/\1/; t; s/^[^(]*[ *]([a-z_0-9]+)\(.*/\1/'
} | sort -u >"$scratch/functions"

for page in "${about_code[@]}"; do
	{ grep -oE '`[A-Za-z_:0-9]+\(\)`' "$page" || true; } | tr -d '`()' | sed 's/.*:://' | sort -u | while read -r name; do
		grep -qxF "$name" "$scratch/functions" ||
			fail "$page" "function '$name'" "there is none of that name" "grep -rn '$name' crates"
	done
done

for page in "${pages[@]}" docs/reference/command.md; do
	case $page in docs/*) place=${page#docs/} ;; *) place=../$page ;; esac
	[ "$place" = SUMMARY.md ] || [ "$(grep -cF "]($place)" docs/SUMMARY.md)" = 1 ] ||
		fail "docs/SUMMARY.md" "page '$place'" "it does not stand there once" "grep -n '$place' docs/SUMMARY.md"
done

# The name that a heading has in a link.
anchors() {
	sed -n 's/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for page in "${pages[@]}"; do
	! grep -qE '^(<{7}|>{7}) ' "$page" ||
		fail "$page" "a merge" "it has both sides of a conflict" "grep -nE '^(<|>){7}' $page"
	folder=$(dirname "$page")
	{ grep -oE '`(crates|docs|scripts|tests|fuzz|dist)/[A-Za-z0-9_./-]+`' "$page" || true; } | tr -d '`' | sort -u |
		while read -r file; do
			[ -e "$file" ] || fail "$page" "file '$file'" "it does not exist" "git log --stat -- $file"
		done
	{ grep -oE '\]\([A-Za-z0-9_./#-]+\)' "$page" || true; } | tr -d '])(' | sort -u | while read -r link; do
		file=$folder/${link%%#*}
		[ "${link#\#}" = "$link" ] || file=$page
		[ -e "$file" ] || fail "$page" "link '$link'" "there is no such file" "git log --stat -- $file"
		case $link in
		*'#'*)
			anchors "$file" | grep -qxF "${link#*#}" ||
				fail "$page" "link '$link'" "$file has no such section" "grep '^#' $file"
			;;
		esac
	done
done

#!/usr/bin/env bash
# Makes a site of README.md, ARCHITECTURE.md and docs/ as docs/SUMMARY.md orders them, and looks at every link in it.
#
# usage: book.sh FOLDER       what is made lies in FOLDER, its first page is FOLDER/site/index.html
#
# CARGO names the cargo that installs mdBook below FOLDER, the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/say.sh
. scripts/say.sh
: "${CARGO:=cargo}"
MDBOOK=0.5.4

folder=$(realpath -m "$1")
"$CARGO" install --quiet --locked --root "$folder/mdbook" --version "=$MDBOOK" mdbook

# A copy with the folders as they are here, so that links between pages hold. mdBook wants its list of pages at the top.
rm -rf "$folder/src" "$folder/site"
mkdir -p "$folder/src"
cp -r README.md ARCHITECTURE.md docs "$folder/src"
mv "$folder/src/docs/book.toml" "$folder"
sed -E 's#\]\(([a-z])#](docs/\1#; s#\]\(\.\./#](#' docs/SUMMARY.md >"$folder/src/SUMMARY.md"
rm "$folder/src/docs/SUMMARY.md"
"$folder/mdbook/bin/mdbook" build --dest-dir "$folder/site" "$folder"

# Links between pages, as a browser follows them.
site=$folder/site
find "$site" -name '*.html' ! -name print.html ! -name toc.html ! -name 404.html | sort | while read -r page; do
	{ grep -oE '<a [^>]*href="[^"]*"' "$page" || true; } | sed 's/.*href="//; s/"$//' | sort -u | while read -r link; do
		case $link in http://* | https://* | mailto:*) continue ;; esac
		file=$page
		[ -z "${link%%#*}" ] || file=$(dirname "$page")/${link%%#*}
		[ -e "$file" ] || fail "${page#"$site/"}" "link '$link'" "the site has no such page" "grep -rn '${link%%#*}' docs"
		case $link in
		*'#'*)
			grep -qF "id=\"${link#*#}\"" "$file" ||
				fail "${page#"$site/"}" "link '$link'" "that page has no such place" "grep -n '^#' docs/*.md"
			;;
		esac
	done
done
printf '%s\n' "$site/index.html"

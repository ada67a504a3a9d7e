#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The cases that test Mesa's own Valhall assembler, out of Debian's source package: a word and its text on each line, in $OUT/valhall-cases.txt.
#
# Variables: OUT, a folder that exists; SOURCES, a folder with sources.list and apt.conf.
set -euo pipefail
work=$(mktemp -d "$OUT/.cases-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
cd "$work"
grep ' trixie main$' "$SOURCES/sources.list" | sed 's/^deb /deb-src /' > sources.list
mkdir -p lists/partial cache/archives/partial
apt() {
	APT_CONFIG=$SOURCES/apt.conf apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$PWD/sources.list" \
		-o Dir::Etc::sourceparts=- -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" "$@"
}
apt update
apt source --download-only mesa
tar -xJOf mesa_*.orig.tar.xz --wildcards '*/valhall/test/assembler-cases.txt' > cases
mv cases "$OUT/valhall-cases.txt"

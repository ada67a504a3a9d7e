#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's kernel, and headers plus GPU driver sources of three kernels that the modules must build for:
# bookworm's (old), trixie's, which the guest runs (stock), and the newest in backports (new).
#
# Header packages are unpacked, never installed: linux-headers-*:arm64 depends on gcc:arm64, which would replace
# the cross compiler.
set -euo pipefail

if [ "${1:-}" != inside ]; then
	cd "$GUEST"
	mkdir -p debs apt-old/lists/partial apt-old/cache/archives/partial apt-old/parts
	cat > apt-old/apt.conf <<-E
		Dir::Etc::sourcelist "/guest/sources-old.list";
		Dir::Etc::sourceparts "/guest/apt-old/parts";
		Dir::State::lists "/guest/apt-old/lists";
		Dir::Cache "/guest/apt-old/cache";
		Acquire::Languages "none";
		APT::Architectures { "amd64"; "arm64"; };
		APT::Sandbox::User "root";
	E
	exec ./in-root bash "/guest/steps/kernels.sh" inside
fi

cd /guest
old_apt=(-c /guest/apt-old/apt.conf)
apt-get "${old_apt[@]}" -qq update
apt-get -qq update

# release [APT OPTION...]: which release the meta-package linux-headers-arm64 of the plain suite stands for.
release() {
	local package=linux-headers-arm64:arm64 version
	version=$(apt-cache "$@" madison "$package" | awk -F '|' '$3 !~ /backports/ { gsub(/ /, "", $2); print $2; exit }')
	apt-cache "$@" depends "$package=$version" |
		sed -n 's/.*Depends: linux-headers-\([0-9].*\)-arm64:arm64$/\1/p' | head -1
}
stock=$(release)
old=$(release "${old_apt[@]}")
new=$(apt-cache search --names-only '^linux-headers-[0-9][^ ]*-arm64$' |
	sed -n 's/^linux-headers-\([0-9][^ ]*\)-arm64 .*/\1/p' | grep -vE -- '-(rt|cloud)$' | sort -V | tail -1)
[ -n "$stock" ] && [ -n "$old" ] && [ -n "$new" ] || { echo "no kernel found: old=$old stock=$stock new=$new"; exit 1; }
printf 'old=%s\nstock=%s\nnew=%s\n' "$old" "$stock" "$new" | tee kernels.new

# base RELEASE: its major and minor number, which name the source package.
base() { echo "$1" | cut -d. -f1-2; }
# fetch RELEASE KBUILD [APT OPTION...]
fetch() {
	local release=$1 kbuild=$2
	shift 2
	apt-get "$@" -o APT::Sandbox::User=root download "linux-headers-$release-arm64:arm64" \
		"linux-headers-$release-common" "linux-kbuild-$kbuild:amd64" "linux-source-$(base "$release")"
}
(
	cd debs
	rm -f -- *.deb
	fetch "$stock" "$stock"
	fetch "$new" "$new"
	fetch "$old" "$(base "$old")" "${old_apt[@]}"
	apt-get -o APT::Sandbox::User=root download "linux-image-$stock-arm64:arm64"
)

rm -rf headers kernel src
mkdir -p headers kernel src
for deb in debs/linux-headers-*.deb debs/linux-kbuild-*.deb; do dpkg-deb -x "$deb" headers; done
dpkg-deb -x "debs/linux-image-$stock-arm64_"*.deb kernel
# The packages know themselves by absolute paths.
for dir in headers/usr/src/linux-headers-*; do ln -sfn "/guest/$dir" "/usr/src/${dir##*/}"; done
for dir in headers/usr/lib/linux-kbuild-*; do ln -sfn "/guest/$dir" "/usr/lib/${dir##*/}"; done

# sources BASE: the drivers that get hooks, and the style checker; the whole tree would be 1.5 GB.
sources() {
	dpkg-deb --fsys-tarfile "debs/linux-source-$1_"*.deb | tar -xO "./usr/src/linux-source-$1.tar.xz" | xz -dc |
		tar -x -C src --wildcards \
			"linux-source-$1/drivers/gpu/drm/pan*" "linux-source-$1/drivers/gpu/drm/scheduler" \
			"linux-source-$1/drivers/gpu/drm/lima" "linux-source-$1/drivers/gpu/drm/v3d" \
			"linux-source-$1/include/uapi/drm/panfrost_drm.h" "linux-source-$1/scripts/checkpatch.pl" \
			"linux-source-$1/scripts/spelling.txt" "linux-source-$1/scripts/const_structs.checkpatch"
}
for release in "$old" "$stock" "$new"; do sources "$(base "$release")" & done
wait
for release in "$old" "$stock" "$new"; do
	[ -f "src/linux-source-$(base "$release")/drivers/gpu/drm/panfrost/panfrost_drv.c" ] ||
		{ echo "linux-source-$(base "$release") did not unpack"; exit 1; }
done
rm -f debs/*.deb
mv kernels.new kernels

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# other-kernel.sh old|new DIR: what QEMU boots for another of Debian's kernels, in DIR beside the guest. It shares build root, disk image and device
# trees. All modules that a run needs are in its initramfs, panfrost among them, so the driver is there before the disk is. What panthor needs, which
# waits for firmware, is in streams/. Runs inside the build root.
set -euo pipefail
which=$1 to=$2
release=$(sed -n "s/^$which=//p" /guest/kernels)-arm64
options=()
[ "$which" = old ] && options=(-c /guest/apt-old/apt.conf)

rm -rf "$to"
mkdir -p "$to"/{debs,kernel,boot,streams,initramfs/{bin,modules,proc,sys,dev,root}}
cd "$to/debs"
# One package at first, several from Linux 7 on.
packages=()
for part in image base binary modules; do
	apt-cache "${options[@]}" show "linux-$part-$release:arm64" > /dev/null 2>&1 && packages+=("linux-$part-$release:arm64")
done
fetch() { apt-get "${options[@]}" -o APT::Sandbox::User=root -qq download "${packages[@]}"; }
fetch || { apt-get "${options[@]}" -qq update && fetch; }
cd "$to"
for deb in debs/*.deb; do dpkg-deb -x "$deb" kernel; done
rm -rf debs

base=kernel
[ -d kernel/usr/lib/modules ] && base=kernel/usr
depmod -b $base "$release"
cp /guest/userland/usr/bin/busybox initramfs/bin/
ln -s busybox initramfs/bin/sh
install -m 755 /guest/guest-files/initramfs-init initramfs/init
# add DIR MODULE...: modules with what they need, but for those of the initramfs, and their order.
add() {
	local dir=$1 module path name
	shift
	for module in "$@"; do modprobe -d "$to/$base" -S "$release" --show-depends "$module"; done |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' > modules
	while read -r path; do
		name=${path##*/}
		[ ! -e "initramfs/modules/${name%.xz}" ] || continue
		case $name in
		*.xz) xz -dc "$path" > "$dir/${name%.xz}" ;;
		*) cp "$path" "$dir/" ;;
		esac
		echo "${name%.xz}" >> "$dir/order"
	done < modules
}
add initramfs/modules virtio_pci virtio_blk ext4 9p 9pnet_virtio virtio_console panfrost
# A kernel of before panthor has none.
[ -z "$(find $base/lib/modules -name 'panthor.ko*')" ] || add streams fixed panthor
(cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) > boot/initramfs.gz
image=kernel/boot/vmlinuz-$release
[ -e "$image" ] || image=$base/lib/modules/$release/vmlinuz
cp "$image" boot/Image
rm -rf initramfs modules kernel
for file in /guest/boot/*.dtb; do cp "$file" boot/; done
echo "stock=${release%-arm64}" > kernels

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What QEMU boots: boot/Image (Debian's kernel, as it is), boot/initramfs.gz and boot/root.ext4.
set -euo pipefail
if [ "${1:-}" != inside ]; then
	exec "$GUEST/in-root" bash "/guest/steps/image.sh" inside
fi

cd /guest
files=/guest/guest-files
release=$(sed -n 's/^stock=//p' kernels)-arm64
mkdir -p boot
rm -rf --one-file-system image-root
cp -a userland image-root
root=/guest/image-root

# Modules: those that a run can need, and what they depend on, uncompressed (xz under emulation is slow).
all=kernel/usr/lib/modules/$release
depmod -b /guest/kernel/usr "$release" 2>/dev/null || depmod -b /guest/kernel "$release"
wanted='virtio_blk ext4 9p 9pnet_virtio panfrost panthor lima uio uio_pci_generic overlay loop'
dest=$root/usr/lib/modules/$release
mkdir -p "$dest/kernel"
cp $all/modules.{builtin,builtin.modinfo,order} "$dest/" 2>/dev/null || true
# closure MODULE...: paths of the modules and their dependencies, in load order.
closure() {
	for module in "$@"; do modprobe -d /guest/kernel/usr -S "$release" --show-depends "$module"; done |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}
closure $wanted > /tmp/modules
while read -r path; do
	name=${path##*/kernel/}
	mkdir -p "$dest/kernel/$(dirname "$name")"
	xz -dc "$path" > "$dest/kernel/${name%.xz}"
done < /tmp/modules
depmod -b "$root" "$release"

mkdir -p $root/{share,opt/gpureplay,proc,sys,dev,run,tmp}
install -m 755 $files/guest-init $root/usr/sbin/guest-init
ldconfig -r "$root"

rm -rf initramfs
mkdir -p initramfs/{bin,modules,proc,sys,dev,root}
cp $root/usr/bin/busybox initramfs/bin/busybox
ln -s busybox initramfs/bin/sh
install -m 755 $files/initramfs-init initramfs/init
closure virtio_blk ext4 > /tmp/modules
while read -r path; do
	name=${path##*/}
	xz -dc "$path" > "initramfs/modules/${name%.xz}"
	echo "${name%.xz}" >> initramfs/modules/order
done < /tmp/modules
(cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) > boot/initramfs.gz
cp "kernel/boot/vmlinuz-$release" boot/Image

rm -f boot/root.ext4.new
truncate -s 2500M boot/root.ext4.new
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E root_owner=0:0 -d image-root boot/root.ext4.new
mv boot/root.ext4.new boot/root.ext4
rm -rf --one-file-system image-root initramfs
ls -la boot

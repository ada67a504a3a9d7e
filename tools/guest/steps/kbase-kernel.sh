#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# linux-5.10/: a second guest beside the first, with bullseye's kernel, for which releases of Arm's driver build. It
# shares build root, userland and disk image; what it needs of modules is in its initramfs. The driver itself is the
# user's: nothing here fetches it.
set -euo pipefail

if [ "${1:-}" != inside ]; then
	cd "$GUEST"
	mkdir -p linux-5.10/apt/{lists/partial,cache/archives/partial,parts}
	sed 's/bookworm/bullseye/' sources-old.list > linux-5.10/apt/sources.list
	cat > linux-5.10/apt/apt.conf <<-E
		Dir::Etc::sourcelist "/guest/linux-5.10/apt/sources.list";
		Dir::Etc::sourceparts "/guest/linux-5.10/apt/parts";
		Dir::State::lists "/guest/linux-5.10/apt/lists";
		Dir::Cache "/guest/linux-5.10/apt/cache";
		Acquire::Languages "none";
		APT::Architectures { "amd64"; "arm64"; };
		APT::Sandbox::User "root";
	E
	exec ./in-root env MACHINE="$MACHINE" CPUS="$CPUS" SMP="$SMP" MEMORY="$MEMORY" \
		bash "/guest/steps/kbase-kernel.sh" inside
fi

guest=/guest/linux-5.10
cd $guest
apt=(-c $guest/apt/apt.conf)
apt-get "${apt[@]}" -qq update
release=$(apt-cache "${apt[@]}" search --names-only '^linux-headers-5\.10\.[^ ]*-arm64$' |
	sed -n 's/^linux-headers-\(5\.10\.[0-9-]*\)-arm64 .*/\1/p' | sort -V | tail -1)
[ -n "$release" ] || { echo "no 5.10 kernel found"; exit 1; }
version=$(apt-cache "${apt[@]}" show "linux-headers-$release-arm64:arm64" | sed -n 's/^Version: //p' | head -1)
rm -rf debs headers kernel && mkdir -p debs headers kernel boot
(
	cd debs
	apt-get "${apt[@]}" download "linux-headers-$release-arm64:arm64" "linux-headers-$release-common" \
		"linux-kbuild-5.10:amd64=$version" "linux-image-$release-arm64:arm64"
)
for deb in debs/linux-headers-*.deb debs/linux-kbuild-*.deb; do dpkg-deb -x "$deb" headers; done
dpkg-deb -x debs/linux-image-*.deb kernel
rm -rf debs
# The packages know themselves by absolute paths.
sed -i "s#/usr/src/#$guest/headers/usr/src/#" "headers/usr/src/linux-headers-$release-arm64/Makefile"
ln -sfn "usr/src/linux-headers-$release-arm64" headers/build

depmod -b kernel "$release-arm64"
rm -rf initramfs && mkdir -p initramfs/{bin,modules,proc,sys,dev,root}
cp /guest/userland/usr/bin/busybox initramfs/bin/
ln -s busybox initramfs/bin/sh
install -m 755 /guest/guest-files/initramfs-init initramfs/init
for module in virtio_pci virtio_blk ext4 9p 9pnet_virtio virtio_console; do
	modprobe -d $guest/kernel -S "$release-arm64" --show-depends $module
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' > modules
while read -r path; do
	cp "$path" initramfs/modules/
	echo "${path##*/}" >> initramfs/modules/order
done < modules
(cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) > boot/initramfs.gz
rm -rf initramfs modules
cp "kernel/boot/vmlinuz-$release-arm64" boot/Image
ln -sfn ../../boot/root.ext4 boot/root.ext4
ln -sfn ../build-root build-root
echo "stock=$release" > kernels

# Its device tree names the interrupts as vendors' trees do.
sed 's/"job", "mmu", "gpu"/"JOB", "MMU", "GPU"/' /guest/gpu.dtso > boot/gpu.dtso
dtc -q -@ -I dts -O dtb -o boot/gpu.dtbo boot/gpu.dtso
for cpu in $CPUS; do
	qemu-system-aarch64 -M "$MACHINE,dumpdtb=boot/$cpu.plain" -cpu "$cpu" -smp "$SMP" -m "$MEMORY" \
		-object "memory-backend-memfd,id=ram0,size=${MEMORY}M,share=on" -display none
	fdtoverlay -i "boot/$cpu.plain" -o "boot/$cpu.dtb" boot/gpu.dtbo
	rm "boot/$cpu.plain"
done

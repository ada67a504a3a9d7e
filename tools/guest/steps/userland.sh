#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's userland: Debian trixie for arm64, unpacked only (no foreign binary runs on the host), with Mesa's
# OpenCL (rusticl), Arm Compute Library, and the development files that make it the cross compilers' sysroot.
set -euo pipefail
cd "$GUEST"

rm -rf --one-file-system userland.new
mmdebstrap --variant=extract --architectures=arm64 --mode=root --aptopt="$GUEST/apt.conf" \
	--include='busybox-static,libc6,libc-bin,bash,coreutils,util-linux,mount,kmod,procps,grep,sed,gawk,findutils,pciutils' \
	--include='mesa-opencl-icd,ocl-icd-libopencl1,clinfo,python3,python3-numpy,strace,gdb' \
	--include='libgl1-mesa-dri,libegl1,libegl-mesa0,libgles2,libgbm1,libdrm2' \
	--include='ocl-icd-opencl-dev,opencl-headers,opencl-clhpp-headers,libarm-compute-dev,libgbm-dev,libegl-dev' \
	--include='libgles-dev,libdrm-dev,libc6-dev,libgcc-14-dev,libstdc++-14-dev' \
	trixie userland.new sources.list

# What maintainer scripts would have done.
root=userland.new
printf 'root:x:0:0:root:/root:/bin/bash\n' > $root/etc/passwd
printf 'root:x:0:\n' > $root/etc/group
printf 'guest\n' > $root/etc/hostname
ln -sf bash $root/usr/bin/sh
ln -sf gawk $root/usr/bin/awk
[ -e $root/usr/lib/ld-linux-aarch64.so.1 ] ||
	ln -s aarch64-linux-gnu/ld-linux-aarch64.so.1 $root/usr/lib/ld-linux-aarch64.so.1
# numpy wants BLAS by its alternatives' names.
for name in libblas.so.3 liblapack.so.3; do
	real=$(cd $root && find usr/lib/aarch64-linux-gnu -path "*/$name" | head -1)
	[ -z "$real" ] || ln -sf "/$real" "$root/usr/lib/aarch64-linux-gnu/$name"
done

rm -rf --one-file-system userland
mv userland.new userland

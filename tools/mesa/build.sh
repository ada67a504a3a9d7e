#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Mesa's OpenCL with panfrost for this machine, which Debian builds for Arm only: from Debian's source, with Debian's compilers, in a
# Debian root of its own. The product is $OUT: the library, all that it needs, and the C library that it was built against.
#
# Variables: OUT, a folder that exists; SOURCES, a folder with sources.list and apt.conf; JOBS, how many at once.
set -euo pipefail
suite=trixie
root=$OUT/root

# What only the build needs, and the driver's compiler: Clang, libclc and the SPIR-V translator in the versions of the guest.
packages=gcc,g++,dpkg-dev,meson,ninja-build,pkgconf,bison,flex,python3-mako,python3-yaml,python3-packaging,python3-ply
packages+=,rustc,rustfmt,bindgen,libdrm-dev,libelf-dev,zlib1g-dev,libzstd-dev,libexpat1-dev,spirv-tools
packages+=,llvm-19-dev,libclang-19-dev,libclang-cpp19-dev,libclc-19-dev,libclc-19,libllvmspirvlib-19-dev

grep " $suite main$" "$SOURCES/sources.list" | tee "$OUT/binaries.list" | sed 's/^deb /deb-src /' > "$OUT/sources.list"
cat "$OUT/binaries.list" >> "$OUT/sources.list"
rm -rf --one-file-system "$root"
mmdebstrap --variant=apt --architectures=amd64 --mode=root --aptopt="$SOURCES/apt.conf" --include="$packages" \
	"$suite" "$root" "$OUT/sources.list"
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/root LC_ALL=C.UTF-8 "$@"; }

mkdir "$root/build"
in_root sh -c 'cd /build && apt-get update -q && apt-get source -q mesa && mv mesa-*/ mesa'
# Only OpenCL on panfrost. An rpath, not a runpath: what the library's libraries need is found in the same way.
in_root env LDFLAGS='-Wl,--disable-new-dtags,-rpath,$ORIGIN' meson setup /build/out /build/mesa \
	--prefix=/usr --libdir=lib -Dbuildtype=release -Db_ndebug=true \
	-Dgallium-drivers=panfrost -Dgallium-rusticl=true -Dvulkan-drivers= -Dvideo-codecs= -Dtools= -Dbuild-tests=false \
	-Dplatforms= -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dopengl=false -Dgles1=disabled -Dgles2=disabled -Dglvnd=disabled \
	-Dllvm=enabled -Dshared-llvm=enabled -Dstatic-libclc=all -Dgallium-va=disabled -Dgallium-vdpau=disabled \
	-Dvalgrind=disabled -Dlibunwind=disabled -Dlmsensors=disabled -Dzstd=enabled
in_root ninja -C /build/out -j "$JOBS" src/gallium/targets/rusticl/libRusticlOpenCL.so.1.0.0

rm -rf --one-file-system "$OUT/lib" "$OUT/libc"
mkdir "$OUT/lib" "$OUT/libc"
library=/build/out/src/gallium/targets/rusticl/libRusticlOpenCL.so.1.0.0
strip --strip-unneeded -o "$OUT/lib/libRusticlOpenCL.so.1" "$root$library"
# The C library and the compiler's go apart: a machine that has newer ones uses those.
needed() { in_root ldd "$library" | awk '$3 ~ "^/" { print $3 }'; }
{
	in_root dpkg -L libc6 | grep -E '^/usr/lib/x86_64-linux-gnu/[^/]*\.so(\.[0-9]+)*$'
	needed | grep -E '/(libstdc\+\+|libgcc_s)\.so'
} | while read -r file; do cp -L "$root$file" "$OUT/libc/"; done
needed | while read -r file; do
	[ -e "$OUT/libc/${file##*/}" ] || cp -L "$root$file" "$OUT/lib/"
done
in_root getconf GNU_LIBC_VERSION | cut -d ' ' -f 2 > "$OUT/libc/version"
# Clang looks for its headers beside itself.
headers=lib/clang/19/include
mkdir -p "$OUT/$headers"
cp "$root/usr/lib/llvm-19/$headers"/opencl-c{,-base}.h "$OUT/$headers/"
sed -n 's/^Version: //p' "$root"/build/mesa_*.dsc | head -1 > "$OUT/version"
rm -rf --one-file-system "$root" "$OUT/sources.list" "$OUT/binaries.list"

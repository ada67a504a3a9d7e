#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The build root: Debian trixie for amd64 with the cross compilers, the kernel-module tools, Rust for aarch64 and
# QEMU. QEMU (10.1 is the first with vfio-user) and Rust come from the backports suite.
set -euo pipefail
cd "$GUEST"

rm -rf --one-file-system build-root.new
backports='qemu-system-arm rustc cargo rust-src libstd-rust-dev:arm64'
mmdebstrap --variant=apt --architectures=amd64,arm64 --mode=root --aptopt="$GUEST/apt.conf" \
	--include='ca-certificates,device-tree-compiler,crossbuild-essential-arm64,gcc-12-aarch64-linux-gnu' \
	--include='bc,bison,flex,libssl-dev,libelf-dev,kmod,cpio,xz-utils,zstd,pahole,e2fsprogs,binutils,make,patch' \
	--include='python3,python3-numpy,bzip2,coccinelle,sparse' \
	--customize-hook='chroot "$1" apt-get update' \
	--customize-hook="chroot \"\$1\" apt-get install -y --no-install-recommends -t trixie-backports $backports" \
	trixie build-root.new sources.list
cp /etc/resolv.conf build-root.new/etc/resolv.conf

rm -rf --one-file-system build-root
mv build-root.new build-root
./in-root apt-get update
./in-root aarch64-linux-gnu-gcc --version | head -1
./in-root rustc --version
./in-root qemu-system-aarch64 --version | head -1

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The build root: Debian trixie for amd64 with the cross compilers, the kernel-module tools, Rust for aarch64 and
# QEMU. QEMU (10.1 is the first with vfio-user) and Rust come from the backports suite.
set -euo pipefail
cd "$GUEST"

rm -rf --one-file-system build-root.new
# The compiler and the library for aarch64 must be of one version. For some hours after an upload the suite has the new
# one for one machine only; then the older is taken, whose packages a mirror still keeps.
cat > compiler.sh <<'COMPILER'
set -eu
candidate() {
	apt-cache policy -t trixie-backports "$1" | sed -n 's/^  Candidate: //p'
}
set -- rustc cargo rust-src libstd-rust-dev
compiler=$(candidate rustc)
library=$(candidate libstd-rust-dev:arm64)
if [ "$compiler" != "$library" ]; then
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Codename: trixie-backports' | head -n 1)
	for package; do
		case $package in rust-src) machine=all ;; *) machine=amd64 ;; esac
		shift
		set -- "$@" "/tmp/$package.deb"
		/usr/lib/apt/apt-helper download-file "${mirror%/}/pool/main/r/rustc/${package}_${library}_$machine.deb" "/tmp/$package.deb" || {
			echo "rustc is $compiler and its library for arm64 is $library, and the mirror has no older rustc: try again in some hours" >&2
			exit 1
		}
	done
fi
apt-get install -y --no-install-recommends -t trixie-backports qemu-system-arm "$@" libstd-rust-dev:arm64
rm -f /tmp/*.deb
COMPILER
mmdebstrap --variant=apt --architectures=amd64,arm64 --mode=root --aptopt="$GUEST/apt.conf" \
	--include='ca-certificates,device-tree-compiler,crossbuild-essential-arm64,gcc-12-aarch64-linux-gnu' \
	--include='bc,bison,flex,libssl-dev,libelf-dev,kmod,cpio,xz-utils,zstd,pahole,e2fsprogs,binutils,make,patch' \
	--include='python3,python3-numpy,bzip2,coccinelle,sparse' \
	--customize-hook='chroot "$1" apt-get update' \
	--customize-hook="cp '$GUEST/compiler.sh' \"\$1/tmp/\" && chroot \"\$1\" sh /tmp/compiler.sh" \
	trixie build-root.new sources.list
rm -f compiler.sh
cp /etc/resolv.conf build-root.new/etc/resolv.conf

rm -rf --one-file-system build-root
mv build-root.new build-root
./in-root apt-get update
./in-root aarch64-linux-gnu-gcc --version | head -1
./in-root rustc --version
./in-root qemu-system-aarch64 --version | head -1

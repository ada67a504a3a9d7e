#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# optee/ in the guest folder: sources of TF-A and OP-TEE, and Debian's U-Boot, TEE client and xtest, all unpacked. They
# come through the package manager; OP-TEE's source is sid's, as the older suites' archive is no longer complete.
set -euo pipefail
if [ "${1:-}" != inside ]; then
	cd "$GUEST"
	mkdir -p optee/apt/{lists/partial,cache/archives/partial,parts} optee/debs
	sed -n 's/ trixie main$/ sid main/p' sources.list > optee/apt/sid
	{
		cat optee/apt/sid
		sed 's/^deb /deb-src /' optee/apt/sid
		sed -n '/ trixie main$/p' sources.list
		sed -n '/ trixie main$/s/^deb /deb-src /p' sources.list
	} > optee/apt/sources.list
	cat > optee/apt/apt.conf <<-E
		Dir::Etc::sourcelist "/guest/optee/apt/sources.list";
		Dir::Etc::sourceparts "/guest/optee/apt/parts";
		Dir::State::lists "/guest/optee/apt/lists";
		Dir::Cache "/guest/optee/apt/cache";
		Acquire::Languages "none";
		APT::Architectures { "amd64"; "arm64"; };
		APT::Sandbox::User "root";
	E
	exec ./in-root bash /guest/steps/optee.sh inside
fi

cd /guest/optee
apt-get -qq update
apt-get -qq -y --no-install-recommends install python3-pyelftools python3-cryptography dpkg-dev
apt=(-c /guest/optee/apt/apt.conf)
apt-get "${apt[@]}" -qq update
rm -rf --one-file-system debs optee-os tf-a u-boot client
mkdir debs client
(
	cd debs
	apt-get "${apt[@]}" -qq source --download-only optee-os/sid arm-trusted-firmware/trixie
	apt-get "${apt[@]}" -qq download u-boot-qemu/trixie optee-test-qemu:arm64/sid tee-supplicant:arm64/sid \
		libteec2:arm64/sid libckteec0t64:arm64/sid optee-client-dev:arm64/sid libssl3t64:arm64/trixie
	dpkg-source -x optee-os_*.dsc ../optee-os
	dpkg-source -x arm-trusted-firmware_*.dsc ../tf-a
	dpkg-deb -x u-boot-qemu_*.deb ../u-boot
	for deb in *arm64.deb; do dpkg-deb -x "$deb" ../client; done
)
rm -rf --one-file-system debs

# The kernel's TEE driver and what it depends on, in load order.
release=$(sed -n 's/^stock=//p' ../kernels)-arm64
mkdir modules.new
depmod -b /guest/kernel/usr "$release" 2> /dev/null || depmod -b /guest/kernel "$release"
modprobe -d /guest/kernel/usr -S "$release" --show-depends optee | awk '$1 == "insmod" { print $2 }' > modules.new/paths
while read -r path; do
	name=${path##*/}
	xz -dc "$path" > "modules.new/${name%.xz}"
	echo "${name%.xz}" >> modules.new/order
done < modules.new/paths
rm -rf modules && mv modules.new modules

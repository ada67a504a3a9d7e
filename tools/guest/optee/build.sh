#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The secure world with the replayer in it: OP-TEE with our pseudo-TA, TF-A with OP-TEE and U-Boot, our trusted application,
# and the client. Runs inside the build root. Arguments: the repository, the folder for what is ours, libgpureplay_bare.a,
# the folder with libgpureplay_optee_trust.a, the folder with the key's header.
set -euo pipefail
repository=$1 out=$2 replayer=$3 trust=$4 key=$5
ours=$repository/replayer/devices/optee
cross=aarch64-linux-gnu-
cd /guest/optee

# OP-TEE's makefiles take sources of a pseudo-TA from their own tree only.
pta=optee-os/core/pta
for file in "$ours"/pta/*.[ch] "$repository/replayer/devices/bare/include/gpureplay_bare.h"; do
	cmp -s "$file" "$pta/${file##*/}" || cp "$file" "$pta/"
done
grep -q gpureplay_pta "$pta/sub.mk" ||
	printf '\nsrcs-y += gpureplay_pta.c\ncflags-gpureplay_pta.c-y += -Icore/pta\n' >> "$pta/sub.mk"
# The linker does not see that an archive changed.
cmp -s "$replayer" replayer.a || { cp "$replayer" replayer.a; rm -f optee-os/out/core/tee.elf; }

# Room for a recording in the core's heap: 4 of the 15 MiB of secure memory. The log's level is 1: errors.
make -s -j2 -C optee-os CROSS_COMPILE=$cross CROSS_COMPILE64=$cross PLATFORM=vexpress-qemu_armv8a CFG_ARM_GICV3=y \
	CFG_USER_TA_TARGETS=ta_arm64 CFG_TEE_CORE_LOG_LEVEL=1 CFG_TEE_RAM_VA_SIZE=0x00800000 CFG_CORE_HEAP_SIZE=0x00400000 \
	CFG_ENABLE_EMBEDDED_TESTS=y DEBUG=0 O=out LDADD=/guest/optee/replayer.a all
binaries=/guest/optee/optee-os/out/core
make -s -j2 -C tf-a CROSS_COMPILE=$cross PLAT=qemu SPD=opteed QEMU_USE_GIC_DRIVER=QEMU_GICV3 DEBUG=0 \
	BL32=$binaries/tee-header_v2.bin BL32_EXTRA1=$binaries/tee-pager_v2.bin BL32_EXTRA2=$binaries/tee-pageable_v2.bin \
	BL33=/guest/optee/u-boot/usr/lib/u-boot/qemu_arm64/u-boot.bin all fip

mkdir -p "$out"
cp tf-a/build/qemu/release/qemu_fw.bios "$out/firmware.bin"
make -s -C "$ours/ta" TA_DEV_KIT_DIR=/guest/optee/optee-os/out/export-ta_arm64 CROSS_COMPILE=$cross TRUST_LIBRARY="$trust" \
	KEY="$key" O="$out/ta"

payload=$out/payload
rm -rf "$payload"
mkdir -p "$payload"
cp -a client/usr/. "$payload/"
cp -a modules "$payload/"
cp "$out"/ta/*.ta "$payload/lib/optee_armtz/"
for program in "$ours"/client/*.c; do
	name=$(basename "$program" .c)
	${cross}gcc -std=gnu11 -O2 -Wall -Wextra -Werror -Iclient/usr/include -I"$ours/pta" -o "$payload/bin/$name" "$program" \
		-Lclient/usr/lib/aarch64-linux-gnu -lteec -Wl,-rpath-link,client/usr/lib/aarch64-linux-gnu
done

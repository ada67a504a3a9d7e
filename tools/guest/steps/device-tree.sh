#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# boot/CPU.dtb for each CPU type: QEMU's own device tree of the machine, with the GPU node of gpu.dtso.
# The tree depends on the CPU type and count, so the options here equal those of a run (MACHINE, CPUS, SMP, MEMORY).
set -euo pipefail
if [ "${1:-}" != inside ]; then
	exec "$GUEST/in-root" env MACHINE="$MACHINE" CPUS="$CPUS" SMP="$SMP" MEMORY="$MEMORY" \
		bash "/guest/steps/device-tree.sh" inside
fi

cd /guest/boot
dtc -q -@ -I dts -O dtb -o gpu.dtbo /guest/gpu.dtso
for cpu in $CPUS; do
	qemu-system-aarch64 -M "$MACHINE,dumpdtb=$cpu.plain" -cpu "$cpu" -smp "$SMP" -m "$MEMORY" \
		-object "memory-backend-memfd,id=ram0,size=${MEMORY}M,share=on" -display none
	fdtoverlay -i "$cpu.plain" -o "$cpu.dtb" gpu.dtbo
	rm "$cpu.plain"
	dtc -q -I dtb -O dts "$cpu.dtb" | grep -A 8 'gpu@10000000'
done
rm gpu.dtbo

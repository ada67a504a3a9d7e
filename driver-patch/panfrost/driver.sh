# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What `driver-patch/build` must know of the kernel's panfrost driver.

# Where it is inside a kernel source tree, and a file that every release has.
driver_path=drivers/gpu/drm/panfrost
driver_mark=panfrost_job.c
driver_modules=(panfrost)

# Hooks: name, what counts one in the patched source, least and most places.
driver_hooks=(
	"attach|gpureplay_attach\(|1|1"
	"job timeout|gpureplay_job_timeout\(|1|1"
	"submit|gpureplay_submit_begin\(|1|1"
	"job's lists|gpureplay_prepare\(|1|1"
	"job wait|gpureplay_wait\(|1|1"
	"job memory|gpureplay_submit_memory\(|1|1"
	"job interrupt|GPUREPLAY_LINE_JOB|1|1"
	"mmu interrupt|GPUREPLAY_LINE_MMU|1|1"
	"gpu interrupt|GPUREPLAY_LINE_GPU|1|1"
	"page tables|gpureplay_tables_lock\(|4|9"
	"map|gpureplay_map\(|2|2"
	"unmap|gpureplay_unmap\(|1|1"
	"app's mappings|&gpureplay_vm_operations|1|1"
	"wrapped mappings|gpureplay_wrap_mappings\(|1|1"
	"buffers|gpureplay_(un)?track\(|3|3"
	"job buffers|gpureplay_job_buffers\(|1|1"
)

# What would escape the hooks if it were still there.
driver_leftovers=(
	"interrupt handlers|(devm_)?request_(threaded_)?irq\("
	"raw register accesses|(__raw_(read|write)[bwlq]|(read|write)[bw]|memcpy_(to|from)io|memset_io|io(read|write)(8|16|64))\("
)

# The driver's release, for the report.
driver_release() {
	sed -n 's/^[[:space:]]*\.\(major\|minor\)[[:space:]]*= \([0-9]*\),.*/\2/p' \
		"$1/panfrost_drv.c" | paste -sd. -
}

# Say why a source cannot be used; print nothing if it can.
driver_refuse() {
	if ! grep -q 'panfrost_job_irq_handler_thread\|panfrost_jm_irq_handler_thread' "$1/panfrost_job.c"; then
		echo "its job interrupt has no thread: panfrost is supported from Linux 5.17 on"
	fi
}

# Together with the recorder, by the driver's own list of objects.
driver_build() {
	echo "obj-m := recorder/ panfrost/" >"$work/Kbuild"
	cat >"$work/panfrost/Kbuild" <<END
include \$(src)/Makefile
ccflags-y += -I$work/recorder -include $work/recorder/gpureplay_mmio.h
END
	make "${common[@]}" "M=$work" CONFIG_DRM_PANFROST=m modules
}

# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What `driver-patch/build` must know of Arm's driver ("Bifrost kernel driver").

# Where it is inside a kernel source tree, and a file that every release has.
driver_path=drivers/gpu/arm/midgard
driver_mark=mali_kbase_core_linux.c
driver_modules=(mali_kbase)

# Only files with one of these can take a hook (the driver has a hundred).
driver_anchors='kbase_tag|->reg = ioremap|Probed as|kbase_api_job_submit|kbase_gpu_mmap|kbase_gpu_munmap'

# Hooks: name, what counts one in the patched source, least and most places.
driver_hooks=(
	"attach|gpureplay_attach\(|1|1"
	"one job at a time|gpureplay_pin_byte\(|1|1"
	"power|gpureplay_pin_power\(|1|1"
	"job timeout|gpureplay_job_ticks\(|8|8"
	"job wait|gpureplay_wait_zero\(|1|1"
	"interrupts|gpureplay_request_unmanaged_irq\(|2|4"
	"interrupts freed|gpureplay_free_unmanaged_irq\(|3|5"
	"map|gpureplay_map\(|1|1"
	"unmap|gpureplay_unmap\(|1|1"
	"register accesses|(^|[^_[:alnum:]])((read|write)[lq](_relaxed)?|io(read|write)32)\(|2|999"
)

# What would escape the hooks if it were still there.
driver_leftovers=(
	"interrupt handlers|(devm_)?request_(threaded_)?irq\("
	"raw register accesses|(__raw_(read|write)[bwlq]|(read|write)[bw](_relaxed)?|io(read|write)(8|16|64|16be|32be|8_rep|16_rep|32_rep)|mem(cpy_(from|to)|set_)io)\("
)

# The driver's release, such as r25p0.
driver_release() {
	{ cat "$1/Kbuild" "$1/Makefile" 2>/dev/null || true; } |
		sed -n 's/.*MALI_RELEASE_NAME *?*:*= *[^r]*\(r[0-9]*p[0-9]*\).*/\1/p' | head -1
}

# Say why a source cannot be used; print nothing if it can.
driver_refuse() {
	local release number
	release=$(driver_release "$1")
	number=${release#r}
	number=${number%%p*}
	if [ -z "$release" ]; then
		echo "no MALI_RELEASE_NAME in its Kbuild: which release is it?"
	elif [ "$number" -lt 9 ] || [ "$number" -gt 44 ]; then
		echo "release $release: r9p0 to r44p1 are supported (from r45 on registers go through another layer, and boards with such releases have GPUs with a command-stream front end, which the recorder does not follow)"
	elif [ ! -f "$1/backend/gpu/mali_kbase_jm_hw.c" ]; then
		echo "it has no job-manager backend (command-stream front end only)"
	elif ! $patch_only && [ "$platform" != none ] && [ ! -d "$1/platform/$platform" ]; then
		echo "it has no folder platform/$platform (--platform)"
	fi
}

# Headers that come with the driver, four folders up in Arm's packages.
driver_copy() {
	code=$work/kbase/$driver_path
	mkdir -p "$code" "$work/kbase/include"
	cp -a "$1/." "$code/"
	if [ "$platform" = none ]; then cp -r "$here/kbase/platform" "$code/platform/none"; fi
	if [ -f "$1/../../../../include/linux/protected_mode_switcher.h" ]; then
		cp -a "$1/../../../../include/." "$work/kbase/include/"
	fi
	if [ -d "$1/../../../base" ]; then
		cp -a "$1/../../../base" "$work/kbase/drivers/"
	fi
}

# Its own Makefile knows its options. Without devfreq the clock stays fixed,
# and without tests, arbitration and tracing nothing else touches the GPU.
driver_build() {
	local compat="-include $here/kbase/gpureplay_kbase_compat.h"
	# Releases that know nothing of Linux 5.8 need today's names for what it renamed.
	grep -rqE --include='*.[ch]' 'mmap_(read_)?lock' "$code" || compat="-DGPUREPLAY_KBASE_BEFORE_5_8 $compat"
	if grep -qw close_fd "$kernel/Module.symvers"; then compat="-DGPUREPLAY_KERNEL_HAS_CLOSE_FD $compat"; fi
	local options=(CONFIG_MALI_MIDGARD=m CONFIG_MALI_PLATFORM_NAME=$platform CONFIG_MALI_DEVFREQ=n
		CONFIG_MALI_GATOR_SUPPORT=n CONFIG_MALI_KUTF=n CONFIG_MALI_REAL_HW=y)
	make "${common[@]}" "M=$work/recorder" modules || return
	make -C "$code" "KDIR=$kernel" "${settings[@]}" "${options[@]}" \
		"EXTRA_SYMBOLS=$work/recorder/Module.symvers" \
		"SCONS_CONFIGS=${options[*]}" \
		"SCONS_CFLAGS=-DCONFIG_MALI_MIDGARD=1 -DCONFIG_MALI_PLATFORM_NAME=$platform" \
		"KCFLAGS=$compat -I$work/recorder -I$here/kbase -include $work/recorder/gpureplay_mmio.h -include $here/kbase/gpureplay_kbase.h -Wno-error" \
		all
}

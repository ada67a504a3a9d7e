# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# What `driver-patch/build` must know of the carrier for a binary-only kbase: it needs no driver source.

driver_sourceless=true
driver_hooks=()
driver_leftovers=()
driver_modules=(gpureplay_kprobes)

driver_build() {
	make "${common[@]}" "M=$work/recorder" modules || return
	cp "$here"/kprobes/*.c "$here/kprobes/Kbuild" "$code/"
	local checks=()
	if $check; then checks=(C=2 CHECK=sparse); fi
	make "${common[@]}" "${checks[@]}" "M=$code" "KBUILD_EXTRA_SYMBOLS=$work/recorder/Module.symvers" \
		"KCFLAGS=-I$work/recorder" modules
}

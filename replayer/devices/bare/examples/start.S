// SPDX-License-Identifier: MIT OR Apache-2.0
// Where the examples start on QEMU's virt machine: a stack, zeroed variables, and the .npy file that they replay with.
.section .text.start, "ax"
.global _start
_start:
	adrp	x0, __stack_top
	add	sp, x0, :lo12:__stack_top
	adrp	x0, __bss_start
	add	x0, x0, :lo12:__bss_start
	adrp	x1, __bss_end
	add	x1, x1, :lo12:__bss_end
1:	cmp	x0, x1
	b.hs	2f
	str	xzr, [x0], #8
	b	1b
2:	bl	main
	mov	x0, #0x0008		// PSCI SYSTEM_OFF
	movk	x0, #0x8400, lsl #16
	hvc	#0
	b	.

.section .rodata.input, "a"
.global input_npy
.balign 8
input_npy:
	.incbin "input.npy"

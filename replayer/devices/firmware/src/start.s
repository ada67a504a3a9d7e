// SPDX-License-Identifier: MIT OR Apache-2.0
// Entry at EL1, exception vectors. The stack is painted so that its use can be reported.
.section .text.start, "ax"
.macro refuse
	.balign 0x80
	mrs	x0, esr_el1
	mrs	x1, elr_el1
	mrs	x2, far_el1
	b	firmware_exception
.endm

// Exceptions of lower levels, the second half of a vector table, cannot happen: there are none.
.balign 0x800
vectors:
	refuse			// EL1 with SP0: never used
	refuse
	refuse
	refuse
	refuse			// EL1 with its own stack: synchronous
	.balign 0x80		// interrupt
	stp	x0, x1, [sp, #-176]!
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	stp	x16, x17, [sp, #128]
	stp	x18, x29, [sp, #144]
	str	x30, [sp, #160]
	bl	firmware_interrupt
	ldr	x30, [sp, #160]
	ldp	x18, x29, [sp, #144]
	ldp	x16, x17, [sp, #128]
	ldp	x14, x15, [sp, #112]
	ldp	x12, x13, [sp, #96]
	ldp	x10, x11, [sp, #80]
	ldp	x8, x9, [sp, #64]
	ldp	x6, x7, [sp, #48]
	ldp	x4, x5, [sp, #32]
	ldp	x2, x3, [sp, #16]
	ldp	x0, x1, [sp], #176
	eret
	refuse
	refuse

.global _start
_start:
	mrs	x19, cntvct_el0
	adrp	x1, __stack_bottom
	add	x1, x1, :lo12:__stack_bottom
	adrp	x2, __stack_top
	add	x2, x2, :lo12:__stack_top
	mov	sp, x2
	ldr	x3, =0x5354414b5354414b
1:	str	x3, [x1], #8
	cmp	x1, x2
	b.lo	1b
	adrp	x1, __bss_start
	add	x1, x1, :lo12:__bss_start
	adrp	x2, __bss_end
	add	x2, x2, :lo12:__bss_end
2:	cmp	x1, x2
	b.hs	3f
	str	xzr, [x1], #8
	b	2b
3:	adrp	x1, vectors
	add	x1, x1, :lo12:vectors
	msr	vbar_el1, x1
	isb
	mov	x0, x19
	bl	firmware_main
4:	wfi
	b	4b

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The registers of a job-manager Mali GPU that the recorder understands, in
 * bytes from the start of the register range (Midgard and Bifrost, and Valhall
 * before the command-stream front end). It needs no more to follow what any
 * driver does: resets, address spaces, doorbells, completions.
 */
#ifndef _GPUREPLAY_MALI_H
#define _GPUREPLAY_MALI_H

#define MALI_REGISTERS		0x4000	/* bytes that are followed */

#define GPU_ID			0x000
#define GPU_MMU_FEATURES	0x014	/* [7:0] bits of a virtual address */
#define GPU_AFBC_FEATURES	0x04c
#define GPU_THREAD_MAX_THREADS	0x0a0	/* four registers up to THREAD_FEATURES */
#define GPU_SHADER_PRESENT	0x100
#define GPU_TILER_PRESENT	0x110
#define GPU_L2_PRESENT		0x120
#define GPU_COHERENCY_FEATURES	0x300
#define GPU_THREAD_TLS_ALLOC	0x310
#define GPU_STACK_PRESENT	0xe00

#define GPU_COMMAND		0x030
#define GPU_COMMAND_SOFT_RESET	1
#define GPU_COMMAND_HARD_RESET	2

#define JOB_INT_RAWSTAT		0x1000
#define JOB_INT_CLEAR		0x1004
#define JOB_INT_STAT		0x100c
#define JOB_INT_DONE(slot)	BIT(slot)
#define JOB_INT_FAILED(slot)	BIT(16 + (slot))
#define JOB_INT_SLOT(slot)	(0x10001U << (slot))	/* either */

#define JOB_SLOTS		16
#define JOB_SLOT(slot)		(0x1800 + 0x80 * (slot))
#define JOB_SLOTS_END		JOB_SLOT(JOB_SLOTS)
#define JS_STATUS		0x24
#define JS_HEAD_NEXT		0x40
#define JS_CONFIG_NEXT		0x58
#define JS_CONFIG_AS		0xf
#define JS_COMMAND_NEXT		0x60
#define JS_COMMAND_START	1

#define ADDRESS_SPACES		16
#define ADDRESS_SPACE(as)	(0x2400 + 0x40 * (as))
#define ADDRESS_SPACES_END	ADDRESS_SPACE(ADDRESS_SPACES)
#define AS_TRANSTAB		0x00
#define AS_TRANSCFG		0x30

/* TRANSTAB when TRANSCFG leaves the mode to it (legacy): bits 1 and 0. */
#define TRANSTAB_MODE		0x3
#define TRANSTAB_MODE_TABLE	3

/* TRANSCFG */
#define TRANSCFG_MODE		0xf
#define TRANSCFG_MODE_LEGACY	0
#define TRANSCFG_MODE_UNMAPPED	1
#define TRANSCFG_MODE_AARCH64_4K	6
#define TRANSCFG_INA_BITS(cfg)	(((cfg) >> 6) & 0x1f)	/* 55 - bits of a VA, 0 means 48 */

#endif /* _GPUREPLAY_MALI_H */

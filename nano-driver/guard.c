// SPDX-License-Identifier: GPL-2.0
/* Guarded mode: the registers that user space may read and write. */
#include <linux/bits.h>
#include <linux/kernel.h>

#include "nano.h"

struct nano_rule {
	u32 first;
	u32 last;
	u32 mask;	/* bits that may be set */
};

/*
 * Everything else is refused: page-table roots, performance counter dumps, coherency (the kernel's
 * own, from the device tree), unknown registers.
 */
static const struct nano_rule nano_rules[] = {
	{ 0x0024, 0x0028, ~0u },	/* GPU_INT_CLEAR, GPU_INT_MASK */
	{ 0x0180, 0x01a4, ~0u },	/* SHADER, TILER, L2 PWRON */
	{ 0x01c0, 0x01e4, ~0u },	/* SHADER, TILER, L2 PWROFF */
	{ 0x0e20, 0x0e34, ~0u },	/* STACK PWRON, PWROFF */
	{ 0x1004, 0x1008, ~0u },	/* JOB_INT_CLEAR, JOB_INT_MASK */
	{ 0x2004, 0x2008, ~0u },	/* MMU_INT_CLEAR, MMU_INT_MASK */
};

/* Flushes, chain flag, descriptor write-back, priority; not the address space, which is 0. */
#define JOB_CONFIG	GENMASK(23, 8)

static const struct nano_rule nano_slot_rules[] = {
	{ 0x40, 0x44, ~0u },		/* HEAD_NEXT */
	{ 0x50, 0x54, ~0u },		/* AFFINITY_NEXT */
	{ 0x58, 0x58, JOB_CONFIG },	/* CONFIG_NEXT */
	{ 0x60, 0x60, 0x1 },		/* COMMAND_NEXT: start */
	{ 0x70, 0x70, ~0u },		/* FLUSH_ID_NEXT */
};

/* Products: four for each version from 6, of which the low two bits of the product choose one. */
#define G71	BIT(0)
#define G72	BIT(1)
#define G51	BIT(4)
#define G76	BIT(5)
#define G52	BIT(6)
#define G31	BIT(7)
#define G57	(BIT(13) | BIT(15))

#define JM_CONFIG	0x0f00
#define SHADER_CONFIG	0x0f04
#define TILER_CONFIG	0x0f08
#define L2_MMU_CONFIG	0x0f0c

#define SNOOP_DISPARITY	BIT(23)			/* L2_MMU_CONFIG */
#define LIMITS		GENMASK(27, 24)		/* reads and writes on the bus */
#define WIDE_LIMITS	GENMASK(17, 12)		/* the same in three bits each */

/*
 * Bits that panfrost and kbase set; the verifier of recordings has the same
 * (allow.rs in mali/drive).
 */
static const struct {
	u32 offset;
	u32 products;
	u32 mask;
} nano_settings[] = {
	{ JM_CONFIG, G71, 0xc },			/* forced coherency features */
	{ JM_CONFIG, G76 | G52 | G57, GENMASK(21, 16) },	/* IDVS group size */
	{ SHADER_CONFIG, G76 | G52 | G31, BIT(17) },	/* hashing of thread storage */
	{ SHADER_CONFIG, G57, BIT(29) },		/* varyings */
	{ TILER_CONFIG, G71, 0x1 },			/* clock gate override */
	{ L2_MMU_CONFIG, G71 | G72 | G51, SNOOP_DISPARITY | LIMITS },
	{ L2_MMU_CONFIG, G76 | G52, SNOOP_DISPARITY | WIDE_LIMITS },
	{ L2_MMU_CONFIG, G31, SNOOP_DISPARITY | LIMITS | WIDE_LIMITS },
};

/* Reading has no effect, and what is read tells no physical address. */
static const struct {
	u32 first;
	u32 last;
} nano_readable[] = {
	{ 0x0000, 0x0020 },	/* identity, GPU_INT_RAWSTAT */
	{ 0x0028, 0x002c },	/* GPU_INT_MASK, GPU_INT_STAT */
	{ 0x0034, 0x003c },	/* GPU_STATUS, LATEST_FLUSH_ID, GPU_FAULT_STATUS */
	{ 0x004c, 0x004c },	/* AFBC_FEATURES */
	{ 0x0090, 0x0124 },	/* counters of cycles and time, identity */
	{ 0x0140, 0x0164 },	/* READY */
	{ 0x0200, 0x0224 },	/* PWRTRANS */
	{ 0x0240, 0x0264 },	/* PWRACTIVE */
	{ 0x0300, 0x0310 },	/* coherency, THREAD_TLS_ALLOC */
	{ 0x0e00, 0x0e14 },	/* STACK_PRESENT, STACK_READY */
	{ 0x0e40, 0x0e44 },	/* STACK_PWRTRANS */
	{ 0x0f00, 0x0f0c },	/* JM, SHADER, TILER, L2_MMU CONFIG */
	{ 0x1000, 0x1000 },	/* JOB_INT_RAWSTAT */
	{ 0x1008, 0x1010 },	/* JOB_INT_MASK, JOB_INT_STAT, JOB_INT_JS_STATE */
	{ 0x1800, 0x197c },	/* job slots: addresses are the GPU's own */
	{ 0x2000, 0x2000 },	/* MMU_INT_RAWSTAT */
	{ 0x2008, 0x200c },	/* MMU_INT_MASK, MMU_INT_STAT */
	{ 0x241c, 0x2428 },	/* AS0_FAULTSTATUS, AS0_FAULTADDRESS, AS0_STATUS */
};

static bool nano_rule_allows(const struct nano_rule *rule, size_t count, u32 offset, u32 value)
{
	for (; count--; rule++)
		if (offset >= rule->first && offset <= rule->last)
			return !(value & ~rule->mask);
	return false;
}

static bool nano_setting_allowed(u32 gpu_id, u32 offset, u32 value)
{
	u32 from_6 = (gpu_id >> 16) - 0x6000;
	u32 product = 0;
	size_t i;

	if (!(from_6 & 0xc00c))	/* version 6 to 9, product 0 to 3 */
		product = BIT((from_6 & 3) | (from_6 >> 10 & 0xc));
	for (i = 0; i < ARRAY_SIZE(nano_settings); i++)
		if (nano_settings[i].offset == offset && nano_settings[i].products & product)
			return !(value & ~nano_settings[i].mask);
	return !value;
}

bool nano_read_allowed(u32 offset)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nano_readable); i++)
		if (offset >= nano_readable[i].first && offset <= nano_readable[i].last)
			return true;
	return false;
}

bool nano_write_allowed(u32 gpu_id, u32 offset, u32 value)
{
	u32 in_slot = (offset - 0x1800) % 0x80;

	if (offset == GPU_COMMAND)	/* cycle counter, cache clean; a reset has its own ioctl */
		return value == 0 || (value >= 5 && value <= 8);
	if (offset >= JM_CONFIG && offset <= L2_MMU_CONFIG)
		return nano_setting_allowed(gpu_id, offset, value);
	if (offset < 0x1800 || offset >= 0x1980)
		return nano_rule_allows(nano_rules, ARRAY_SIZE(nano_rules), offset, value);
	if (in_slot == 0x20)		/* COMMAND: nothing, soft and hard stops; no start */
		return value <= 7 && value != 1;
	return nano_rule_allows(nano_slot_rules, ARRAY_SIZE(nano_slot_rules), in_slot, value);
}

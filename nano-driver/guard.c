// SPDX-License-Identifier: GPL-2.0
/* Guarded mode: the registers that user space may write. */
#include <linux/kernel.h>

#include "nano.h"

struct nano_rule {
	u32 first;
	u32 last;
	u32 mask;	/* bits that may be set */
};

/* Everything else is refused: page-table roots, performance counter dumps, unknown registers. */
static const struct nano_rule nano_rules[] = {
	{ 0x0024, 0x0028, ~0u },	/* GPU_INT_CLEAR, GPU_INT_MASK */
	{ 0x0180, 0x01a4, ~0u },	/* SHADER, TILER, L2 PWRON */
	{ 0x01c0, 0x01e4, ~0u },	/* SHADER, TILER, L2 PWROFF */
	{ 0x0304, 0x0304, 0x1f },	/* COHERENCY_ENABLE */
	{ 0x0e20, 0x0e34, ~0u },	/* STACK PWRON, PWROFF */
	{ 0x0f00, 0x0f0c, ~0u },	/* JM, SHADER, TILER, L2_MMU CONFIG */
	{ 0x1004, 0x1008, ~0u },	/* JOB_INT_CLEAR, JOB_INT_MASK */
	{ 0x2004, 0x2008, ~0u },	/* MMU_INT_CLEAR, MMU_INT_MASK */
};

static const struct nano_rule nano_slot_rules[] = {
	{ 0x20, 0x20, 0x7 },		/* COMMAND: stops */
	{ 0x40, 0x44, ~0u },		/* HEAD_NEXT */
	{ 0x50, 0x54, ~0u },		/* AFFINITY_NEXT */
	{ 0x58, 0x58, ~0xfu },		/* CONFIG_NEXT: address space 0 only */
	{ 0x60, 0x60, 0x1 },		/* COMMAND_NEXT: start */
	{ 0x70, 0x70, ~0u },		/* FLUSH_ID_NEXT */
};

static bool nano_rule_allows(const struct nano_rule *rule, size_t count, u32 offset, u32 value)
{
	for (; count--; rule++)
		if (offset >= rule->first && offset <= rule->last)
			return !(value & ~rule->mask);
	return false;
}

bool nano_write_allowed(u32 offset, u32 value)
{
	if (offset == GPU_COMMAND)	/* cycle counter, cache clean; a reset has its own ioctl */
		return value == 0 || (value >= 5 && value <= 8);
	if (offset >= 0x1800 && offset < 0x1980)
		return nano_rule_allows(nano_slot_rules, ARRAY_SIZE(nano_slot_rules),
					(offset - 0x1800) % 0x80, value);
	return nano_rule_allows(nano_rules, ARRAY_SIZE(nano_rules), offset, value);
}

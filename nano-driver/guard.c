// SPDX-License-Identifier: GPL-2.0
/* Guarded mode: the GPU's page tables (Mali LPAE) and the registers user space may write. */
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/slab.h>

#include "nano.h"

#define AS0_TRANSTAB		0x2400
#define AS0_MEMATTR		0x2408
#define AS0_LOCKADDR		0x2410
#define AS0_COMMAND		0x2418
#define AS0_STATUS		0x2428
#define AS_COMMAND_UPDATE	1
#define AS_COMMAND_LOCK		2
#define AS_COMMAND_UNLOCK	3
#define AS_COMMAND_FLUSH_MEM	5
#define AS_STATUS_BUSY		BIT(0)
#define AS_LOCK_EVERYTHING	0x3f	/* log2 of the locked range */
#define TRANSTAB_TABLE		(3 | BIT(2))	/* walk tables, read inner */
#define TRANSTAB_SHARE_OUTER	BIT(4)
#define MEMATTR_VALUE		0x888d88

#define ENTRY_LEAF		1ull
#define ENTRY_TABLE		3ull
#define ENTRY_READ		BIT_ULL(6)
#define ENTRY_WRITE		BIT_ULL(7)
#define ENTRY_SHARE_OUTER	(2ull << 8)
#define ENTRY_NO_EXECUTE	(3ull << 53)
#define ENTRIES			512

struct nano_table {
	struct list_head node;
	__le64 *entries;
	struct nano_table **children;	/* NULL in the last level */
	dma_addr_t bus;
};

static struct nano_table *nano_table_new(struct nano *nano, bool last)
{
	struct nano_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);

	if (!table)
		return NULL;
	table->entries = dma_alloc_coherent(nano->dev, PAGE_SIZE, &table->bus, GFP_KERNEL);
	if (!last)
		table->children = kcalloc(ENTRIES, sizeof(*table->children), GFP_KERNEL_ACCOUNT);
	if (!table->entries || (!last && !table->children)) {
		if (table->entries)
			dma_free_coherent(nano->dev, PAGE_SIZE, table->entries, table->bus);
		kfree(table->children);
		kfree(table);
		return NULL;
	}
	list_add(&table->node, &nano->tables);
	return table;
}

/* The last-level table of `va`, made on the way if `make`. */
static struct nano_table *nano_table_walk(struct nano *nano, u64 va, bool make)
{
	struct nano_table *table;
	int shift;

	if (!nano->root && make)
		nano->root = nano_table_new(nano, false);
	table = nano->root;
	for (shift = 39; table && shift > PAGE_SHIFT; shift -= 9) {
		unsigned int index = (va >> shift) & (ENTRIES - 1);
		struct nano_table *child = table->children[index];

		if (!child && make) {
			child = nano_table_new(nano, shift == 21);
			if (child) {
				table->children[index] = child;
				WRITE_ONCE(table->entries[index],
					   cpu_to_le64(child->bus | ENTRY_TABLE));
			}
		}
		table = child;
	}
	return table;
}

int nano_table_set(struct nano *nano, u64 va, dma_addr_t bus, u32 flags)
{
	struct nano_table *table = nano_table_walk(nano, va, true);
	u64 entry = bus | ENTRY_LEAF | ENTRY_SHARE_OUTER;

	if (!table)
		return -ENOMEM;
	if (flags & GPUREPLAY_NANO_READ)
		entry |= ENTRY_READ;
	if (flags & GPUREPLAY_NANO_WRITE)
		entry |= ENTRY_WRITE;
	if (!(flags & GPUREPLAY_NANO_EXECUTE))
		entry |= ENTRY_NO_EXECUTE;
	WRITE_ONCE(table->entries[(va >> PAGE_SHIFT) & (ENTRIES - 1)], cpu_to_le64(entry));
	return 0;
}

void nano_table_clear(struct nano *nano, u64 va, u64 pages)
{
	for (; pages--; va += PAGE_SIZE) {
		struct nano_table *table = nano_table_walk(nano, va, false);

		if (table)
			WRITE_ONCE(table->entries[(va >> PAGE_SHIFT) & (ENTRIES - 1)], 0);
	}
}

/* The caller has reset the GPU. */
void nano_table_free(struct nano *nano)
{
	struct nano_table *table, *next;

	list_for_each_entry_safe(table, next, &nano->tables, node) {
		dma_free_coherent(nano->dev, PAGE_SIZE, table->entries, table->bus);
		kfree(table->children);
		kfree(table);
	}
	INIT_LIST_HEAD(&nano->tables);
	nano->root = NULL;
}

static int nano_as_command(struct nano *nano, u32 command)
{
	u32 status;

	writel(command, nano->registers + AS0_COMMAND);
	return readl_poll_timeout(nano->registers + AS0_STATUS, status,
				  !(status & AS_STATUS_BUSY), 1, 100000);
}

/* Returns when the GPU sees the tables as they are now. */
int nano_flush(struct nano *nano)
{
	int ret;

	if (!nano->active)
		return 0;
	wmb();	/* entries are in memory before the GPU walks them again */
	writel(AS_LOCK_EVERYTHING, nano->registers + AS0_LOCKADDR);
	writel(0, nano->registers + AS0_LOCKADDR + 4);
	ret = nano_as_command(nano, AS_COMMAND_LOCK);
	if (!ret)
		ret = nano_as_command(nano, AS_COMMAND_FLUSH_MEM);
	return ret ?: nano_as_command(nano, AS_COMMAND_UNLOCK);
}

int nano_activate(struct nano *nano)
{
	u64 root;
	int ret;

	if (nano->mode != GPUREPLAY_NANO_GUARDED)
		return -EPERM;
	if (!nano->root)
		return -ENXIO;
	root = nano->root->bus | TRANSTAB_TABLE | (nano->coherent ? TRANSTAB_SHARE_OUTER : 0);
	wmb();	/* entries are in memory before the GPU can walk them */
	writel(lower_32_bits(root), nano->registers + AS0_TRANSTAB);
	writel(upper_32_bits(root), nano->registers + AS0_TRANSTAB + 4);
	writel(MEMATTR_VALUE, nano->registers + AS0_MEMATTR);
	writel(0, nano->registers + AS0_MEMATTR + 4);
	nano->active = true;
	ret = nano_as_command(nano, AS_COMMAND_UPDATE);
	return ret ?: nano_flush(nano);
}

struct nano_rule {
	u32 first;
	u32 last;
	u32 mask;	/* bits that may be set */
};

/* Everything else is refused: page-table roots, performance counter dumps, unknown registers. */
static const struct nano_rule nano_rules[] = {
	{ 0x0024, 0x0028, ~0u },	/* GPU_INT_CLEAR, GPU_INT_MASK */
	{ 0x0050, 0x0050, ~0u },	/* PWR_KEY */
	{ 0x0058, 0x0058, ~0u },	/* PWR_OVERRIDE1 */
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

// SPDX-License-Identifier: GPL-2.0
/*
 * The GPU's page tables, read as the GPU reads them: from the registers that
 * the driver wrote. Two formats, four levels of 512 entries each: Mali's own
 * (a leaf has type 1 on every level) and AArch64 with 4 KiB pages (a leaf has
 * type 3 on the last level and type 1 above it). Addresses in them are the
 * CPU's: both drivers refuse a GPU for which they are not.
 */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/pfn.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "mali.h"
#include "compat.h"
#include "recorder.h"

#define ENTRIES		512
#define LAST_LEVEL	3
#define ENTRY_ADDRESS	GENMASK_ULL(47, 12)
#define ENTRY_TYPE	3
#define ENTRY_BIT_6	BIT_ULL(6)	/* readable */
#define ENTRY_BIT_7	BIT_ULL(7)	/* LPAE: writable, AArch64: read-only */
#define ENTRY_NO_EXEC	BIT_ULL(54)

enum table_format {
	MALI_LPAE,
	AARCH64_4K,
};

struct walk {
	struct page_list *list;
	enum table_format format;
	unsigned int cached;	/* GPUREPLAY_REGION_CPU_CACHED or 0 */
	u64 va_end;
	u64 bad;		/* the entry that cannot be followed */
};

/*
 * The driver is never made to wait: it allocates memory while it changes its
 * tables, and reclaim may unmap more of them in the same task. The walk reads
 * them again if they have changed meanwhile.
 */
#define WALK_TRIES	20
#define WALK_WAIT_MS	1000

static atomic_t changing = ATOMIC_INIT(0);	/* tasks inside of a change */
static atomic_long_t changes = ATOMIC_LONG_INIT(0);	/* begun so far */
static DECLARE_WAIT_QUEUE_HEAD(no_change);

void gpureplay_tables_lock(void)
{
	atomic_inc(&changing);
	atomic_long_inc(&changes);
	smp_mb__after_atomic();	/* counted before an entry changes */
}
EXPORT_SYMBOL_GPL(gpureplay_tables_lock);

void gpureplay_tables_unlock(void)
{
	smp_mb__before_atomic();	/* entries have changed before this */
	if (atomic_dec_and_test(&changing))
		wake_up_all(&no_change);
}
EXPORT_SYMBOL_GPL(gpureplay_tables_unlock);

/* One table of each level: a walk at a time, see dump.c. */
static __le64 tables[LAST_LEVEL + 1][ENTRIES];

/**
 * walk_copy - copy a page that the GPU can see
 * @to: GPUREPLAY_PAGE_SIZE bytes
 * @phys: where it is
 * @synchronise: makes the CPU see what the GPU sees; may be %NULL
 *
 * The page may be freed at this moment, and then not be mapped in the kernel.
 *
 * Return: false when it cannot be read.
 */
bool walk_copy(void *to, phys_addr_t phys, void (*synchronise)(const void *page))
{
	const void *page;
	bool mapped;
	u8 first;

	if (!page_is_memory(phys))
		return false;
	page = kmap_local_page(pfn_to_page(PHYS_PFN(phys))) +
	       offset_in_page(phys);
	mapped = !copy_from_kernel_nofault(&first, page, 1);
	if (mapped && synchronise)
		synchronise(page);
	mapped = mapped &&
		 !copy_from_kernel_nofault(to, page, GPUREPLAY_PAGE_SIZE);
	kunmap_local(page);
	return mapped;
}

/* How often tables were changed so far. */
long walk_generation(void)
{
	return atomic_long_read(&changes);
}

/* Whether no table has changed since then, and none is being changed. */
bool walk_is_current(long generation)
{
	return !atomic_read(&changing) &&
	       atomic_long_read(&changes) == generation;
}

static unsigned int level_shift(unsigned int level)
{
	return 12 + 9 * (LAST_LEVEL - level);
}

static bool is_table(const struct walk *walk, u64 entry, unsigned int level)
{
	return level < LAST_LEVEL && (entry & ENTRY_TYPE) == 3;
}

static bool is_leaf(const struct walk *walk, u64 entry, unsigned int level)
{
	unsigned int leaf = 1;

	if (walk->format == AARCH64_4K && level == LAST_LEVEL)
		leaf = 3;
	return level && (entry & ENTRY_TYPE) == leaf;
}

static unsigned int access_flags(const struct walk *walk, u64 entry)
{
	unsigned int flags = walk->cached;
	bool bit_6 = entry & ENTRY_BIT_6;
	bool bit_7 = entry & ENTRY_BIT_7;

	if (walk->format == AARCH64_4K) {
		if (bit_6)
			flags |= GPUREPLAY_REGION_READ;
		if (bit_6 && !bit_7)
			flags |= GPUREPLAY_REGION_WRITE;
	} else {
		if (bit_6)
			flags |= GPUREPLAY_REGION_READ;
		if (bit_7)
			flags |= GPUREPLAY_REGION_WRITE;
	}
	if (!(entry & ENTRY_NO_EXEC))
		flags |= GPUREPLAY_REGION_EXECUTE;
	return flags;
}

static enum walk_result add_leaf(struct walk *walk, u64 va, u64 entry,
				 unsigned int level)
{
	u64 bytes = 1ULL << level_shift(level);
	u64 phys = entry & ENTRY_ADDRESS & ~(bytes - 1);
	unsigned int flags = access_flags(walk, entry);
	struct page_list *list = walk->list;
	u64 at;

	for (at = 0; at < bytes; at += GPUREPLAY_PAGE_SIZE) {
		if (list->count == list->capacity)
			return WALK_FULL;
		list->pages[list->count++] = (struct mapped_page) {
			.va = (va + at) | flags,
			.phys = phys + at,
		};
	}
	return WALK_DONE;
}

static enum walk_result walk_level(struct walk *walk, u64 table, u64 va,
				   unsigned int level)
{
	enum walk_result result = WALK_DONE;
	unsigned int i;
	u64 entry;

	if (!walk_copy(tables[level], table, NULL)) {
		walk->bad = table;
		return WALK_BROKEN;
	}
	for (i = 0; i < ENTRIES && result == WALK_DONE && va < walk->va_end;
	     i++, va += 1ULL << level_shift(level)) {
		entry = le64_to_cpu(tables[level][i]);
		if (is_table(walk, entry, level)) {
			result = walk_level(walk, entry & ENTRY_ADDRESS, va,
					    level + 1);
		} else if (is_leaf(walk, entry, level)) {
			result = add_leaf(walk, va, entry, level);
		} else if (entry & 1) {
			walk->bad = entry;
			result = WALK_BROKEN;
		}
	}
	return result;
}

/* The first level and the number of address bits, from the registers. */
static bool walk_setup(struct walk *walk, unsigned int as, u64 *table,
		       unsigned int *level)
{
	u64 transtab = registers_written64(ADDRESS_SPACE(as) + AS_TRANSTAB);
	u64 transcfg = registers_written64(ADDRESS_SPACE(as) + AS_TRANSCFG);
	unsigned int va_bits = registers_last_read(GPU_MMU_FEATURES) & 0xff;

	if (!va_bits || va_bits > 48)
		va_bits = 48;
	*level = 0;
	*table = transtab & ENTRY_ADDRESS;

	switch (transcfg & TRANSCFG_MODE) {
	case TRANSCFG_MODE_LEGACY:
		if ((transtab & TRANSTAB_MODE) != TRANSTAB_MODE_TABLE) {
			log_error(GPUREPLAY_ERROR_TRANSLATION, transtab);
			return false;
		}
		walk->format = MALI_LPAE;
		break;
	case TRANSCFG_MODE_AARCH64_4K:
		if (TRANSCFG_INA_BITS(transcfg))
			va_bits = 55 - TRANSCFG_INA_BITS(transcfg);
		else
			va_bits = 48;
		if (va_bits <= 30)
			*level = 2;
		else if (va_bits <= 39)
			*level = 1;
		walk->format = AARCH64_4K;
		break;
	default:
		log_error(GPUREPLAY_ERROR_TRANSLATION, transcfg);
		return false;
	}
	if (!*table) {
		log_error(GPUREPLAY_ERROR_LATE, ADDRESS_SPACE(as));
		return false;
	}
	walk->va_end = 1ULL << va_bits;
	return true;
}

/**
 * walk_tables - list every page that an address space maps
 * @as: number of the address space
 * @list: is filled by ascending address
 * @may_sleep: wait for changes of the tables to end
 */
enum walk_result walk_tables(unsigned int as, struct page_list *list,
			     bool may_sleep)
{
	struct walk walk = {
		.list = list,
		.cached = device_is_coherent() ?
			  GPUREPLAY_REGION_CPU_CACHED : 0,
	};
	enum walk_result result = WALK_BROKEN;
	unsigned int level, tries;
	long before;
	u64 table;

	if (!walk_setup(&walk, as, &table, &level))
		return WALK_BROKEN;
	walk.bad = table;
	for (tries = 0; tries < WALK_TRIES; tries++) {
		if (may_sleep)
			wait_event_timeout(no_change, !atomic_read(&changing),
					   msecs_to_jiffies(WALK_WAIT_MS));
		before = atomic_long_read(&changes);
		smp_mb();	/* entries are read after the count */
		if (atomic_read(&changing) && may_sleep)
			continue;
		list->count = 0;
		result = walk_level(&walk, table, 0, level);
		smp_mb();	/* and before it is read again */
		if (atomic_long_read(&changes) == before)
			break;
		result = WALK_BROKEN;
	}
	if (result == WALK_BROKEN)
		log_error(GPUREPLAY_ERROR_WALK, walk.bad);
	return result;
}

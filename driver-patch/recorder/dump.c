// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that changed: a hash of every mapped page of an address space tells
 * whether the log holds its present content.
 */
#include <linux/atomic.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/pfn.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <linux/xxhash.h>

#include "mali.h"
#include "compat.h"
#include "recorder.h"

/* Lists begin with this many pages (4 KiB each) and grow where that may sleep. */
#define FIRST_CAPACITY	65536
#define SPARE_LISTS	3

/* What the log holds of each address space, by ascending address. */
static struct {
	u64 root;		/* the page table that it belongs to */
	struct page_list known;
} spaces[ADDRESS_SPACES];

/* Lists that can be taken where allocating is impossible. */
static struct page_list spare[SPARE_LISTS];

static atomic_t busy = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(not_busy);
static u8 page_copy[GPUREPLAY_PAGE_SIZE];

static bool list_allocate(struct page_list *list, size_t capacity)
{
	struct mapped_page *pages;

	pages = kvmalloc_array(capacity, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return false;
	kvfree(list->pages);
	*list = (struct page_list) { .pages = pages, .capacity = capacity };
	return true;
}

static void list_free(struct page_list *list)
{
	kvfree(list->pages);
	*list = (struct page_list) {};
}

static void dump_free(void)
{
	unsigned int i;

	for (i = 0; i < ADDRESS_SPACES; i++) {
		list_free(&spaces[i].known);
		spaces[i].root = 0;
	}
	for (i = 0; i < SPARE_LISTS; i++)
		list_free(&spare[i]);
}

/* Prepare for a recording. */
int dump_create(void)
{
	unsigned int i;

	for (i = 0; i < SPARE_LISTS; i++) {
		if (!list_allocate(&spare[i], FIRST_CAPACITY)) {
			dump_free();
			return -ENOMEM;
		}
	}
	return 0;
}

/* The recording is over; sleeps until a dump that still runs has noticed. */
void dump_destroy(void)
{
	wait_event(not_busy, !atomic_cmpxchg(&busy, 0, 1));
	dump_free();
	atomic_set(&busy, 0);
}

/* Fill @list, and make it as large as it has to be. */
static bool list_walk(struct device *dev, unsigned int as,
		      struct page_list *list, bool may_sleep)
{
	enum walk_result result;

	for (;;) {
		if (may_sleep)
			walk_lock();
		result = walk_tables(dev, as, list);
		if (may_sleep)
			walk_unlock();
		if (result == WALK_DONE)
			return true;
		if (result == WALK_BROKEN)
			return false;
		if (!may_sleep || !list_allocate(list, list->capacity * 2)) {
			log_error(GPUREPLAY_ERROR_MEMORY,
				  list->capacity * sizeof(*list->pages) * 2);
			return false;
		}
	}
}

/*
 * Carry over the hashes of pages that the log holds.
 *
 * Return: whether the two lists map the same addresses with the same access.
 */
static bool list_carry(struct page_list *list, const struct page_list *known)
{
	bool same = list->count == known->count;
	size_t i, j = 0;

	for (i = 0; i < list->count; i++) {
		struct mapped_page *page = &list->pages[i];
		const struct mapped_page *old;

		while (j < known->count &&
		       (known->pages[j].va & PAGE_VA) < (page->va & PAGE_VA))
			j++;
		if (j == known->count) {
			same = false;
			continue;
		}
		old = &known->pages[j];
		if ((old->va & ~(u64)PAGE_LOGGED) != page->va)
			same = false;
		if ((old->va & PAGE_VA) == (page->va & PAGE_VA) &&
		    old->va & PAGE_LOGGED) {
			page->va |= PAGE_LOGGED;
			page->hash = old->hash;
		}
	}
	return same;
}

/* The whole mapping, as runs of pages with the same access. */
static void log_regions(unsigned int as, u8 slot, const struct page_list *list)
{
	u32 first = GPUREPLAY_REGION_FIRST;
	size_t i, run;

	for (i = 0; i < list->count; i += run) {
		u64 va = list->pages[i].va & PAGE_VA;
		u32 access = list->pages[i].va & PAGE_ACCESS;
		struct gpureplay_region record = {
			.as = cpu_to_le32(as),
			.flags = cpu_to_le32(access | first),
			.va = cpu_to_le64(va),
		};

		for (run = 1; i + run < list->count; run++) {
			const struct mapped_page *next = &list->pages[i + run];

			if ((next->va & PAGE_ACCESS) != access ||
			    (next->va & PAGE_VA) !=
			    va + run * GPUREPLAY_PAGE_SIZE)
				break;
		}
		record.pages = cpu_to_le64(run);
		log_record(GPUREPLAY_REGION, slot, &record, sizeof(record));
		first = 0;
	}
}

/*
 * Make the CPU see what the GPU sees. A driver maps buffers of a GPU that does
 * not snoop write-combined, or cached and flushes by hand; the kernel's own
 * mapping of these pages may hold stale lines. Written back first, because
 * lines that the app has not flushed yet must not be lost.
 */
static void synchronise_page(struct device *dev, u64 bus)
{
	if (device_is_coherent())
		return;
	dma_sync_single_for_device(dev, bus, GPUREPLAY_PAGE_SIZE,
				   DMA_TO_DEVICE);
	dma_sync_single_for_cpu(dev, bus, GPUREPLAY_PAGE_SIZE,
				DMA_FROM_DEVICE);
}

static void log_changed_page(struct device *dev, unsigned int as, u8 slot,
			     u32 phase, struct mapped_page *page)
{
	phys_addr_t phys = dma_to_phys(dev, page->bus);
	struct gpureplay_page record = {
		.as = cpu_to_le32(as),
		.phase = cpu_to_le32(phase),
		.va = cpu_to_le64(page->va & PAGE_VA),
	};
	const u8 *bytes;
	u64 hash;

	if (!pfn_valid(PHYS_PFN(phys))) {
		log_error(GPUREPLAY_ERROR_PAGE, page->va & PAGE_VA);
		return;
	}

	synchronise_page(dev, page->bus);
	bytes = kmap_local_page(pfn_to_page(PHYS_PFN(phys))) +
		offset_in_page(phys);
	hash = xxh64(bytes, GPUREPLAY_PAGE_SIZE, 0);
	if (page->va & PAGE_LOGGED && page->hash == hash) {
		kunmap_local(bytes);
		return;
	}
	/* The app may write at this moment: log and hash one and the same. */
	memcpy(page_copy, bytes, GPUREPLAY_PAGE_SIZE);
	kunmap_local(bytes);

	page->hash = xxh64(page_copy, GPUREPLAY_PAGE_SIZE, 0);
	page->va |= PAGE_LOGGED;
	log_page(slot, &record,
		 memchr_inv(page_copy, 0, GPUREPLAY_PAGE_SIZE) ? page_copy :
								 NULL);
}

/* Take a list for an address space that has none. */
static bool take_list(struct page_list *list, bool may_sleep)
{
	unsigned int i;

	for (i = 1; i < SPARE_LISTS; i++) {
		if (spare[i].pages) {
			*list = spare[i];
			list->count = 0;
			spare[i] = (struct page_list) {};
			return true;
		}
	}
	if (may_sleep && list_allocate(list, FIRST_CAPACITY))
		return true;
	log_error(GPUREPLAY_ERROR_MEMORY,
		  FIRST_CAPACITY * sizeof(struct mapped_page));
	return false;
}

static bool dump_space(struct device *dev, unsigned int as, u8 slot, u32 phase,
		       bool may_sleep)
{
	u64 root = registers_written64(ADDRESS_SPACE(as) + AS_TRANSTAB);
	struct page_list *known = &spaces[as].known;
	struct page_list *list = &spare[0];
	size_t i;

	if (!known->pages && !take_list(known, may_sleep))
		return false;
	if (spaces[as].root != root)
		known->count = 0;
	spaces[as].root = root;

	if (!list_walk(dev, as, list, may_sleep))
		return false;
	if (!list_carry(list, known))
		log_regions(as, slot, list);
	for (i = 0; i < list->count; i++) {
		if (may_sleep && !log_wait_room())
			return false;
		log_changed_page(dev, as, slot, phase, &list->pages[i]);
	}
	swap(*known, *list);
	return true;
}

/**
 * dump_pages - log an address space's mapping and pages, as far as they changed
 * @as: number of the address space
 * @slot: the job slot on whose behalf
 * @phase: GPUREPLAY_PHASE_*
 * @may_sleep: wait for a slow reader, get more memory
 *
 * Return: whether the log holds all of it.
 */
bool dump_pages(unsigned int as, u8 slot, u32 phase, bool may_sleep)
{
	struct device *dev = device_get();
	bool done = false;

	if (!dev || atomic_cmpxchg(&busy, 0, 1))
		return false;
	if (log_is_active())
		done = dump_space(dev, as, slot, phase, may_sleep);
	atomic_set(&busy, 0);
	wake_up(&not_busy);
	return done;
}

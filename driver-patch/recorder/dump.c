// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that changed: a hash of every mapped page of an address space tells
 * whether the log holds its present content.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xxhash.h>
#ifdef CONFIG_ARM64
#include <asm/barrier.h>
#include <asm/sysreg.h>
#endif

#include "mali.h"
#include "compat.h"
#include "recorder.h"

/*
 * Lists begin with this many pages (4 KiB each) and grow in the app's own call,
 * see dump_reserve(). They grow in the dump if the app maps more before its job
 * starts. A driver that is bound later may have no such hook: for it they hold
 * all of the machine's memory, up to 4 GiB.
 */
#define FIRST_CAPACITY	65536
#define LARGE_CAPACITY	1048576UL
#define SPARE_LISTS	4

/* Pages that may come without notice, in heaps that grow while a job runs. */
#define UNANNOUNCED	16384

/* What the log holds of each address space, by ascending address. */
static struct {
	u64 root;		/* the page table that it belongs to */
	long generation;	/* of the tables, when they were read */
	struct page_list known;
} spaces[ADDRESS_SPACES];

/* Whether pages that nobody can have changed are looked at. */
enum {
	DIRTY_ALL,	/* always, and nothing is made of it */
	DIRTY_AUDIT,	/* for a twentieth of the time, and when they go */
	DIRTY_CHECK,	/* always */
};

static unsigned int dirty = DIRTY_AUDIT;
module_param(dirty, uint, 0644);
MODULE_PARM_DESC(dirty,
		 "Pages to look at: 0 all, 1 those that may have changed, all for a twentieth of the time (default), 2 all, and check what 1 would have found");

/* Lists that can be taken where allocating is impossible. */
static struct page_list spare[SPARE_LISTS];

/* What it cost so far: protected by `busy`. */
static struct {
	u64 dumps;
	u64 walked_ns;		/* reading page tables */
	u64 hashed;		/* pages */
	u64 clean;		/* pages that were not looked at */
	u64 audited;		/* pages that were looked at though they are clean */
	u64 logged;		/* pages */
	u64 unaudited;		/* pages that went without a last look */
	u64 audited_ns;		/* searches with clean pages */
	u64 begun_ns;		/* when the recording began */
	u64 walks;
	u64 dumped_ns;		/* all of it, with waiting for the reader */
} work;

/* Pages that are looked at in one go, and processors that help. */
#define CHUNK		1024
#define HELPERS		7

static void search_chunks(u8 *copy);

static struct helper {
	struct work_struct work;
	u8 *copy;		/* of the page that it looks at */
} helpers[HELPERS];

/* The search for changed pages: one at a time, protected by `busy`. */
static struct {
	struct workqueue_struct *queue;
	struct page_list *list;
	atomic_long_t next;	/* page that nobody has looked at */
	bool audit;		/* clean pages too */
	atomic_long_t clean;	/* of all pages */
	atomic_long_t hashed;	/* of all pages: new ones are hashed when logged */
} search;

static const struct touched_audit audit;

static atomic_t busy = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(not_busy);
static u8 page_copy[GPUREPLAY_PAGE_SIZE];

static bool list_allocate(struct page_list *list, size_t capacity, gfp_t how)
{
	struct mapped_page *pages;

	pages = kvmalloc_array(capacity, sizeof(*pages), how | __GFP_NOWARN);
	if (!pages)
		return false;
	kvfree(list->pages);
	*list = (struct page_list) { .pages = pages, .capacity = capacity };
	return true;
}

/*
 * Where dumps run, reclaim may wait for the job: take what is free, but of the
 * reserves nothing.
 */
static bool list_allocate_free(struct page_list *list, size_t capacity)
{
	unsigned int flags = memalloc_noreclaim_save();
	bool done = list_allocate(list, capacity,
				  GFP_KERNEL | __GFP_NOMEMALLOC);

	memalloc_noreclaim_restore(flags);
	return done;
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
		spaces[i].generation = -1;
	}
	for (i = 0; i < SPARE_LISTS; i++)
		list_free(&spare[i]);
	if (search.queue)
		destroy_workqueue(search.queue);
	search.queue = NULL;
	for (i = 0; i < HELPERS; i++) {
		kfree(helpers[i].copy);
		helpers[i].copy = NULL;
	}
}

static void help(struct work_struct *work)
{
	search_chunks(container_of(work, struct helper, work)->copy);
}

/* Prepare for a recording. */
int dump_create(void)
{
	size_t capacity = FIRST_CAPACITY;
	unsigned int i;

	if (!device_is_attached())
		capacity = clamp(totalram_pages(), capacity, LARGE_CAPACITY);

	memset(&work, 0, sizeof(work));
	work.begun_ns = ktime_get_ns();
	/* Drivers submit from work that reclaim may wait for. */
	search.queue = alloc_workqueue("gpureplay",
				       WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!search.queue)
		return -ENOMEM;
	for (i = 0; i < HELPERS; i++) {
		INIT_WORK(&helpers[i].work, help);
		helpers[i].copy = kmalloc(GPUREPLAY_PAGE_SIZE, GFP_KERNEL);
		if (!helpers[i].copy)
			goto free;
	}
	for (i = 0; i < SPARE_LISTS; i++)
		if (!list_allocate(&spare[i], capacity, GFP_KERNEL))
			goto free;
	touched_create(&audit);
	return 0;

free:
	dump_free();
	return -ENOMEM;
}

/* A list that is about to be used and too small, and how large it has to be. */
static struct page_list *list_to_grow(size_t *capacity)
{
	struct page_list *small = NULL;
	size_t most = 0, wanted;
	unsigned int i;

	for (i = 0; i < ADDRESS_SPACES; i++)
		most = max(most, spaces[i].known.count);
	/* What is known may have been mapped before the driver said so. */
	wanted = most + touched_pages() + UNANNOUNCED;
	if (spare[0].pages && spare[0].capacity < wanted)
		small = &spare[0];
	for (i = 1; i < SPARE_LISTS && !spare[i].pages; i++)
		;
	if (i < SPARE_LISTS && spare[i].capacity < wanted)
		small = &spare[i];
	for (i = 0; i < ADDRESS_SPACES; i++)
		if (spaces[i].known.pages && spaces[i].known.capacity < wanted)
			small = &spaces[i].known;
	*capacity = wanted + wanted / 4;
	return small;
}

static bool take_busy(void)
{
	return !atomic_cmpxchg(&busy, 0, 1);
}

static void leave_busy(void)
{
	atomic_set(&busy, 0);
	wake_up(&not_busy);
}

/**
 * dump_reserve - make the lists as large as the next dump needs them
 *
 * In the app's own call, before its job exists. Sleeps, but never with a dump
 * shut out: reclaim may wait for the job that waits for that dump.
 */
void dump_reserve(void)
{
	struct page_list *list, larger = {};
	size_t capacity;

	for (;;) {
		if (wait_event_killable(not_busy, take_busy()))
			break;
		list = list_to_grow(&capacity);
		if (list && larger.capacity >= capacity) {
			memcpy(larger.pages, list->pages,
			       list->count * sizeof(*list->pages));
			larger.count = list->count;
			swap(*list, larger);
			list = list_to_grow(&capacity);
		}
		leave_busy();
		if (!list || !list_allocate(&larger, capacity, GFP_KERNEL))
			break;
	}
	list_free(&larger);
}

/* The recording is over; sleeps until a dump that still runs has noticed. */
void dump_destroy(void)
{
	wait_event(not_busy, take_busy());
	dump_free();
	leave_busy();
}

/* Fill @list, and make it as large as it has to be. */
static bool list_walk(unsigned int as, struct page_list *list, bool may_sleep)
{
	enum walk_result result;

	for (;;) {
		result = walk_tables(as, list, may_sleep);
		if (result == WALK_DONE)
			return true;
		if (result == WALK_BROKEN)
			return false;
		if (!may_sleep ||
		    !list_allocate_free(list, list->capacity * 2)) {
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
 * mapping of these pages may hold stale lines. Each line is written back and
 * dropped in one step: between two, the app could write a line that the second
 * step then drops.
 */
static void synchronise_page(const void *bytes)
{
#ifdef CONFIG_ARM64
	/* CTR_EL0[19:16]: log2 of the smallest line, in words of four bytes. */
	size_t line = 4UL << ((read_sysreg(ctr_el0) >> 16) & 0xf);
	size_t at;

	for (at = 0; at < GPUREPLAY_PAGE_SIZE; at += line)
		asm volatile("dc civac, %0" : : "r" (bytes + at) : "memory");
	dsb(sy);
#else
	dma_sync_single_for_device(device_get(), virt_to_phys(bytes),
				   GPUREPLAY_PAGE_SIZE, DMA_BIDIRECTIONAL);
	dma_sync_single_for_cpu(device_get(), virt_to_phys(bytes),
				GPUREPLAY_PAGE_SIZE, DMA_BIDIRECTIONAL);
#endif
}

static bool page_read(const struct mapped_page *page, u8 *copy)
{
	return walk_copy(copy, page->phys,
			 device_is_coherent() ? NULL : synchronise_page);
}

/* Whether the log does not hold the page's present content, or it cannot be read. */
static bool page_changed(const struct mapped_page *page, u8 *copy)
{
	/* Where it cannot be equal there is nothing to hash: log_changed_page() will. */
	if (!(page->va & PAGE_LOGGED) || !page_read(page, copy))
		return true;
	return page->hash != xxh64(copy, GPUREPLAY_PAGE_SIZE, 0);
}

/* Processors take one chunk after the other. */
static void search_chunks(u8 *copy)
{
	struct mapped_page *pages = search.list->pages;
	size_t from, at, to;
	long clean, hashed;

	for (;;) {
		from = atomic_long_fetch_add(CHUNK, &search.next);
		if (from >= search.list->count)
			return;
		to = min(from + CHUNK, search.list->count);
		clean = 0;
		hashed = 0;
		for (at = from; at < to; at++) {
			clean += !!(pages[at].va & PAGE_CLEAN);
			if (pages[at].va & PAGE_CLEAN && !search.audit)
				continue;
			hashed += !!(pages[at].va & PAGE_LOGGED);
			if (page_changed(&pages[at], copy))
				pages[at].va |= PAGE_CHANGED;
		}
		atomic_long_add(clean, &search.clean);
		atomic_long_add(hashed, &search.hashed);
		cond_resched();
	}
}

/* Whether it is time to look at clean pages again. */
static bool audit_is_due(void)
{
	switch (READ_ONCE(dirty)) {
	case DIRTY_ALL:
	case DIRTY_CHECK:
		return true;
	}
	return work.audited_ns * 20 < ktime_get_ns() - work.begun_ns;
}

/*
 * Mark the pages that changed, on all processors: the app waits meanwhile.
 * Sleeps.
 */
static void search_changes(struct page_list *list)
{
	bool audit = audit_is_due();
	u64 begin = ktime_get_ns();
	unsigned int i, number;

	number = min3(num_online_cpus() - 1, (unsigned int)HELPERS,
		      (unsigned int)(list->count / CHUNK));
	search.list = list;
	atomic_long_set(&search.next, 0);
	atomic_long_set(&search.clean, 0);
	atomic_long_set(&search.hashed, 0);
	search.audit = audit;
	for (i = 0; i < number; i++)
		queue_work(search.queue, &helpers[i].work);
	search_chunks(page_copy);
	for (i = 0; i < number; i++)
		flush_work(&helpers[i].work);
	work.hashed += atomic_long_read(&search.hashed);
	if (audit) {
		work.audited += atomic_long_read(&search.clean);
		work.audited_ns += ktime_get_ns() - begin;
	} else {
		work.clean += atomic_long_read(&search.clean);
	}
}

static void log_changed_page(unsigned int as, u8 slot, u32 phase,
			     struct mapped_page *page)
{
	struct gpureplay_page record = {
		.as = cpu_to_le32(as),
		.phase = cpu_to_le32(phase),
		.va = cpu_to_le64(page->va & PAGE_VA),
	};
	bool clean = page->va & PAGE_CLEAN;
	u64 hash;

	page->va &= ~(u64)(PAGE_CHANGED | PAGE_CLEAN);
	/* The app may write at this moment: hash and log one and the same. */
	if (!page_read(page, page_copy)) {
		if (!clean || !touched_gone(page->va & PAGE_VA))
			log_error(GPUREPLAY_ERROR_PAGE, page->va & PAGE_VA);
		page->va &= ~(u64)PAGE_LOGGED;
		return;
	}
	hash = xxh64(page_copy, GPUREPLAY_PAGE_SIZE, 0);
	work.hashed++;
	if (page->va & PAGE_LOGGED && page->hash == hash)
		return;
	if (clean && (!(page->va & PAGE_LOGGED) ||
		      touched_now(page->va & PAGE_VA))) {
		/*
		 * The app mapped it or wrote to it since the last dump. That is
		 * no change by the job: the dump before the next one logs it.
		 */
		if (phase != GPUREPLAY_PHASE_BEFORE)
			return;
	} else if (clean) {
		if (touched_gone(page->va & PAGE_VA)) {
			page->va &= ~(u64)PAGE_LOGGED;
			return;
		}
		log_error(GPUREPLAY_ERROR_UNSEEN, page->va & PAGE_VA);
	}

	page->hash = hash;
	page->va |= PAGE_LOGGED;
	work.logged++;
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
	if (may_sleep && list_allocate_free(list, FIRST_CAPACITY))
		return true;
	log_error(GPUREPLAY_ERROR_MEMORY,
		  FIRST_CAPACITY * sizeof(struct mapped_page));
	return false;
}

/* Read the tables, unless they are as they were. */
static bool list_renew(unsigned int as, u8 slot, bool may_sleep)
{
	struct page_list *known = &spaces[as].known;
	struct page_list *list = &spare[0];
	u64 begin = ktime_get_ns();
	long generation = walk_generation();

	/* Drivers that announce no buffers announce no changes either. */
	if (known->count && touched_knows_buffers() &&
	    walk_is_current(spaces[as].generation))
		return true;
	if (!list_walk(as, list, may_sleep))
		return false;
	spaces[as].generation = generation;
	work.walked_ns += ktime_get_ns() - begin;
	work.walks++;
	if (!list_carry(list, known))
		log_regions(as, slot, list);
	swap(*known, *list);
	return true;
}

static bool dump_space(unsigned int as, u8 slot, u32 phase, bool may_sleep)
{
	u64 root = registers_written64(ADDRESS_SPACE(as) + AS_TRANSTAB);
	struct page_list *known = &spaces[as].known;
	size_t i;

	if (!known->pages && !take_list(known, may_sleep))
		return false;
	if (spaces[as].root != root)
		known->count = 0;
	spaces[as].root = root;

	if (!list_renew(as, slot, may_sleep))
		return false;
	if (may_sleep && READ_ONCE(dirty) != DIRTY_ALL) {
		if (phase == GPUREPLAY_PHASE_BEFORE)
			touched_before(known);
		else
			touched_after(known, slot);
	}
	if (may_sleep)
		search_changes(known);
	for (i = 0; i < known->count; i++) {
		struct mapped_page *page = &known->pages[i];

		if (may_sleep && !(page->va & PAGE_CHANGED)) {
			page->va &= ~(u64)PAGE_CLEAN;
			continue;
		}
		if (may_sleep && !log_wait_room())
			return false;
		log_changed_page(as, slot, phase, page);
	}
	return true;
}

/* The page of a list at this address. */
static struct mapped_page *list_find(const struct page_list *list, u64 va)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		u64 at = list->pages[middle].va & PAGE_VA;

		if (at == va)
			return &list->pages[middle];
		if (at < va)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/*
 * Wait until no dump runs, and keep others from beginning. Whoever frees memory
 * because there is none left does not wait: it may be the dump that needs some.
 */
static bool audit_begin(void)
{
	if (current->flags & PF_MEMALLOC)
		return take_busy();
	wait_event(not_busy, take_busy());
	return true;
}

/* A buffer goes while nobody can look at it. Callers take turns. */
static void audit_skip(size_t pages)
{
	work.unaudited += pages;
}

/* What differs from the log without a reason was missed. */
static void audit_look(u64 va, size_t pages, const unsigned long *touched)
{
	size_t i;
	unsigned int as;

	if (READ_ONCE(dirty) == DIRTY_ALL || !device_is_attached())
		return;
	for (as = 0; as < ADDRESS_SPACES && log_is_active(); as++) {
		for (i = 0; i < pages && spaces[as].known.count; i++) {
			u64 at = va + i * GPUREPLAY_PAGE_SIZE;
			struct mapped_page *page;

			page = list_find(&spaces[as].known, at);
			if (!page || !(page->va & PAGE_LOGGED))
				continue;
			work.audited++;
			if (page_changed(page, page_copy) && !test_bit(i, touched))
				log_error(GPUREPLAY_ERROR_UNSEEN, at);
		}
	}
}

static const struct touched_audit audit = {
	.begin = audit_begin,
	.look = audit_look,
	.skip = audit_skip,
	.end = leave_busy,
};

/**
 * dump_pages - log an address space's mapping and pages, as far as they changed
 * @as: number of the address space
 * @slot: the job slot on whose behalf
 * @phase: GPUREPLAY_PHASE_*
 * @may_sleep: wait for a slow reader and for an audit
 *
 * Return: whether the log holds all of it.
 */
bool dump_pages(unsigned int as, u8 slot, u32 phase, bool may_sleep)
{
	u64 begin = ktime_get_ns();
	bool done = false;

	if (!device_is_attached())
		return false;
	if (may_sleep)
		wait_event(not_busy, take_busy());
	else if (!take_busy())
		return false;
	if (log_is_active())
		done = dump_space(as, slot, phase, may_sleep);
	work.dumps++;
	work.dumped_ns += ktime_get_ns() - begin;
	leave_busy();
	return done;
}

/* What the recording cost, for whoever reads its last note. Nothing runs any more. */
void dump_note(void)
{
	if (work.unaudited)
		log_note("%llu pages were freed without a last look",
			 work.unaudited);
	log_note("dumps %llu, pages hashed %llu, clean %llu, audited %llu, logged %llu",
		 work.dumps, work.hashed, work.clean, work.audited,
		 work.logged);
	log_note("ms in %llu walks %llu, audits %llu, all dumps %llu, waiting for the reader %llu",
		 work.walks, div_u64(work.walked_ns, NSEC_PER_MSEC),
		 div_u64(work.audited_ns, NSEC_PER_MSEC),
		 div_u64(work.dumped_ns, NSEC_PER_MSEC),
		 div_u64(log_blocked_ns(), NSEC_PER_MSEC));
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers of which it is known who can have changed them.
 *
 * The app writes to a buffer object through its mappings. A dump removes those
 * of every buffer that was touched, so the next access faults, and the wrapped
 * fault handler sets a bit: a page without one has no mapping in any process.
 * The GPU writes while a job runs that lists the buffer. So a page is clean, and
 * need not be looked at, if it has no bit before a job, or if no job lists its
 * buffer after one. dump.c checks that by looking at clean pages now and then.
 *
 * Buffers that others share are never clean, nor is memory that no driver has
 * announced here.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "recorder.h"

struct buffer {
	struct list_head link;
	struct hlist_node node;		/* by object */
	const void *object;
	const void *tables;		/* the driver's page tables */
	struct address_space *space;
	u64 offset;			/* of its mappings in @space */
	void * const *shared;		/* not NULL: others have it */
	u64 va;
	size_t pages;
	bool any;			/* a bit is set */
	bool dumped;			/* the log may hold it */
	bool dirty;			/* @taken holds bits */
	unsigned long jobs;		/* slots whose job lists it */
	unsigned long *bits;		/* pages touched since the last dump */
	unsigned long *taken;		/* pages touched before this dump */
};

/* The list; may be taken while the driver frees memory, so nobody allocates. */
static DEFINE_MUTEX(buffers_mutex);
static LIST_HEAD(buffers);
static LIST_HEAD(gone);			/* since a dump began that still runs */
static bool several;			/* page tables: addresses tell nothing */
static size_t tracked;			/* pages of the buffers in the list */

/* Looks at what is about to go: dump.c. */
static const struct touched_audit *auditor;

/* Bits, and buffers by their object: also taken in page faults. */
static DEFINE_SPINLOCK(bits_lock);
static DEFINE_HASHTABLE(by_object, 10);

static void mark_pages(struct buffer *buffer, u64 page, unsigned long count)
{
	lockdep_assert_held(&bits_lock);
	if (page >= buffer->pages)
		return;
	bitmap_set(buffer->bits, page, min_t(u64, count, buffer->pages - page));
	buffer->any = true;
}

/*
 * Mark what one fault has mapped. Some kernels count an object's pages from the
 * start of the mapping, some from the offset, and some map a huge page.
 */
static void mark(const struct vm_fault *vmf)
{
	const void *object = vmf->vma->vm_private_data;
	u64 page = (vmf->address - vmf->vma->vm_start) >> PAGE_SHIFT;
	unsigned long before = 0, count = 1;
	struct buffer *buffer;

	if (vmf->pmd && pmd_leaf(READ_ONCE(*vmf->pmd))) {
		before = (vmf->address & ~PMD_MASK) >> PAGE_SHIFT;
		count = PTRS_PER_PTE;
	}
	spin_lock(&bits_lock);
	hash_for_each_possible(by_object, buffer, node, (unsigned long)object) {
		u64 other = vmf->pgoff - (buffer->offset >> PAGE_SHIFT);

		if (buffer->object != object)
			continue;
		mark_pages(buffer, page - min_t(u64, page, before), count);
		mark_pages(buffer, other - min_t(u64, other, before), count);
	}
	spin_unlock(&bits_lock);
}

/* The driver's own. */
static const struct vm_operations_struct *driver_operations;

static void vma_open(struct vm_area_struct *vma)
{
	if (driver_operations->open)
		driver_operations->open(vma);
}

static void vma_close(struct vm_area_struct *vma)
{
	if (driver_operations->close)
		driver_operations->close(vma);
}

/*
 * The bit is set when the page is mapped already, and before the app's access
 * is repeated: a dump in between removes the mapping or finds the bit later.
 */
static vm_fault_t vma_fault(struct vm_fault *vmf)
{
	vm_fault_t result = driver_operations->fault(vmf);

	/* After a retry the mapping may be gone already; nothing was mapped. */
	if (!(result & (VM_FAULT_RETRY | VM_FAULT_ERROR)) &&
	    gpureplay_is_recording())
		mark(vmf);
	return result;
}

/* Some kernels keep account of writes. */
static vm_fault_t vma_write(struct vm_fault *vmf)
{
	if (driver_operations->pfn_mkwrite)
		return driver_operations->pfn_mkwrite(vmf);
	return 0;
}

/* No huge_fault and no map_pages: nothing is mapped but by a fault. */
const struct vm_operations_struct gpureplay_vm_operations = {
	.open = vma_open,
	.close = vma_close,
	.fault = vma_fault,
	.pfn_mkwrite = vma_write,
};
EXPORT_SYMBOL_GPL(gpureplay_vm_operations);

void gpureplay_wrap_mappings(const struct vm_operations_struct *operations)
{
	WRITE_ONCE(driver_operations, operations);
}
EXPORT_SYMBOL_GPL(gpureplay_wrap_mappings);

static void buffer_free(struct buffer *buffer)
{
	kvfree(buffer->bits);
	kvfree(buffer->taken);
	kfree(buffer);
}

void gpureplay_track(const void *object, const void *tables,
		     struct address_space *space, u64 offset,
		     void * const *shared, u64 va, u64 size)
{
	size_t pages = size / GPUREPLAY_PAGE_SIZE;
	struct buffer *buffer, *first;

	/* Without an offset nobody can remove its mappings. */
	if (!gpureplay_is_recording() || !offset || !pages ||
	    PAGE_SIZE != GPUREPLAY_PAGE_SIZE)
		return;
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
	if (!buffer)
		return;
	buffer->bits = kvcalloc(BITS_TO_LONGS(pages), sizeof(long), GFP_KERNEL);
	buffer->taken = kvcalloc(BITS_TO_LONGS(pages), sizeof(long), GFP_KERNEL);
	if (!buffer->bits || !buffer->taken) {
		buffer_free(buffer);
		return;
	}
	buffer->object = object;
	buffer->tables = tables;
	buffer->space = space;
	buffer->offset = offset;
	buffer->shared = shared;
	buffer->va = va;
	buffer->pages = pages;
	buffer->any = true;
	bitmap_fill(buffer->bits, pages);

	mutex_lock(&buffers_mutex);
	first = list_first_entry_or_null(&buffers, struct buffer, link);
	if (first && first->tables != tables)
		several = true;
	list_add_tail(&buffer->link, &buffers);
	WRITE_ONCE(tracked, tracked + pages);
	spin_lock(&bits_lock);
	hash_add(by_object, &buffer->node, (unsigned long)object);
	spin_unlock(&bits_lock);
	mutex_unlock(&buffers_mutex);
}
EXPORT_SYMBOL_GPL(gpureplay_track);

static void take_out(struct buffer *buffer)
{
	lockdep_assert_held(&buffers_mutex);
	list_del(&buffer->link);
	WRITE_ONCE(tracked, tracked - buffer->pages);
	spin_lock(&bits_lock);
	hash_del(&buffer->node);
	spin_unlock(&bits_lock);
}

static void forget(struct buffer *buffer)
{
	take_out(buffer);
	buffer_free(buffer);
}

/* No dump looks at pages any more of which a list still has these. */
static void forget_gone(void)
{
	struct buffer *buffer, *next;

	lockdep_assert_held(&buffers_mutex);
	list_for_each_entry_safe(buffer, next, &gone, link) {
		list_del(&buffer->link);
		buffer_free(buffer);
	}
}

/* The bits that count for a page of a buffer whose memory still is as it was. */
static bool is_touched(const struct buffer *buffer, size_t page)
{
	return READ_ONCE(*buffer->shared) || test_bit(page, buffer->bits);
}

void gpureplay_untrack(const void *object, u64 va)
{
	struct buffer *buffer, *next;
	bool recording = gpureplay_is_recording();
	/* Before the mutex: a dump takes both in this order. */
	bool audit = recording && auditor->begin();

	mutex_lock(&buffers_mutex);
	list_for_each_entry_safe(buffer, next, &buffers, link) {
		if (buffer->object != object || buffer->va != va)
			continue;
		/* The last chance to find out that a change was missed. */
		if (recording && buffer->dumped && !several &&
		    !READ_ONCE(*buffer->shared)) {
			if (audit)
				auditor->look(va, buffer->pages, buffer->bits);
			else
				auditor->skip(buffer->pages);
		}
		/* Its memory is about to be somebody else's. */
		if (recording && !audit) {
			take_out(buffer);
			list_add_tail(&buffer->link, &gone);
			continue;
		}
		forget(buffer);
	}
	mutex_unlock(&buffers_mutex);
	if (audit)
		auditor->end();
}
EXPORT_SYMBOL_GPL(gpureplay_untrack);

void gpureplay_job_buffers(unsigned int slot, const void * const *objects,
			   unsigned int count)
{
	struct buffer *buffer;
	unsigned int i;

	if (!gpureplay_is_recording())
		return;
	mutex_lock(&buffers_mutex);
	list_for_each_entry(buffer, &buffers, link)
		clear_bit(slot, &buffer->jobs);
	for (i = 0; i < count; i++)
		hash_for_each_possible(by_object, buffer, node,
				       (unsigned long)objects[i])
			if (buffer->object == objects[i])
				set_bit(slot, &buffer->jobs);
	mutex_unlock(&buffers_mutex);
}
EXPORT_SYMBOL_GPL(gpureplay_job_buffers);

/* Take the bits, and remove the mappings of what was touched. Sleeps. */
static void take(struct buffer *buffer)
{
	lockdep_assert_held(&buffers_mutex);
	spin_lock(&bits_lock);
	buffer->dirty = buffer->any;
	if (buffer->any) {
		swap(buffer->bits, buffer->taken);
		bitmap_zero(buffer->bits, buffer->pages);
		buffer->any = false;
	}
	spin_unlock(&bits_lock);
	if (buffer->dirty)
		unmap_mapping_range(buffer->space, buffer->offset,
				    (loff_t)buffer->pages << PAGE_SHIFT, 1);
}

/* The first page of a list at or behind an address. */
static size_t find(const struct page_list *list, u64 va)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((list->pages[middle].va & PAGE_VA) < va)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void apply(struct buffer *buffer, struct page_list *list, bool all)
{
	u64 end = buffer->va + buffer->pages * GPUREPLAY_PAGE_SIZE;
	size_t i = find(list, buffer->va);

	for (; i < list->count && (list->pages[i].va & PAGE_VA) < end; i++) {
		struct mapped_page *page = &list->pages[i];
		size_t at = ((page->va & PAGE_VA) - buffer->va) /
			    GPUREPLAY_PAGE_SIZE;

		if (all || (page->va & PAGE_LOGGED &&
			    (!buffer->dirty || !test_bit(at, buffer->taken))))
			page->va |= PAGE_CLEAN;
	}
}

/**
 * touched_before - mark the clean pages of a list before a job
 * @list: what the job's address space maps
 *
 * Bits that are set from now on belong to the next dump. Sleeps.
 */
void touched_before(struct page_list *list)
{
	struct buffer *buffer;

	mutex_lock(&buffers_mutex);
	forget_gone();
	list_for_each_entry(buffer, &buffers, link) {
		take(buffer);
		buffer->dumped = true;
		if (!several && !READ_ONCE(*buffer->shared))
			apply(buffer, list, false);
	}
	mutex_unlock(&buffers_mutex);
}

/**
 * touched_after - mark the clean pages of a list after a job
 * @list: what its address space maps
 * @slot: the job's slot
 *
 * A page that the log does not hold is clean too: what is mapped while a job
 * runs is not the job's.
 */
void touched_after(struct page_list *list, unsigned int slot)
{
	struct buffer *buffer;
	bool listed = false;

	mutex_lock(&buffers_mutex);
	forget_gone();
	list_for_each_entry(buffer, &buffers, link)
		listed |= test_bit(slot, &buffer->jobs);
	/* What a job does that lists nothing is not known. */
	if (listed && !several)
		list_for_each_entry(buffer, &buffers, link)
			if (!test_bit(slot, &buffer->jobs) &&
			    !READ_ONCE(*buffer->shared))
				apply(buffer, list, true);
	mutex_unlock(&buffers_mutex);
}

/* Whether the app may have written to a page since the last dump. Sleeps. */
bool touched_now(u64 va)
{
	struct buffer *buffer;
	bool touched = false;

	mutex_lock(&buffers_mutex);
	list_for_each_entry(buffer, &buffers, link) {
		u64 at = (va - buffer->va) / GPUREPLAY_PAGE_SIZE;

		if (va >= buffer->va && at < buffer->pages)
			touched |= is_touched(buffer, at);
	}
	mutex_unlock(&buffers_mutex);
	return touched;
}

/* Whether a page was freed since this dump began, while memory was reclaimed. Sleeps. */
bool touched_gone(u64 va)
{
	struct buffer *buffer;
	bool found = false;

	mutex_lock(&buffers_mutex);
	list_for_each_entry(buffer, &gone, link)
		found |= va >= buffer->va &&
			 (va - buffer->va) / GPUREPLAY_PAGE_SIZE < buffer->pages;
	mutex_unlock(&buffers_mutex);
	return found;
}

/* Whether the driver announces its buffers, and with them each change of its tables. */
bool touched_knows_buffers(void)
{
	return !list_empty(&buffers);
}

/* Pages of which the driver says that they are mapped for the GPU. */
size_t touched_pages(void)
{
	return READ_ONCE(tracked);
}

/* A recording begins: @audit is asked before a buffer goes. */
void touched_create(const struct touched_audit *audit)
{
	WRITE_ONCE(auditor, audit);
}

void touched_destroy(void)
{
	struct buffer *buffer, *next;

	mutex_lock(&buffers_mutex);
	list_for_each_entry_safe(buffer, next, &buffers, link)
		forget(buffer);
	forget_gone();
	several = false;
	mutex_unlock(&buffers_mutex);
}

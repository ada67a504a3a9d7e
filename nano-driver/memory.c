// SPDX-License-Identifier: GPL-2.0
/* Pages for the GPU: scattered, zeroed, mapped for DMA and the GPU, freed only after a reset. */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iommu.h>
#include <linux/iopoll.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "nano.h"

/* Pages that one fault enters at once. */
#define NANO_FAULT_AROUND	64

/* The GPU and the device have nothing to do with the pages any more. */
static void nano_detach(struct nano *nano, struct nano_mapping *mapping)
{
	unsigned long page;

	for (page = 0; mapping->bus && page < mapping->count; page++) {
		dma_unmap_page(nano->dev, mapping->bus[page], PAGE_SIZE, DMA_BIDIRECTIONAL);
		cond_resched();
	}
	kvfree(mapping->bus);
	mapping->bus = NULL;
}

static void nano_free(struct nano_client *client, struct nano_mapping *mapping)
{
	/* Pages that a process still sees would count as nobody's. */
	if (client->space && mapping->count)
		unmap_mapping_range(client->space, mapping->offset << PAGE_SHIFT,
				    (loff_t)mapping->count << PAGE_SHIFT, 1);
	nano_detach(client->nano, mapping);
	client->nano->pages -= mapping->count;
	client->pages -= mapping->count;
	while (mapping->count--) {
		put_page(mapping->pages[mapping->count]);
		cond_resched();
	}
	kvfree(mapping->pages);
	kfree(mapping);
}

/* The GPU has been reset since it last saw the tables. The pages stay, for the processor. */
void nano_detach_memory(struct nano_client *client)
{
	struct nano_mapping *mapping;
	unsigned long at = 0;

	if (client->tables)
		free_io_pgtable_ops(client->tables);
	client->tables = NULL;
	mt_for_each(&client->by_offset, mapping, at, ULONG_MAX)
		nano_detach(client->nano, mapping);
}

/* The same, and the pages are freed. */
void nano_free_memory(struct nano_client *client)
{
	struct nano_mapping *mapping;
	unsigned long at = 0;

	nano_detach_memory(client);
	mt_for_each(&client->by_offset, mapping, at, ULONG_MAX)
		nano_free(client, mapping);
	mtree_destroy(&client->by_va);
	mtree_destroy(&client->by_offset);
	client->table_pages = 0;
}

static int nano_fill(struct nano_client *client, struct nano_mapping *mapping, u64 pages)
{
	struct nano *nano = client->nano;

	for (; mapping->count < pages; mapping->count++, nano->pages++, client->pages++) {
		struct page *page;
		dma_addr_t bus;

		if (fatal_signal_pending(current))
			return -EINTR;
		page = alloc_page(GFP_KERNEL_ACCOUNT |
				  __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
		if (!page)
			return -ENOMEM;
		bus = dma_map_page(nano->dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(nano->dev, bus)) {
			put_page(page);
			return -EIO;
		}
		/* The opener was told that a coherent GPU sees what the processor writes. */
		if (nano->coherent && dma_need_sync(nano->dev, bus)) {
			dma_unmap_page(nano->dev, bus, PAGE_SIZE, DMA_BIDIRECTIONAL);
			put_page(page);
			dev_err_ratelimited(nano->dev,
					    "a page is out of the GPU's reach: it would see a copy (swiotlb)\n");
			return -EREMOTEIO;
		}
		mapping->pages[mapping->count] = page;
		mapping->bus[mapping->count] = bus;
		cond_resched();
	}
	return 0;
}

static int nano_enter(struct nano_client *client, struct nano_mapping *mapping, u32 flags)
{
	int prot = (flags & GPUREPLAY_NANO_READ ? IOMMU_READ : 0) |
		   (flags & GPUREPLAY_NANO_WRITE ? IOMMU_WRITE : 0) |
		   (flags & GPUREPLAY_NANO_EXECUTE ? 0 : IOMMU_NOEXEC);
	struct nano *nano = client->nano;
	unsigned long page;
	int ret = 0;

	if (!client->tables) {
		client->config = (struct io_pgtable_cfg) {
			.pgsize_bitmap = PAGE_SIZE,
			.ias = nano->va_bits,
			.oas = nano->bus_bits,
			.coherent_walk = nano->coherent,
			.iommu_dev = nano->dev,
		};
		client->tables = alloc_io_pgtable_ops(ARM_MALI_LPAE, &client->config, nano);
		if (!client->tables)
			return -ENOMEM;
	}
	for (page = 0; page < mapping->count && !ret; page++) {
		size_t mapped = 0;

		ret = client->tables->map_pages(client->tables, mapping->va + page * PAGE_SIZE,
						mapping->bus[page], PAGE_SIZE, 1, prot,
						GFP_KERNEL_ACCOUNT, &mapped);
		cond_resched();
	}
	return ret;
}

/* Whether the arguments make sense, before anything is charged for them. */
int nano_check_map(struct nano_client *client, const struct gpureplay_nano_map *map)
{
	const u32 access = GPUREPLAY_NANO_READ | GPUREPLAY_NANO_WRITE;
	const u32 both = GPUREPLAY_NANO_WRITE | GPUREPLAY_NANO_EXECUTE;
	u64 bytes, end;

	if (map->reserved || map->flags & ~(access | both) || !(map->flags & access) ||
	    (map->flags & both) == both || !map->pages || map->pages > totalram_pages() ||
	    !PAGE_ALIGNED(map->va) || check_mul_overflow(map->pages, (u64)PAGE_SIZE, &bytes) ||
	    check_add_overflow(map->va, bytes, &end) || end > BIT_ULL(client->nano->va_bits))
		return -EINVAL;
	return 0;
}

static bool nano_has_table(struct nano_client *client, u64 index, unsigned int shift)
{
	unsigned long at = index << (shift - PAGE_SHIFT);

	return mt_find(&client->by_va, &at, ((index + 1) << (shift - PAGE_SHIFT)) - 1);
}

/* Pages that page tables take for what is mapped here and shares no table with what is there. */
unsigned long nano_new_tables(struct nano_client *client, const struct gpureplay_nano_map *map)
{
	static const unsigned int shifts[] = { 21, 30, 39 };
	unsigned long sum = mtree_empty(&client->by_va);	/* the root */
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shifts); i++) {
		u64 first = map->va >> shifts[i];
		u64 last = (map->va + (map->pages << PAGE_SHIFT) - 1) >> shifts[i];

		sum += last - first + 1 - nano_has_table(client, first, shifts[i]);
		if (last != first)
			sum -= nano_has_table(client, last, shifts[i]);
	}
	return sum;
}

/* nano_check_map() has passed, and the pages and new tables are charged. */
int nano_map(struct nano_client *client, struct gpureplay_nano_map *map)
{
	unsigned long first = map->va >> PAGE_SHIFT, tables = nano_new_tables(client, map);
	struct nano *nano = client->nano;
	struct nano_mapping *mapping;
	int ret;

	if (client->active)	/* the GPU may hold copies of the tables */
		return -EBUSY;
	if (map->pages > (LLONG_MAX >> PAGE_SHIFT) - nano->next_offset)
		return -ENOSPC;
	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	mapping->va = map->va;
	mapping->offset = nano->next_offset;
	ret = mtree_insert_range(&client->by_va, first, first + map->pages - 1, mapping,
				 GFP_KERNEL_ACCOUNT);
	if (ret)		/* -EEXIST: something is mapped there */
		goto unknown;
	ret = mtree_insert_range(&client->by_offset, mapping->offset,
				 mapping->offset + map->pages - 1, mapping, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto nowhere;
	mapping->pages = kvcalloc(map->pages, sizeof(*mapping->pages), GFP_KERNEL_ACCOUNT);
	mapping->bus = kvcalloc(map->pages, sizeof(*mapping->bus), GFP_KERNEL_ACCOUNT);
	ret = mapping->pages && mapping->bus ? nano_fill(client, mapping, map->pages) : -ENOMEM;
	if (ret)
		goto empty;
	/* What fails from here on may be in the tables: it stays until RELEASE. */
	client->table_pages += tables;
	nano->next_offset += map->pages;
	map->mmap_offset = mapping->offset << PAGE_SHIFT;
	return nano_enter(client, mapping, map->flags);

empty:
	mtree_erase(&client->by_offset, mapping->offset);
nowhere:
	mtree_erase(&client->by_va, first);
unknown:
	nano_free(client, mapping);
	return ret;
}

/* Address space 0 shows the GPU what the opener has mapped, and nothing else. */
int nano_activate(struct nano_client *client)
{
	void __iomem *registers = client->nano->registers;
	u32 status;

	if (!client->tables)
		return -ENXIO;
	wmb();	/* entries are in memory before the GPU can walk them */
	lo_hi_writeq(client->config.arm_mali_lpae_cfg.transtab, registers + AS0_TRANSTAB);
	lo_hi_writeq(client->config.arm_mali_lpae_cfg.memattr, registers + AS0_MEMATTR);
	client->active = true;
	writel(1, registers + AS0_COMMAND);	/* UPDATE; the reset left no old translation */
	return readl_poll_timeout(registers + AS0_STATUS, status, !(status & 1), 1, 100000);
}

/* Only the bytes of the range: the processor may have written others of the same page. */
int nano_sync(struct nano_client *client, const struct gpureplay_nano_sync *sync)
{
	struct device *dev = client->nano->dev;
	struct nano_mapping *mapping;
	u64 at, end, length;

	if (sync->reserved || check_add_overflow(sync->va, sync->bytes, &end) ||
	    (sync->direction != GPUREPLAY_NANO_TO_GPU &&
	     sync->direction != GPUREPLAY_NANO_FROM_GPU))
		return -EINVAL;
	mapping = mtree_load(&client->by_va, sync->va >> PAGE_SHIFT);
	if (!mapping || end > mapping->va + mapping->count * PAGE_SIZE)
		return -ENOENT;
	for (at = sync->va; at < end; at += length) {
		dma_addr_t bus = mapping->bus[(at - mapping->va) >> PAGE_SHIFT];

		length = min_t(u64, PAGE_SIZE - offset_in_page(at), end - at);
		if (sync->direction == GPUREPLAY_NANO_TO_GPU)
			dma_sync_single_range_for_device(dev, bus, offset_in_page(at), length,
							 DMA_BIDIRECTIONAL);
		else
			dma_sync_single_range_for_cpu(dev, bus, offset_in_page(at), length,
						      DMA_BIDIRECTIONAL);
		cond_resched();
	}
	return 0;
}

/* Enters pages while the lock keeps them: RELEASE takes them out again. */
static vm_fault_t nano_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct nano_client *client = vma->vm_file->private_data;
	unsigned long at = vmf->address & PAGE_MASK, first, last, page;
	struct nano_mapping *mapping;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	guard(mutex)(&client->nano->lock);
	mapping = mtree_load(&client->by_offset, vmf->pgoff);
	if (!mapping)
		return VM_FAULT_SIGBUS;
	first = vmf->pgoff - mapping->offset;
	last = min(mapping->count, first + NANO_FAULT_AROUND);
	for (page = first; page < last && at < vma->vm_end; page++, at += PAGE_SIZE) {
		vm_fault_t one = vmf_insert_pfn(vma, at, page_to_pfn(mapping->pages[page]));

		if (page == first)
			ret = one;
		if (one != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

static const struct vm_operations_struct nano_page_operations = {
	.fault = nano_fault,
};

int nano_mmap(struct nano_client *client, struct vm_area_struct *vma)
{
	struct nano_mapping *mapping = mtree_load(&client->by_offset, vma->vm_pgoff);

	if (!mapping)
		return -EINVAL;
	if (vma_pages(vma) > mapping->count - (vma->vm_pgoff - mapping->offset))
		return -ENXIO;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &nano_page_operations;
	return 0;
}

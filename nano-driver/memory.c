// SPDX-License-Identifier: GPL-2.0
/* Pages for the GPU: scattered, zeroed, mapped for DMA, freed only after a reset or a flush. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nano.h"

static struct nano_mapping *nano_find(struct nano *nano, u64 va)
{
	struct nano_mapping *mapping;

	list_for_each_entry(mapping, &nano->mappings, node)
		if (mapping->va == va)
			return mapping;
	return NULL;
}

static void nano_free(struct nano *nano, struct nano_mapping *mapping)
{
	while (mapping->count--) {
		dma_unmap_page(nano->dev, mapping->bus[mapping->count], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
		put_page(mapping->pages[mapping->count]);
	}
	kvfree(mapping->bus);
	kvfree(mapping->pages);
	kfree(mapping);
}

static int nano_fill(struct nano *nano, struct nano_mapping *mapping, u64 pages)
{
	while (mapping->count < pages) {
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
		mapping->pages[mapping->count] = page;
		mapping->bus[mapping->count++] = bus;
		cond_resched();
	}
	return 0;
}

int nano_map(struct nano *nano, struct gpureplay_nano_map *map)
{
	const u32 all = GPUREPLAY_NANO_READ | GPUREPLAY_NANO_WRITE | GPUREPLAY_NANO_EXECUTE;
	const u32 both = GPUREPLAY_NANO_WRITE | GPUREPLAY_NANO_EXECUTE;
	struct nano_mapping *mapping, *other;
	u64 bytes, end, page;
	int ret;

	if (map->reserved || !map->flags || map->flags & ~all || (map->flags & both) == both)
		return -EINVAL;
	if (!map->pages || map->pages > totalram_pages() || !PAGE_ALIGNED(map->va) ||
	    check_mul_overflow(map->pages, (u64)PAGE_SIZE, &bytes) ||
	    check_add_overflow(map->va, bytes, &end) || end > BIT_ULL(NANO_VA_BITS))
		return -EINVAL;
	list_for_each_entry(other, &nano->mappings, node)
		if (map->va < other->va + ((u64)other->count << PAGE_SHIFT) && other->va < end)
			return -EEXIST;

	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	mapping->va = map->va;
	mapping->offset = nano->next_offset;
	mapping->pages = kvcalloc(map->pages, sizeof(*mapping->pages), GFP_KERNEL_ACCOUNT);
	mapping->bus = kvcalloc(map->pages, sizeof(*mapping->bus), GFP_KERNEL_ACCOUNT);
	ret = mapping->pages && mapping->bus ? nano_fill(nano, mapping, map->pages) : -ENOMEM;
	if (ret)
		goto free;
	if (nano->mode == GPUREPLAY_NANO_GUARDED) {
		for (page = 0; page < map->pages; page++) {
			ret = nano_table_set(nano, map->va + page * PAGE_SIZE, mapping->bus[page],
					     map->flags);
			if (ret)
				goto clear;
		}
		ret = nano_flush(nano);
		if (ret)
			goto clear;
	}
	list_add(&mapping->node, &nano->mappings);
	nano->next_offset += map->pages;
	map->mmap_offset = mapping->offset << PAGE_SHIFT;
	return 0;

clear:
	nano_table_clear(nano, map->va, map->pages);
	if (nano_flush(nano) && nano_reset(nano))
		return ret;	/* a GPU that cannot be stopped keeps the pages */
free:
	nano_free(nano, mapping);
	return ret;
}

int nano_unmap(struct nano *nano, u64 va)
{
	struct nano_mapping *mapping = nano_find(nano, va);

	if (!mapping)
		return -ENOENT;
	if (nano->mode == GPUREPLAY_NANO_GUARDED)
		nano_table_clear(nano, va, mapping->count);
	/* Direct mode cannot know what still points at the pages: stop the GPU. */
	if (nano->mode == GPUREPLAY_NANO_DIRECT || nano_flush(nano)) {
		int ret = nano_reset(nano);

		if (ret)
			return ret;
	}
	list_del(&mapping->node);
	nano_free(nano, mapping);
	return 0;
}

int nano_bus(struct nano *nano, const struct gpureplay_nano_bus *bus)
{
	struct nano_mapping *mapping = nano_find(nano, bus->va);
	u64 __user *to = u64_to_user_ptr(bus->addresses);
	u64 page;

	if (nano->mode != GPUREPLAY_NANO_DIRECT)
		return -EPERM;
	if (!mapping)
		return -ENOENT;
	if (bus->first > mapping->count || bus->count > mapping->count - bus->first)
		return -EINVAL;
	for (page = 0; page < bus->count; page++)
		if (put_user((u64)mapping->bus[bus->first + page], to + page))
			return -EFAULT;
	return 0;
}

int nano_sync(struct nano *nano, const struct gpureplay_nano_sync *sync)
{
	struct nano_mapping *mapping;
	u64 end, page;

	if (sync->reserved || check_add_overflow(sync->va, sync->bytes, &end) ||
	    (sync->direction != GPUREPLAY_NANO_TO_GPU &&
	     sync->direction != GPUREPLAY_NANO_FROM_GPU))
		return -EINVAL;
	list_for_each_entry(mapping, &nano->mappings, node) {
		u64 limit = mapping->va + ((u64)mapping->count << PAGE_SHIFT);

		if (sync->va < mapping->va || end > limit)
			continue;
		for (page = (sync->va - mapping->va) >> PAGE_SHIFT;
		     mapping->va + (page << PAGE_SHIFT) < end; page++) {
			if (sync->direction == GPUREPLAY_NANO_TO_GPU)
				dma_sync_single_for_device(nano->dev, mapping->bus[page],
							   PAGE_SIZE, DMA_BIDIRECTIONAL);
			else
				dma_sync_single_for_cpu(nano->dev, mapping->bus[page],
							PAGE_SIZE, DMA_BIDIRECTIONAL);
		}
		return 0;
	}
	return -ENOENT;
}

int nano_mmap_pages(struct nano *nano, struct vm_area_struct *vma)
{
	struct nano_mapping *mapping;

	list_for_each_entry(mapping, &nano->mappings, node) {
		if (vma->vm_pgoff < mapping->offset ||
		    vma->vm_pgoff >= mapping->offset + mapping->count)
			continue;
		vma->vm_pgoff -= mapping->offset;
		return vm_map_pages(vma, mapping->pages, mapping->count);
	}
	return -EINVAL;
}

/* The caller has reset the GPU. */
void nano_free_all(struct nano *nano)
{
	struct nano_mapping *mapping, *next;

	list_for_each_entry_safe(mapping, next, &nano->mappings, node) {
		list_del(&mapping->node);
		nano_free(nano, mapping);
	}
	nano_table_free(nano);
	nano->next_offset = 0;
}

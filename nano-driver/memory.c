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

#include "nano.h"

static void nano_free(struct nano_client *client, struct nano_mapping *mapping)
{
	struct nano *nano = client->nano;

	nano->pages -= mapping->count;
	client->pages -= mapping->count;
	while (mapping->count--) {
		dma_unmap_page(nano->dev, mapping->bus[mapping->count], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
		put_page(mapping->pages[mapping->count]);
		cond_resched();
	}
	kvfree(mapping->bus);
	kvfree(mapping->pages);
	kfree(mapping);
}

/* The GPU has been reset since it last saw the tables. */
void nano_free_memory(struct nano_client *client)
{
	struct nano_mapping *mapping, *next;

	if (client->tables)
		free_io_pgtable_ops(client->tables);
	client->tables = NULL;
	list_for_each_entry_safe(mapping, next, &client->mappings, node)
		nano_free(client, mapping);
	INIT_LIST_HEAD(&client->mappings);
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

int nano_map(struct nano_client *client, struct gpureplay_nano_map *map)
{
	const u32 access = GPUREPLAY_NANO_READ | GPUREPLAY_NANO_WRITE;
	const u32 both = GPUREPLAY_NANO_WRITE | GPUREPLAY_NANO_EXECUTE;
	struct nano_mapping *mapping, *other;
	u64 bytes, end;
	int ret;

	if (map->reserved || map->flags & ~(access | both) || !(map->flags & access) ||
	    (map->flags & both) == both || !map->pages || map->pages > totalram_pages() ||
	    !PAGE_ALIGNED(map->va) || check_mul_overflow(map->pages, (u64)PAGE_SIZE, &bytes) ||
	    check_add_overflow(map->va, bytes, &end) || end > BIT_ULL(client->nano->va_bits))
		return -EINVAL;
	if (client->active)	/* the GPU may hold copies of the tables */
		return -EBUSY;
	list_for_each_entry(other, &client->mappings, node)
		if (map->va < other->va + ((u64)other->count << PAGE_SHIFT) && other->va < end)
			return -EEXIST;

	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	mapping->va = map->va;
	mapping->offset = client->next_offset;
	mapping->pages = kvcalloc(map->pages, sizeof(*mapping->pages), GFP_KERNEL_ACCOUNT);
	mapping->bus = kvcalloc(map->pages, sizeof(*mapping->bus), GFP_KERNEL_ACCOUNT);
	ret = mapping->pages && mapping->bus ? nano_fill(client, mapping, map->pages) : -ENOMEM;
	if (ret) {
		nano_free(client, mapping);
		return ret;
	}
	/* What fails from here on may be in the tables: it stays until RELEASE. */
	list_add(&mapping->node, &client->mappings);
	client->next_offset += map->pages;
	map->mmap_offset = mapping->offset << PAGE_SHIFT;
	return client->mode == GPUREPLAY_NANO_GUARDED ?
		       nano_enter(client, mapping, map->flags) : 0;
}

/* Address space 0 shows the GPU what the opener has mapped, and nothing else. */
int nano_activate(struct nano_client *client)
{
	void __iomem *registers = client->nano->registers;
	u32 status;

	if (client->mode != GPUREPLAY_NANO_GUARDED)
		return -EPERM;
	if (!client->tables)
		return -ENXIO;
	wmb();	/* entries are in memory before the GPU can walk them */
	lo_hi_writeq(client->config.arm_mali_lpae_cfg.transtab, registers + AS0_TRANSTAB);
	lo_hi_writeq(client->config.arm_mali_lpae_cfg.memattr, registers + AS0_MEMATTR);
	client->active = true;
	writel(1, registers + AS0_COMMAND);	/* UPDATE; the reset left no old translation */
	return readl_poll_timeout(registers + AS0_STATUS, status, !(status & 1), 1, 100000);
}

int nano_bus(struct nano_client *client, const struct gpureplay_nano_bus *bus, u64 *addresses)
{
	struct nano_mapping *mapping;
	u32 page;

	if (client->mode != GPUREPLAY_NANO_DIRECT)
		return -EPERM;
	list_for_each_entry(mapping, &client->mappings, node) {
		if (mapping->va != bus->va)
			continue;
		if (bus->reserved || bus->first > mapping->count ||
		    bus->count > mapping->count - bus->first)
			return -EINVAL;
		for (page = 0; page < bus->count; page++)
			addresses[page] = mapping->bus[bus->first + page];
		return 0;
	}
	return -ENOENT;
}

int nano_sync(struct nano_client *client, const struct gpureplay_nano_sync *sync)
{
	struct device *dev = client->nano->dev;
	struct nano_mapping *mapping;
	u64 end, page;

	if (sync->reserved || check_add_overflow(sync->va, sync->bytes, &end) ||
	    (sync->direction != GPUREPLAY_NANO_TO_GPU &&
	     sync->direction != GPUREPLAY_NANO_FROM_GPU))
		return -EINVAL;
	list_for_each_entry(mapping, &client->mappings, node) {
		if (sync->va < mapping->va || end > mapping->va + mapping->count * PAGE_SIZE)
			continue;
		for (page = (sync->va - mapping->va) >> PAGE_SHIFT;
		     mapping->va + (page << PAGE_SHIFT) < end; page++) {
			if (sync->direction == GPUREPLAY_NANO_TO_GPU)
				dma_sync_single_for_device(dev, mapping->bus[page], PAGE_SIZE,
							   DMA_BIDIRECTIONAL);
			else
				dma_sync_single_for_cpu(dev, mapping->bus[page], PAGE_SIZE,
							DMA_BIDIRECTIONAL);
			cond_resched();
		}
		return 0;
	}
	return -ENOENT;
}

int nano_mmap_pages(struct nano_client *client, struct vm_area_struct *vma)
{
	unsigned long count = vma_pages(vma), first;
	struct nano_mapping *mapping;

	list_for_each_entry(mapping, &client->mappings, node) {
		if (vma->vm_pgoff < mapping->offset ||
		    vma->vm_pgoff >= mapping->offset + mapping->count)
			continue;
		first = vma->vm_pgoff - mapping->offset;
		if (count > mapping->count - first)
			return -ENXIO;
		return vm_insert_pages(vma, vma->vm_start, mapping->pages + first, &count);
	}
	return -EINVAL;
}

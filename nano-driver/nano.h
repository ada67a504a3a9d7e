/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the nano driver share. */
#ifndef NANO_H
#define NANO_H

#include <linux/device.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "gpureplay_nano.h"

#define GPU_INT_RAWSTAT		0x0020
#define GPU_INT_CLEAR		0x0024
#define GPU_COMMAND		0x0030
#define GPU_MMU_FEATURES	0x0014
#define JOB_INT_RAWSTAT		0x1000
#define MMU_INT_RAWSTAT		0x2000
#define INT_CLEAR		0x4	/* from a RAWSTAT register */
#define INT_MASK		0x8
#define INT_STAT		0xc
#define GPU_INT_RESET_DONE	BIT(8)
#define GPU_COMMAND_SOFT_RESET	1
#define GPU_COMMAND_HARD_RESET	2

#define NANO_LINES		3
#define NANO_VA_BITS		48

/* One interrupt line: what happened on it since user space last read. */
struct nano_line {
	struct nano *nano;
	struct gpureplay_nano_event event;
	u32 base;		/* offset of the RAWSTAT register */
};

/* Pages of one MAP request. */
struct nano_mapping {
	struct list_head node;
	struct page **pages;
	dma_addr_t *bus;
	u64 va;
	u64 offset;		/* first page of it in the file, for mmap() */
	unsigned long count;	/* pages allocated */
};

struct nano {
	struct kref references;	/* the driver's and the opener's */
	struct device *dev;
	struct miscdevice misc;
	void __iomem *registers;
	struct resource *window;
	struct clk_bulk_data *clocks;
	int clock_count;
	struct regulator *supply;
	struct reset_control *resets;
	bool coherent;
	bool dead;		/* the last reset failed: nothing may be freed */

	atomic_t opened;
	struct mutex lock;	/* everything below, one ioctl at a time */
	bool gone;		/* unbound while open: every call fails from now on */
	struct file *file;
	u32 mode;
	bool mode_chosen;
	bool active;		/* address space 0 points at `root` */
	struct list_head mappings;
	u64 next_offset;
	struct list_head tables;
	struct nano_table *root;

	spinlock_t event_lock;	/* lines[].event */
	struct nano_line lines[NANO_LINES];
	wait_queue_head_t events;
};

extern const struct file_operations nano_file_operations;

/* file.c */
void nano_revoke(struct nano *nano);

/* device.c */
void nano_put(struct nano *nano);
int nano_power_on(struct nano *nano);
void nano_power_off(struct nano *nano);
int nano_reset(struct nano *nano);

/* memory.c */
int nano_map(struct nano *nano, struct gpureplay_nano_map *map);
int nano_unmap(struct nano *nano, u64 va);
int nano_bus(struct nano *nano, const struct gpureplay_nano_bus *bus);
int nano_sync(struct nano *nano, const struct gpureplay_nano_sync *sync);
int nano_mmap_pages(struct nano *nano, struct vm_area_struct *vma);
void nano_free_all(struct nano *nano);

/* guard.c */
int nano_table_set(struct nano *nano, u64 va, dma_addr_t bus, u32 flags);
void nano_table_clear(struct nano *nano, u64 va, u64 pages);
void nano_table_free(struct nano *nano);
int nano_activate(struct nano *nano);
int nano_flush(struct nano *nano);
bool nano_write_allowed(u32 offset, u32 value);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the nano driver share. */
#ifndef NANO_H
#define NANO_H

#include <linux/device.h>
#include <linux/io.h>
#include <linux/io-pgtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "gpureplay_nano.h"

#define GPU_ID			0x0000
#define GPU_MMU_FEATURES	0x0014
#define GPU_INT_RAWSTAT		0x0020
#define GPU_COMMAND		0x0030
#define COHERENCY_ENABLE	0x0304
#define JOB_INT_RAWSTAT		0x1000
#define MMU_INT_RAWSTAT		0x2000
#define INT_CLEAR		0x4	/* from a RAWSTAT register */
#define INT_MASK		0x8
#define INT_STAT		0xc
#define AS0_TRANSTAB		0x2400
#define AS0_MEMATTR		0x2408
#define AS0_COMMAND		0x2418
#define AS0_FAULTSTATUS		0x241c
#define AS0_FAULTADDRESS	0x2420
#define AS0_STATUS		0x2428

#define NANO_LINES		3

/* Pages of one MAP request. */
struct nano_mapping {
	struct list_head node;
	struct page **pages;
	dma_addr_t *bus;
	u64 va;
	u64 offset;		/* first page of it in the file, for mmap() */
	unsigned long count;	/* pages allocated */
};

/* One opener. Everything under nano.lock. */
struct nano_client {
	struct nano *nano;
	struct list_head node;	/* nano.clients, or nano.orphans after it was closed */
	struct list_head turn;	/* nano.waiting, or empty */
	struct address_space *space;	/* where its mappings of registers are */
	u32 mode;
	bool mode_chosen;
	bool active;		/* address space 0 points at `tables` */
	struct list_head mappings;
	u64 next_offset;
	struct io_pgtable_cfg config;
	struct io_pgtable_ops *tables;
	unsigned long pages;	/* of all its mappings */

	struct mutex charge_lock;	/* taken before nano.lock; protects `charged` */
	struct mm_struct *mm;	/* whose locked memory they count as */
	unsigned long charged;	/* pages */
};

struct nano_line {
	struct nano *nano;
	u32 base;		/* offset of the RAWSTAT register */
	int irq;
};

struct nano {
	struct kref references;	/* the driver's and the openers' */
	struct device *dev;
	struct miscdevice misc;
	void __iomem *registers;
	struct resource *window;
	struct clk_bulk_data *clocks;
	int clock_count;
	struct reset_control *resets;
	struct nano_line lines[NANO_LINES];
	bool coherent;
	bool amlogic;		/* power of the cores is overridden after each reset */
	bool asleep;		/* no power: interrupts on shared lines are not ours */
	u32 gpu_id, va_bits, bus_bits;

	struct mutex lock;	/* everything below but the event */
	bool gone;		/* unbound: every call fails from now on */
	bool stuck;		/* the last reset failed: nothing may be freed */
	bool ready;		/* powered and reset for the owner */
	bool stale;		/* the machine slept: the owner has to reset */
	struct nano_client *owner;
	struct list_head waiting, clients, orphans;
	unsigned long pages;
	wait_queue_head_t wait;	/* events and turns */

	spinlock_t event_lock;	/* the event, shared with interrupts */
	struct gpureplay_nano_event event;
};

extern const struct file_operations nano_file_operations;

/* device.c */
void nano_put(struct nano *nano);
int nano_reset(struct nano *nano);
int nano_power_on(struct nano *nano);
void nano_power_off(struct nano *nano);

/* file.c */
void nano_revoke(struct nano *nano);

/* memory.c */
int nano_map(struct nano_client *client, struct gpureplay_nano_map *map);
int nano_bus(struct nano_client *client, const struct gpureplay_nano_bus *bus, u64 *addresses);
int nano_sync(struct nano_client *client, const struct gpureplay_nano_sync *sync);
int nano_activate(struct nano_client *client);
int nano_mmap_pages(struct nano_client *client, struct vm_area_struct *vma);
void nano_free_memory(struct nano_client *client);

/* guard.c */
bool nano_read_allowed(u32 offset);
bool nano_write_allowed(u32 gpu_id, u32 offset, u32 value);

#endif

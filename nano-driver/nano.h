/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the nano driver share. */
#ifndef NANO_H
#define NANO_H

#include <linux/device.h>
#include <linux/io.h>
#include <linux/io-pgtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "gpureplay_nano.h"

struct platform_device;

#if !IS_ENABLED(CONFIG_64BIT) || PAGE_SHIFT != 12
#error "the nano driver needs a 64-bit kernel with pages of 4 KiB (CONFIG_ARM64_4K_PAGES)"
#endif
#if !IS_ENABLED(CONFIG_PM)
#error "the nano driver needs CONFIG_PM: without it nothing switches the GPU's clocks on"
#endif
#if !IS_ENABLED(CONFIG_IOMMU_IO_PGTABLE_LPAE)
#error "the nano driver needs CONFIG_IOMMU_IO_PGTABLE_LPAE, whose code makes page tables"
#endif
#if !IS_ENABLED(CONFIG_OF) || !IS_ENABLED(CONFIG_HAS_DMA) || !IS_ENABLED(CONFIG_MMU)
#error "the nano driver needs CONFIG_OF, CONFIG_HAS_DMA and CONFIG_MMU"
#endif

#define GPU_ID			0x0000
#define GPU_MMU_FEATURES	0x0014
#define GPU_INT_RAWSTAT		0x0020
#define GPU_COMMAND		0x0030
#define L2_READY		0x0160
#define COHERENCY_ENABLE	0x0304
#define JOB_INT_RAWSTAT		0x1000
#define JOB_INT_JS_STATE	0x1010
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
	struct page **pages;
	dma_addr_t *bus;	/* NULL once the device is gone */
	u64 va;
	u64 offset;		/* first page of it in the file, for mmap() */
	unsigned long count;	/* pages allocated */
};

/* One opener. Everything under nano.lock, unless said otherwise. */
struct nano_client {
	struct nano *nano;
	struct list_head node;	/* nano.clients, or nano.orphans after it was closed */
	struct list_head turn;	/* nano.waiting, or empty */
	struct address_space *space;	/* where its pages are mapped; NULL after it was closed */
	bool active;		/* address space 0 points at `tables` */
	bool revoked;		/* it kept the GPU too long while others waited */
	struct io_pgtable_cfg config;
	struct io_pgtable_ops *tables;
	unsigned long pages;	/* of all its mappings */

	struct mutex charge_lock;	/* taken before nano.lock; all below, MAP and RELEASE */
	struct maple_tree by_va, by_offset;	/* mappings by page number; changed under both */
	unsigned long table_pages;	/* what page tables take; changed under both */
	struct mm_struct *mm;	/* whose locked memory they count as */
	unsigned long charged;	/* pages */
};

struct nano_line {
	struct nano *nano;
	u32 base;		/* offset of the RAWSTAT register */
	int irq;
};

struct nano {
	struct kref references;	/* the driver's, the openers', the orphans' */
	struct device *dev;
	struct miscdevice misc;
	int id;			/* part of the device's name, unless 0 */
	char name[24];
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

	struct mutex rate_lock;	/* operating points, highest first; none if NULL */
	unsigned long *rates;
	unsigned int rate_count, rate;

	spinlock_t clients_lock;	/* open() holds no lock that something slow holds */
	struct list_head clients;

	struct mutex lock;	/* everything below but the event */
	bool gone;		/* unbound, or lost in sleep: every call fails from now on */
	bool stuck;		/* the last reset failed: nothing may be freed */
	bool ready;		/* powered and reset for the owner */
	bool stale;		/* the machine slept: the owner has to reset */
	struct nano_client *owner;
	struct list_head waiting, orphans;
	struct delayed_work overdue;
	struct work_struct reap;
	unsigned long asked;	/* jiffies: since when the owner has been asked to yield */
	unsigned long worked;	/* jiffies: the owner's last request */
	u64 next_offset;	/* page of the file; never used twice */
	unsigned long pages;
	wait_queue_head_t wait;	/* events and turns */

	spinlock_t event_lock;	/* the event, shared with interrupts */
	struct gpureplay_nano_event event;
};

/* Each file uses what stands above its own part: a test checks it. */

/* guard.c */
bool nano_read_allowed(u32 offset);
bool nano_write_allowed(u32 gpu_id, u32 offset, u32 value);

/* rate.c */
int nano_rate_init(struct nano *nano);
int nano_rate_apply(struct nano *nano);

/* gpu.c */
void nano_put(struct nano *nano);
int nano_reset(struct nano *nano);
void nano_clean(struct nano *nano);
int nano_power_on(struct nano *nano);
int nano_fall_asleep(struct nano *nano);
void nano_power_off(struct nano *nano);
int nano_request_lines(struct nano *nano, struct platform_device *pdev);

/* memory.c */
int nano_check_map(struct nano_client *client, const struct gpureplay_nano_map *map);
unsigned long nano_new_tables(struct nano_client *client, const struct gpureplay_nano_map *map);
int nano_map(struct nano_client *client, struct gpureplay_nano_map *map);
int nano_sync(struct nano_client *client, const struct gpureplay_nano_sync *sync);
int nano_activate(struct nano_client *client);
int nano_mmap(struct nano_client *client, struct vm_area_struct *vma);
void nano_detach_memory(struct nano_client *client);
void nano_free_memory(struct nano_client *client);

/* file.c */
extern const struct file_operations nano_file_operations;
void nano_init_turns(struct nano *nano);
void nano_revoke(struct nano *nano);

#endif

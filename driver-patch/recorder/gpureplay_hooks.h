/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a GPU driver calls: the recorder's interface inside the kernel.
 *
 * Every hook is a no-op, or the plain kernel call that it stands for, while
 * nobody records. Hooks may be called in any context unless they say that
 * they sleep.
 */
#ifndef _GPUREPLAY_HOOKS_H
#define _GPUREPLAY_HOOKS_H

#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "gpureplay_trace.h"

struct address_space;
struct device;
struct dma_fence;
struct wait_queue_head;

/* True while somebody records: one patched branch per hook otherwise. */
DECLARE_STATIC_KEY_FALSE(gpureplay_recording);

static inline bool gpureplay_is_recording(void)
{
	return static_branch_unlikely(&gpureplay_recording);
}

/*
 * Call once, when the registers are mapped and before the first access. The
 * device is forgotten by itself when the driver lets go of @dev. An error
 * pointer in @registers is ignored, so that the call may stand in front of the
 * driver's own check.
 */
void gpureplay_attach(struct device *dev, void __iomem *registers,
		      enum gpureplay_driver driver);

/*
 * The same before the driver is bound, for a carrier that calls
 * gpureplay_detach() itself. Return: 0 or -EBUSY.
 */
int gpureplay_attach_unmanaged(struct device *dev, void __iomem *registers,
			       enum gpureplay_driver driver);
void gpureplay_detach(struct device *dev);

/*
 * @timeout (jiffies) kills a job that takes too long. It is raised while a
 * recording runs, because writing a job's memory to the log takes time, and
 * restored afterwards.
 */
void gpureplay_job_timeout(long *timeout);

/* The same for a count of ticks that a driver compares with. */
void gpureplay_job_ticks(u32 *ticks);

/*
 * For a carrier of probes: @missed counts those that the kernel has skipped so
 * far. It is asked before a recording ends; %NULL before the carrier goes.
 */
void gpureplay_count_missed(u64 (*missed)(void));

/* Register accesses: use the macros of gpureplay_mmio.h instead. */
void gpureplay_log_write(void __iomem *address, u64 value,
			 unsigned int width);
u64 gpureplay_log_read(const void __iomem *address,
		       unsigned int width);
void gpureplay_poll_begin(const void __iomem *address, u64 timeout_us);
void gpureplay_poll_end(const void __iomem *address, u64 timeout_us,
			int result);

/*
 * In the app's submission call, before its job is queued: gets memory, which
 * may take time and must not later, when others wait for the job. Sleeps.
 */
void gpureplay_prepare(void);

/*
 * Around the code that gives one job to slot @slot. Sleeps: the second job
 * waits until the first one has completed.
 */
void gpureplay_submit_begin(unsigned int slot);
void gpureplay_submit_end(unsigned int slot);

/*
 * In the app's submission call, when the job has been queued: sleeps until it
 * is done. Otherwise the app would prepare its next job meanwhile, and nobody
 * could tell its writes from the GPU's.
 */
void gpureplay_wait(struct dma_fence *done);

/* The same by a count of jobs: sleeps until it is zero, ten seconds at most. */
void gpureplay_wait_zero(struct wait_queue_head *queue, const u32 *count);

/*
 * After JS_CONFIG_NEXT was written and before the doorbell. Sleeps: writes the
 * address space's mapping and its changed pages to the log. A driver that
 * cannot sleep there leaves the call out; then its doorbell is rung later, when
 * that has been done.
 */
void gpureplay_submit_memory(unsigned int slot);

/*
 * Registers an interrupt handler, as devm_request_threaded_irq() does, with a
 * wrapper that logs entry and exit and, on the job line, what jobs have done.
 */
int gpureplay_request_irq(struct device *dev, unsigned int irq,
			  irq_handler_t handler, irq_handler_t thread,
			  unsigned long flags, const char *name, void *dev_id,
			  enum gpureplay_irq_line line);

/*
 * The same for drivers that free their interrupts themselves, and that have no
 * thread: on the job line, @handler runs in one when jobs have ended.
 */
int gpureplay_request_unmanaged_irq(unsigned int irq, irq_handler_t handler,
				    unsigned long flags, const char *name,
				    void *dev_id,
				    enum gpureplay_irq_line line);
void gpureplay_free_unmanaged_irq(unsigned int irq, void *dev_id);

/* Around a handler that cannot be wrapped; not on an interrupt thread. */
void gpureplay_irq_enter(enum gpureplay_irq_line line);
void gpureplay_irq_exit(enum gpureplay_irq_line line, irqreturn_t result);

/*
 * A driver's own switch that must have the value @pinned while a recording
 * runs; restored afterwards. Forgotten with the device.
 */
void gpureplay_pin_byte(u8 *value, u8 pinned);

/*
 * The driver's own way to keep the GPU powered, when runtime power management
 * does not decide: @hold is called now if a recording runs, and @release when
 * it ends. Forgotten with the device.
 */
void gpureplay_pin_power(void *driver, void (*hold)(void *driver),
			 void (*release)(void *driver));

/* Around every change of the GPU's page tables; never waits. */
void gpureplay_tables_lock(void);
void gpureplay_tables_unlock(void);

/* The driver's own announcement of a mapping; @as may be negative for none. */
void gpureplay_map(int as, u32 flags, u64 va, u64 size);
void gpureplay_unmap(int as, u32 flags, u64 va, u64 size);

/*
 * Buffer objects that an app maps through @operations, of which the driver
 * uses gpureplay_vm_operations instead: how the recorder knows what the app
 * has touched. Call before the first object is made.
 */
extern const struct vm_operations_struct gpureplay_vm_operations;
void gpureplay_wrap_mappings(const struct vm_operations_struct *operations);

/*
 * An object, which is vm_private_data of its mappings at @offset in @space, has
 * been mapped for the GPU at @va through the page tables @tables. Others use it
 * too if *@shared is not %NULL.
 */
void gpureplay_track(const void *object, const void *tables,
		     struct address_space *space, u64 offset,
		     void * const *shared, u64 va, u64 size);
/* It is no longer mapped there; its memory must still be its own. */
void gpureplay_untrack(const void *object, u64 va);

/*
 * Before gpureplay_submit_memory(): all objects that the job may write to,
 * if the driver knows them.
 */
void gpureplay_job_buffers(unsigned int slot, const void * const *objects,
			   unsigned int count);

#endif /* _GPUREPLAY_HOOKS_H */

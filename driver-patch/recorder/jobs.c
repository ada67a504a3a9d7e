// SPDX-License-Identifier: GPL-2.0
/*
 * Job slots: one job at a time, its memory before and after.
 *
 * A slot goes from free to running at the doorbell, to finished when its
 * memory and its COMPLETE record are in the log, and to free again when the
 * driver's interrupt handler has returned. Meanwhile the next submission waits
 * in gpureplay_submit_begin().
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/dma-fence.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "mali.h"
#include "recorder.h"

/* A job that takes longer is no longer waited for; the recording fails. */
#define JOB_WAIT_MS	120000

/* Software jobs may wait for the app's next call: it gets its turn. */
#define APP_WAIT_S	10

static unsigned long dumped;	/* slots: memory is in the log, no doorbell yet */
static unsigned long running;	/* slots: doorbell rung, not finished */
static unsigned long finished;	/* slots: COMPLETE written, not yet free */
static unsigned long pending;	/* slots: the driver saw that the job is over */
static atomic64_t completed = ATOMIC64_INIT(0);

static DECLARE_WAIT_QUEUE_HEAD(idle);

static DEFINE_MUTEX(submit_mutex);
static struct task_struct *submitter;	/* holds submit_mutex */

static bool jobs_are_idle(void)
{
	return !READ_ONCE(running) && !READ_ONCE(finished);
}

/* Forget the previous recording. */
void jobs_begin(void)
{
	WRITE_ONCE(dumped, 0);
	WRITE_ONCE(running, 0);
	WRITE_ONCE(finished, 0);
	WRITE_ONCE(pending, 0);
	atomic64_set(&completed, 0);
}

/* Nobody records any more: submissions need not wait. */
void jobs_end(void)
{
	wake_up_all(&idle);
}

u64 jobs_completed(void)
{
	return atomic64_read(&completed);
}

/* Sleeps. Return: false when a job still runs after the time given. */
bool jobs_wait_idle(unsigned int milliseconds)
{
	return wait_event_timeout(idle, jobs_are_idle() || !log_is_active(),
				  msecs_to_jiffies(milliseconds));
}

void gpureplay_submit_begin(unsigned int slot)
{
	if (!gpureplay_is_recording())
		return;
	mutex_lock(&submit_mutex);
	submitter = current;
	if (!jobs_wait_idle(JOB_WAIT_MS))
		log_error(GPUREPLAY_ERROR_OVERLAP, READ_ONCE(running));
	log_wait_room();
}
EXPORT_SYMBOL_GPL(gpureplay_submit_begin);

void gpureplay_submit_end(unsigned int slot)
{
	/* Only the task that took it sees itself here. */
	if (READ_ONCE(submitter) != current)
		return;
	submitter = NULL;
	mutex_unlock(&submit_mutex);
}
EXPORT_SYMBOL_GPL(gpureplay_submit_end);

void gpureplay_wait(struct dma_fence *done)
{
	/* A signal ends it early: the app's call must not fail for us. */
	if (gpureplay_is_recording() && log_is_active())
		dma_fence_wait(done, true);
}
EXPORT_SYMBOL_GPL(gpureplay_wait);

void gpureplay_wait_zero(struct wait_queue_head *queue, const u32 *count)
{
	if (gpureplay_is_recording() && log_is_active())
		wait_event_interruptible_timeout(*queue, !READ_ONCE(*count),
						 APP_WAIT_S * HZ);
}
EXPORT_SYMBOL_GPL(gpureplay_wait_zero);

static unsigned int slot_address_space(unsigned int slot)
{
	return registers_written(JOB_SLOT(slot) + JS_CONFIG_NEXT) &
	       JS_CONFIG_AS;
}

static void dump_before(unsigned int slot, bool may_sleep)
{
	if (dump_pages(slot_address_space(slot), slot, GPUREPLAY_PHASE_BEFORE,
		       may_sleep))
		set_bit(slot, &dumped);
}

void gpureplay_submit_memory(unsigned int slot)
{
	if (gpureplay_is_recording() && log_is_active() && slot < JOB_SLOTS)
		dump_before(slot, true);
}
EXPORT_SYMBOL_GPL(gpureplay_submit_memory);

/* Before the doorbell of @slot is rung; may not sleep. */
void jobs_doorbell(unsigned int slot)
{
	if (READ_ONCE(running))
		log_error(GPUREPLAY_ERROR_OVERLAP, READ_ONCE(running) | BIT(slot));
	if (!test_bit(slot, &dumped))
		dump_before(slot, false);
	if (!test_and_clear_bit(slot, &dumped))
		log_error(GPUREPLAY_ERROR_DUMP,
			  registers_written64(JOB_SLOT(slot) + JS_HEAD_NEXT));
}

/* In the same step as the doorbell itself, with the log locked. */
void jobs_doorbell_locked(unsigned int slot)
{
	u64 head = registers_written64(JOB_SLOT(slot) + JS_HEAD_NEXT);
	struct gpureplay_submit record = {
		.as = cpu_to_le32(slot_address_space(slot)),
		.chain_head = cpu_to_le64(head),
	};

	log_append(GPUREPLAY_SUBMIT, slot, &record, sizeof(record), NULL, 0);
	clear_bit(slot, &pending);
	set_bit(slot, &running);
}

/* The driver has read JOB_INT_RAWSTAT or JOB_INT_STAT. */
void jobs_events(u32 events)
{
	unsigned int slot;

	for (slot = 0; slot < JOB_SLOTS; slot++)
		if (events & JOB_INT_SLOT(slot) && test_bit(slot, &running))
			set_bit(slot, &pending);
}

/**
 * jobs_complete - log what the jobs did of which the driver knows they ended
 * @may_sleep: wait for a slow reader
 */
void jobs_complete(bool may_sleep)
{
	struct gpureplay_complete record = {};
	unsigned int slot;

	for (slot = 0; slot < JOB_SLOTS; slot++) {
		if (!test_and_clear_bit(slot, &pending))
			continue;
		/* JS_CONFIG_NEXT still describes it: nothing came after. */
		if (!dump_pages(slot_address_space(slot), slot,
				GPUREPLAY_PHASE_AFTER, may_sleep) &&
		    log_is_active())
			log_error(GPUREPLAY_ERROR_DUMP,
				  registers_written64(JOB_SLOT(slot) +
						      JS_HEAD_NEXT));
		record.status = cpu_to_le32(registers_read(JOB_SLOT(slot) +
							   JS_STATUS));
		log_record(GPUREPLAY_COMPLETE, slot, &record, sizeof(record));
		atomic64_inc(&completed);
		set_bit(slot, &finished);
		clear_bit(slot, &running);
	}
}

/*
 * The driver is about to acknowledge @events. A driver without an interrupt
 * thread has not passed jobs_complete() yet.
 */
void jobs_cleared(u32 events)
{
	jobs_events(events);
	if (!READ_ONCE(pending))
		return;
	jobs_complete(false);
	if (irq_context() == GPUREPLAY_CONTEXT_PROCESS)
		jobs_retire();
}

/* The driver's handler has returned: completed slots are free again. */
void jobs_retire(void)
{
	if (xchg(&finished, 0))
		wake_up_all(&idle);
}

/* The GPU was reset: whatever ran is gone. */
void jobs_reset(void)
{
	unsigned long lost = xchg(&running, 0);

	WRITE_ONCE(dumped, 0);
	WRITE_ONCE(pending, 0);
	if (lost)
		log_error(GPUREPLAY_ERROR_JOB_LOST, lost);
	wake_up_all(&idle);
}

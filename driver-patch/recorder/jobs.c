// SPDX-License-Identifier: GPL-2.0
/*
 * Job slots: one job at a time, its memory before and after.
 *
 * A slot goes from free to running at the doorbell, to finished when its
 * memory and its COMPLETE record are in the log, and to free again when the
 * driver's interrupt handler has returned. Meanwhile the next submission waits
 * in gpureplay_submit_begin().
 *
 * A driver that cannot sleep before its doorbell rings it with interrupts off.
 * Then the slot waits, and a worker rings the doorbell when the memory is in
 * the log: to the driver the job takes longer.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/dma-fence.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "mali.h"
#include "recorder.h"

/* A job that takes longer is no longer waited for; the recording fails. */
#define JOB_WAIT_MS	120000

/* Software jobs may wait for the app's next call: it gets its turn. */
#define APP_WAIT_S	10

static unsigned long dumped;	/* slots: memory is in the log, no doorbell yet */
static unsigned long waiting;	/* slots: the driver believes that it rang */
static unsigned long running;	/* slots: doorbell rung, not finished */
static unsigned long finished;	/* slots: COMPLETE written, not yet free */
static unsigned long pending;	/* slots: the driver saw that the job is over */
static atomic64_t completed = ATOMIC64_INIT(0);

static DECLARE_WAIT_QUEUE_HEAD(idle);

static DEFINE_MUTEX(submit_mutex);
static struct task_struct *submitter;	/* holds submit_mutex */

static bool jobs_are_idle(void)
{
	return !READ_ONCE(waiting) && !READ_ONCE(running) &&
	       !READ_ONCE(finished);
}

static struct ringer {
	struct work_struct work;
	unsigned int slot;
} ringers[JOB_SLOTS];

static struct workqueue_struct *ringing;

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

void gpureplay_prepare(void)
{
	if (gpureplay_is_recording() && log_is_active())
		dump_reserve();
}
EXPORT_SYMBOL_GPL(gpureplay_prepare);

void gpureplay_submit_begin(unsigned int slot)
{
	if (!gpureplay_is_recording())
		return;
	mutex_lock(&submit_mutex);
	submitter = current;
	if (!jobs_wait_idle(JOB_WAIT_MS))
		log_error(GPUREPLAY_ERROR_OVERLAP,
			  READ_ONCE(running) | READ_ONCE(waiting));
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

static void ring(unsigned int slot, unsigned long *if_waiting)
{
	u64 head = registers_written64(JOB_SLOT(slot) + JS_HEAD_NEXT);
	struct gpureplay_submit record = {
		.as = cpu_to_le32(slot_address_space(slot)),
		.chain_head = cpu_to_le64(head),
	};

	if (!test_and_clear_bit(slot, &dumped) && log_is_active())
		log_error(GPUREPLAY_ERROR_DUMP, head);
	clear_bit(slot, &pending);
	set_bit(slot, &running);
	if (!registers_submit(JOB_SLOT(slot) + JS_COMMAND_NEXT,
			      JS_COMMAND_START, slot, &record, if_waiting))
		clear_bit(slot, &running);
}

static void ring_later(struct work_struct *work)
{
	unsigned int slot = container_of(work, struct ringer, work)->slot;

	/* The handler that submitted it, after the job before, returns first. */
	wait_event_timeout(idle, !READ_ONCE(finished) || !log_is_active(),
			   msecs_to_jiffies(JOB_WAIT_MS));
	dump_before(slot, true);
	ring(slot, &waiting);
}

/* The driver rings the doorbell of @slot; may not sleep. */
static void doorbell(unsigned int slot)
{
	unsigned long others = READ_ONCE(running) | READ_ONCE(waiting);

	if (others)
		log_error(GPUREPLAY_ERROR_OVERLAP, others | BIT(slot));
	if (test_bit(slot, &dumped)) {
		ring(slot, NULL);
		return;
	}
	set_bit(slot, &waiting);
	queue_work(ringing, &ringers[slot].work);
}

/* The GPU is reset: whatever ran is gone. */
static void reset(void)
{
	unsigned long lost = xchg(&running, 0) | xchg(&waiting, 0);

	registers_reset();
	WRITE_ONCE(dumped, 0);
	WRITE_ONCE(pending, 0);
	if (lost)
		log_error(GPUREPLAY_ERROR_JOB_LOST, lost);
	wake_up_all(&idle);
}

/* The driver has read JOB_INT_RAWSTAT or JOB_INT_STAT. */
static void job_events(u32 events)
{
	unsigned int slot;

	for (slot = 0; slot < JOB_SLOTS; slot++)
		if (events & JOB_INT_SLOT(slot) && test_bit(slot, &running))
			set_bit(slot, &pending);
}

/**
 * jobs_have_ended - whether jobs have ended of which the driver does not know yet
 *
 * In the interrupt's handler.
 */
bool jobs_have_ended(void)
{
	/* While a job runs the GPU has power. */
	if (READ_ONCE(running) && log_is_active())
		job_events(registers_peek(JOB_INT_STAT));
	return READ_ONCE(pending);
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
 * The driver is about to acknowledge @events. One whose handlers are probed has
 * not passed jobs_complete() yet.
 */
static void acknowledged(u32 events)
{
	job_events(events);
	if (!READ_ONCE(pending))
		return;
	jobs_complete(false);
	if (context_now() == GPUREPLAY_CONTEXT_PROCESS)
		jobs_retire();
}

/* The driver's handler has returned: completed slots are free again. */
void jobs_retire(void)
{
	if (xchg(&finished, 0))
		wake_up_all(&idle);
}

/* Which register of which job slot that is. */
static bool is_slot_register(u32 offset, unsigned int *slot, u32 *reg)
{
	if (offset < JOB_SLOT(0) || offset >= JOB_SLOTS_END)
		return false;
	*slot = (offset - JOB_SLOT(0)) / (JOB_SLOT(1) - JOB_SLOT(0));
	*reg = offset - JOB_SLOT(*slot);
	return true;
}

static bool before_write(u32 offset, u32 value)
{
	unsigned int slot;
	u32 reg;

	if (is_slot_register(offset, &slot, &reg)) {
		if (reg == JS_COMMAND_NEXT && value == JS_COMMAND_START) {
			doorbell(slot);
			return true;
		}
		/* A command to a job that only the driver believes to run. */
		if (test_bit(slot, &waiting))
			log_error(GPUREPLAY_ERROR_OVERLAP,
				  READ_ONCE(waiting));
	} else if (offset == JOB_INT_CLEAR) {
		acknowledged(value);
	} else if (offset == GPU_COMMAND &&
		   (value == GPU_COMMAND_SOFT_RESET ||
		    value == GPU_COMMAND_HARD_RESET)) {
		reset();
	}
	return false;
}

static void after_read(u32 offset, u32 value)
{
	if (offset == JOB_INT_RAWSTAT || offset == JOB_INT_STAT)
		job_events(value);
}

static const struct register_events register_events = {
	.write = before_write,
	.read = after_read,
};

int jobs_create(void)
{
	unsigned int slot;

	for (slot = 0; slot < JOB_SLOTS; slot++) {
		ringers[slot].slot = slot;
		INIT_WORK(&ringers[slot].work, ring_later);
	}
	/* Reclaim may wait for a job. */
	ringing = alloc_workqueue("gpureplay_jobs", WQ_UNBOUND | WQ_MEM_RECLAIM,
				  0);
	return ringing ? 0 : -ENOMEM;
}

void jobs_destroy(void)
{
	destroy_workqueue(ringing);
}

/* Forget the previous recording. */
void jobs_begin(void)
{
	WRITE_ONCE(dumped, 0);
	WRITE_ONCE(waiting, 0);
	WRITE_ONCE(running, 0);
	WRITE_ONCE(finished, 0);
	WRITE_ONCE(pending, 0);
	atomic64_set(&completed, 0);
	registers_begin(&register_events);
}

/* Nobody records any more: submissions need not wait. Doorbells are rung. */
void jobs_end(void)
{
	unsigned int slot;

	wake_up_all(&idle);
	for (slot = 0; slot < JOB_SLOTS; slot++)
		flush_work(&ringers[slot].work);
}

/* The registers are about to go. */
void jobs_cancel(void)
{
	unsigned int slot;

	for (slot = 0; slot < JOB_SLOTS; slot++)
		cancel_work_sync(&ringers[slot].work);
	if (xchg(&waiting, 0))
		log_error(GPUREPLAY_ERROR_JOB_LOST, 0);
	wake_up_all(&idle);
}

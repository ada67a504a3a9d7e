// SPDX-License-Identifier: GPL-2.0
/*
 * The log: a ring of bytes between the hooks and the one reader.
 *
 * Hooks run anywhere, also in hard interrupts and under the driver's
 * spinlocks, so appending takes one raw spinlock and allocates nothing. Where
 * sleeping is possible the hooks call log_wait_room() first and thereby wait
 * for a slow reader; they leave a quarter of the ring free for the contexts
 * that cannot. Should even that run out, the records are counted, and an ERROR
 * record makes the recording fail.
 */
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "compat.h"
#include "recorder.h"

/* Always left for END and for the ERROR that reports lost records. */
#define LOG_LAST_RECORDS	256

/* A reader that sleeps is woken this much later, for several records at once. */
#define LOG_WAKE_JIFFIES	(HZ / 100 + 1)

enum log_phase {
	LOG_NONE,
	LOG_WAITING,	/* a reader, but no driver yet */
	LOG_ACTIVE,
	LOG_ENDED,
};

DEFINE_STATIC_KEY_FALSE(gpureplay_recording);
EXPORT_SYMBOL_GPL(gpureplay_recording);

DEFINE_RAW_SPINLOCK(log_lock);

/* Everything is protected by log_lock. */
static struct {
	enum log_phase phase;
	u8 *ring;
	u64 size;			/* a power of two */
	u64 head;			/* bytes ever appended */
	u64 tail;			/* bytes ever read */
	u64 records;
	u64 errors;
	u64 lost;			/* records, since the last ERROR */
	u64 blocked_ns;
	u64 early;			/* accesses before the first record */
	wait_queue_head_t readers;
	wait_queue_head_t writers;
} the_log = {
	.readers = __WAIT_QUEUE_HEAD_INITIALIZER(the_log.readers),
	.writers = __WAIT_QUEUE_HEAD_INITIALIZER(the_log.writers),
};

static void log_wake_reader(struct timer_list *timer)
{
	wake_up_interruptible(&the_log.readers);
}

static DEFINE_TIMER(log_wake_timer, log_wake_reader);

int log_create(size_t bytes)
{
	u8 *ring = vmalloc(bytes);
	unsigned long flags;

	if (!ring)
		return -ENOMEM;

	raw_spin_lock_irqsave(&log_lock, flags);
	the_log.ring = ring;
	the_log.size = bytes;
	the_log.head = 0;
	the_log.tail = 0;
	the_log.records = 0;
	the_log.errors = 0;
	the_log.lost = 0;
	the_log.blocked_ns = 0;
	the_log.early = 0;
	the_log.phase = LOG_WAITING;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return 0;
}

void log_destroy(void)
{
	unsigned long flags;
	u8 *ring;

	raw_spin_lock_irqsave(&log_lock, flags);
	ring = the_log.ring;
	the_log.ring = NULL;
	the_log.phase = LOG_NONE;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	timer_delete_sync(&log_wake_timer);
	vfree(ring);
}

static void ring_put(const void *bytes, size_t count)
{
	size_t at = the_log.head & (the_log.size - 1);
	size_t first = min_t(size_t, count, the_log.size - at);

	memcpy(the_log.ring + at, bytes, first);
	memcpy(the_log.ring, (const u8 *)bytes + first, count - first);
	the_log.head += count;
}

static void put_record(enum gpureplay_record_type type, u8 slot_or_line,
		       const void *payload, size_t payload_bytes,
		       const void *extra, size_t extra_bytes)
{
	static const u8 zeroes[8];
	size_t bytes = sizeof(struct gpureplay_record) + payload_bytes +
		       extra_bytes;
	size_t padding = -bytes & 7;
	struct gpureplay_record record = {
		.type = cpu_to_le16(type),
		.context = context_now(),
		.slot_or_line = slot_or_line,
		.length = cpu_to_le32(bytes + padding),
		.sequence = cpu_to_le64(the_log.records),
		.time_ns = cpu_to_le64(ktime_get_ns()),
	};

	ring_put(&record, sizeof(record));
	ring_put(payload, payload_bytes);
	ring_put(extra, extra_bytes);
	ring_put(zeroes, padding);
	the_log.records++;
	if (type == GPUREPLAY_ERROR)
		the_log.errors++;
	if (!timer_pending(&log_wake_timer))
		mod_timer(&log_wake_timer, jiffies + LOG_WAKE_JIFFIES);
}

static u64 ring_free(void)
{
	return the_log.size - (the_log.head - the_log.tail);
}

static void put_error(enum gpureplay_error_code code, u64 detail)
{
	struct gpureplay_error error = {
		.code = cpu_to_le32(code),
		.detail = cpu_to_le64(detail),
	};

	put_record(GPUREPLAY_ERROR, 0, &error, sizeof(error), NULL, 0);
}

/**
 * log_append - append one record, with log_lock held
 * @type: enum gpureplay_record_type
 * @slot_or_line: of the record's header
 * @payload: first part of the payload
 * @payload_bytes: its size
 * @extra: second part, may be %NULL
 * @extra_bytes: its size
 *
 * Does nothing unless a recording is active.
 */
void log_append(enum gpureplay_record_type type, u8 slot_or_line,
		const void *payload, size_t payload_bytes,
		const void *extra, size_t extra_bytes)
{
	size_t bytes = sizeof(struct gpureplay_record) + payload_bytes +
		       extra_bytes + 8;

	if (the_log.phase != LOG_ACTIVE)
		return;
	if (the_log.lost && ring_free() >= bytes + 2 * LOG_LAST_RECORDS) {
		put_error(GPUREPLAY_ERROR_LOG_FULL, the_log.lost);
		the_log.lost = 0;
	}
	if (the_log.lost || ring_free() < bytes + LOG_LAST_RECORDS)
		the_log.lost++;
	else
		put_record(type, slot_or_line, payload, payload_bytes, extra,
			   extra_bytes);
}

void log_record(enum gpureplay_record_type type, u8 slot_or_line,
		const void *payload, size_t payload_bytes)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&log_lock, flags);
	log_append(type, slot_or_line, payload, payload_bytes, NULL, 0);
	raw_spin_unlock_irqrestore(&log_lock, flags);
}

/**
 * log_page - log a page of GPU memory
 * @slot: the job slot on whose behalf
 * @page: where it is mapped
 * @bytes: its content, or %NULL when all are zero
 */
void log_page(u8 slot, const struct gpureplay_page *page, const void *bytes)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&log_lock, flags);
	log_append(GPUREPLAY_PAGE, slot, page, sizeof(*page), bytes,
		   bytes ? GPUREPLAY_PAGE_SIZE : 0);
	raw_spin_unlock_irqrestore(&log_lock, flags);
}

/**
 * log_error - make the recording fail
 * @code: what could not be recorded
 * @detail: depends on @code
 */
void log_error(enum gpureplay_error_code code, u64 detail)
{
	struct gpureplay_error error = {
		.code = cpu_to_le32(code),
		.detail = cpu_to_le64(detail),
	};

	pr_warn_ratelimited("gpureplay: recording is not complete: error %d, detail %#llx\n",
			    code, detail);
	log_record(GPUREPLAY_ERROR, 0, &error, sizeof(error));
}

void log_note(const char *format, ...)
{
	char text[256];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vscnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_record(GPUREPLAY_NOTE, 0, text, length);
}

/**
 * log_accepts - whether an access of the driver belongs into the log
 *
 * If not, it is counted: see log_early(). Called before each access.
 */
bool log_accepts(void)
{
	unsigned long flags;
	bool active;

	if (log_is_active())
		return true;
	raw_spin_lock_irqsave(&log_lock, flags);
	active = the_log.phase == LOG_ACTIVE;
	if (the_log.phase == LOG_WAITING)
		the_log.early++;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return active;
}

/* How many accesses came before the first record. */
u64 log_early(void)
{
	unsigned long flags;
	u64 early;

	raw_spin_lock_irqsave(&log_lock, flags);
	early = the_log.early;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return early;
}

/**
 * log_start - accept records from now on
 * @begin: the first record
 * @early: what log_early() has returned
 *
 * Return: false when there was another access since, which is not in the log.
 */
bool log_start(const struct gpureplay_begin *begin, u64 early)
{
	unsigned long flags;
	bool active;

	raw_spin_lock_irqsave(&log_lock, flags);
	if (the_log.phase == LOG_WAITING && the_log.early == early) {
		the_log.phase = LOG_ACTIVE;
		put_record(GPUREPLAY_BEGIN, 0, begin, sizeof(*begin), NULL, 0);
	}
	active = the_log.phase == LOG_ACTIVE;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return active;
}

static void log_finish(bool complete)
{
	struct gpureplay_end end;
	unsigned long flags;

	raw_spin_lock_irqsave(&log_lock, flags);
	if (the_log.phase == LOG_ACTIVE && complete) {
		if (the_log.lost)
			put_error(GPUREPLAY_ERROR_LOG_FULL, the_log.lost);
		end.records = cpu_to_le64(the_log.records);
		end.bytes = cpu_to_le64(the_log.head);
		put_record(GPUREPLAY_END, 0, &end, sizeof(end), NULL, 0);
	}
	the_log.phase = LOG_ENDED;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	wake_up(&the_log.writers);
	wake_up_interruptible(&the_log.readers);
}

/* Write END and accept no more records; what is there can still be read. */
void log_end(void)
{
	log_finish(true);
}

/* The reader has gone. */
void log_abort(void)
{
	log_finish(false);
}

bool log_is_active(void)
{
	return READ_ONCE(the_log.phase) == LOG_ACTIVE;
}

static bool log_has_room(void)
{
	unsigned long flags;
	bool room;

	raw_spin_lock_irqsave(&log_lock, flags);
	room = the_log.phase != LOG_ACTIVE ||
	       ring_free() > the_log.size / 4 + 2 * GPUREPLAY_PAGE_SIZE;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return room;
}

static void log_add_blocked(u64 begin)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&log_lock, flags);
	the_log.blocked_ns += ktime_get_ns() - begin;
	raw_spin_unlock_irqrestore(&log_lock, flags);
}

/**
 * log_wait_room - wait until the reader has made room for a record of any size
 *
 * Sleeps.
 *
 * Return: false when nothing is being recorded any more.
 */
bool log_wait_room(void)
{
	u64 begin;

	if (!log_has_room()) {
		begin = ktime_get_ns();
		wake_up_interruptible(&the_log.readers);
		wait_event_idle(the_log.writers, log_has_room());
		log_add_blocked(begin);
	}
	return log_is_active();
}

/**
 * log_wait_room_killable - the same for a task that may be killed
 *
 * Return: 0, or -ERESTARTSYS when it was.
 */
int log_wait_room_killable(void)
{
	wake_up_interruptible(&the_log.readers);
	return wait_event_killable(the_log.writers, log_has_room());
}

/* Bytes that can be read, or -1 when none are left and none will come. */
static s64 log_available(void)
{
	unsigned long flags;
	s64 bytes;

	raw_spin_lock_irqsave(&log_lock, flags);
	bytes = the_log.head - the_log.tail;
	if (!bytes && the_log.phase == LOG_ENDED)
		bytes = -1;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return bytes;
}

/**
 * log_read - take bytes out of the log
 * @buffer: user space
 * @bytes: its size
 * @wait: for records, when there are none
 *
 * Return: how many were read, 0 after the end, or a negative errno.
 */
ssize_t log_read(char __user *buffer, size_t bytes, bool wait)
{
	unsigned long flags;
	size_t at, first;
	s64 available;

	while (!(available = log_available())) {
		if (!wait)
			return -EAGAIN;
		if (wait_event_interruptible(the_log.readers, log_available()))
			return -ERESTARTSYS;
	}
	if (available < 0)
		return 0;

	/* Writers stay behind the tail, and there is only one reader. */
	bytes = min_t(u64, bytes, available);
	at = the_log.tail & (the_log.size - 1);
	first = min_t(size_t, bytes, the_log.size - at);
	if (copy_to_user(buffer, the_log.ring + at, first) ||
	    copy_to_user(buffer + first, the_log.ring, bytes - first))
		return -EFAULT;

	raw_spin_lock_irqsave(&log_lock, flags);
	the_log.tail += bytes;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	wake_up(&the_log.writers);
	return bytes;
}

__poll_t log_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &the_log.readers, table);
	return log_available() ? EPOLLIN | EPOLLRDNORM : 0;
}

/* How long the driver has waited for the reader. */
u64 log_blocked_ns(void)
{
	unsigned long flags;
	u64 blocked;

	raw_spin_lock_irqsave(&log_lock, flags);
	blocked = the_log.blocked_ns;
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return blocked;
}

/* Fills in what the log knows. */
void log_status(struct gpureplay_status *status)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&log_lock, flags);
	if (the_log.phase == LOG_NONE)
		status->state = GPUREPLAY_STATE_IDLE;
	else if (the_log.errors || the_log.lost)
		status->state = GPUREPLAY_STATE_FAILED;
	else if (the_log.phase == LOG_ENDED)
		status->state = GPUREPLAY_STATE_DRAINING;
	else
		status->state = GPUREPLAY_STATE_RECORDING;
	status->records = the_log.records;
	status->bytes = the_log.head;
	status->errors = the_log.errors;
	status->blocked_ns = the_log.blocked_ns;
	raw_spin_unlock_irqrestore(&log_lock, flags);
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the recorder's parts know of each other. Each calls only those below it;
 * what these have to tell goes up through callbacks.
 *
 *   chardev.c    /dev/gpureplay: open, read, poll, stop, status
 *   session.c    when a recording begins and ends
 *   irq.c        interrupt handlers
 *   jobs.c       job slots: one job at a time, doorbells, completions
 *   dump.c       pages that changed
 *   walk.c       the GPU's page tables
 *   touched.c    buffers of which it is known who can have changed them
 *   registers.c  register accesses, polling loops, shadow copies
 *   device.c     the attached GPU, its power and its job time-outs
 *   mappings.c   what the driver says that it maps
 *   probes.c     accesses that a carrier of probes has missed
 *   log.c        the ring between the driver and the reader
 *   context.c    which context a hook runs in
 */
#ifndef _GPUREPLAY_RECORDER_H
#define _GPUREPLAY_RECORDER_H

#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "gpureplay_hooks.h"

/* context.c */
void context_enter(enum gpureplay_irq_line line);
void context_leave(enum gpureplay_irq_line line);
enum gpureplay_context context_now(void);

/*
 * log.c. Records of contexts that must not sleep always find room, because the
 * others leave a quarter of the ring to them and wait for the reader instead.
 */
int log_create(size_t bytes);
void log_destroy(void);
bool log_accepts(void);
u64 log_early(void);
bool log_start(const struct gpureplay_begin *begin, u64 early);
void log_end(void);
void log_abort(void);
bool log_is_active(void);
bool log_wait_room(void);
int log_wait_room_killable(void);

/*
 * Held by log_append()'s caller: several records, or a record and the register
 * access that it tells of, become one step. May be taken anywhere.
 */
extern raw_spinlock_t log_lock;
void log_append(enum gpureplay_record_type type, u8 slot_or_line,
		const void *payload, size_t payload_bytes,
		const void *extra, size_t extra_bytes);

void log_record(enum gpureplay_record_type type, u8 slot_or_line,
		const void *payload, size_t payload_bytes);
void log_page(u8 slot, const struct gpureplay_page *page, const void *bytes);
void log_error(enum gpureplay_error_code code, u64 detail);
__printf(1, 2) void log_note(const char *format, ...);

ssize_t log_read(char __user *buffer, size_t bytes, bool wait);
__poll_t log_poll(struct file *file, poll_table *table);
void log_status(struct gpureplay_status *status);
u64 log_blocked_ns(void);

/* probes.c */
void probes_report(void);

/* device.c */
bool device_offset(const void __iomem *address, u32 *offset);
void __iomem *device_registers(void);
struct device *device_get(void);
bool device_is_attached(void);
bool device_is_coherent(void);
enum gpureplay_driver device_driver(void);
void device_on_gone(void (*gone)(void));
int device_begin(void);
void device_end(void);

/* registers.c */
struct register_events {
	/*
	 * Before a write, anywhere. Return: whether it is done already, or will
	 * be, by registers_submit().
	 */
	bool (*write)(u32 offset, u32 value);
	void (*read)(u32 offset, u32 value);
};

void registers_begin(const struct register_events *follower);
void registers_reset(void);
bool registers_submit(u32 offset, u32 value, unsigned int slot,
		      const struct gpureplay_submit *record,
		      unsigned long *waiting);
u32 registers_read(u32 offset);
u32 registers_peek(u32 offset);
u32 registers_written(u32 offset);
u64 registers_written64(u32 offset);
u32 registers_last_read(u32 offset);

/* walk.c */
struct mapped_page {
	u64 va;		/* bits 11..0: PAGE_* below */
	phys_addr_t phys;
	u64 hash;	/* of the content that the log holds, see PAGE_LOGGED */
};

#define PAGE_ACCESS	0x00f	/* GPUREPLAY_REGION_* */
#define PAGE_LOGGED	0x800	/* hash is valid */
#define PAGE_CHANGED	0x400	/* during a dump: the log may not hold it */
#define PAGE_CLEAN	0x200	/* during a dump: nobody can have changed it */
#define PAGE_VA		(~0xfffULL)

struct page_list {
	struct mapped_page *pages;	/* by ascending address */
	size_t count;
	size_t capacity;
};

enum walk_result {
	WALK_DONE,
	WALK_FULL,	/* the list is too small */
	WALK_BROKEN,	/* an ERROR record says why */
};

enum walk_result walk_tables(unsigned int as, struct page_list *list,
			     bool may_sleep);
bool walk_copy(void *to, phys_addr_t phys, void (*synchronise)(const void *page));
bool walk_is_current(long generation);
long walk_generation(void);

/* touched.c */
struct touched_audit {
	/* Keeps dumps out until end(). Return: whether look() may be called. */
	bool (*begin)(void);
	/* @touched: a bit for each page that the app may have written */
	void (*look)(u64 va, size_t pages, const unsigned long *touched);
	/* A buffer goes while nobody can look at it. Callers take turns. */
	void (*skip)(size_t pages);
	void (*end)(void);
};

void touched_create(const struct touched_audit *audit);
void touched_destroy(void);
void touched_before(struct page_list *list);
void touched_after(struct page_list *list, unsigned int slot);
bool touched_now(u64 va);
bool touched_gone(u64 va);
bool touched_knows_buffers(void);
size_t touched_pages(void);

/* dump.c */
int dump_create(void);
void dump_destroy(void);
void dump_reserve(void);
bool dump_pages(unsigned int as, u8 slot, u32 phase, bool may_sleep);
void dump_note(void);

/* jobs.c */
int jobs_create(void);
void jobs_destroy(void);
void jobs_begin(void);
void jobs_end(void);
void jobs_cancel(void);
bool jobs_wait_idle(unsigned int milliseconds);
bool jobs_have_ended(void);
void jobs_complete(bool may_sleep);
void jobs_retire(void);
u64 jobs_completed(void);

/* session.c */
int session_create(void);
void session_destroy(void);
int session_open(void);
void session_stop(void);
void session_close(void);
void session_status(struct gpureplay_status *status);

#endif /* _GPUREPLAY_RECORDER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the recorder's parts know of each other.
 *
 *   chardev.c    /dev/gpureplay: open, read, poll, stop, status
 *   session.c    when a recording begins and ends
 *   device.c     the attached GPU, its power and its job time-outs
 *   log.c        the ring between the driver and the reader
 *   registers.c  register accesses, polling loops, shadow copies
 *   irq.c        interrupt handlers, and which context a hook runs in
 *   jobs.c       job slots: one job at a time, doorbells, completions
 *   mappings.c   what the driver says that it maps
 *   touched.c    buffers of which it is known who can have changed them
 *   dump.c       pages that changed
 *   walk.c       the GPU's page tables
 *   probes.c     accesses that a carrier of probes has missed
 */
#ifndef _GPUREPLAY_RECORDER_H
#define _GPUREPLAY_RECORDER_H

#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "gpureplay_hooks.h"

/*
 * log.c. Records of contexts that must not sleep always find room, because the
 * others leave a quarter of the ring to them and wait for the reader instead.
 */
int log_create(size_t bytes);
void log_destroy(void);
void log_start(void);
void log_end(void);
void log_abort(void);
bool log_is_active(void);
bool log_wait_room(void);

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

/* session.c */
int session_open(void);
void session_stop(void);
void session_close(void);
void session_status(struct gpureplay_status *status);
void session_attached(void);

/* device.c */
bool device_offset(const void __iomem *address, u32 *offset);
void __iomem *device_registers(void);
struct device *device_get(void);
bool device_is_attached(void);
bool device_is_coherent(void);
enum gpureplay_driver device_driver(void);
const char *device_driver_name(void);
int device_begin(void);
void device_end(void);

/* registers.c */
void registers_begin(void);
u32 registers_read(u32 offset);
u32 registers_written(u32 offset);
u64 registers_written64(u32 offset);
u32 registers_last_read(u32 offset);

/* probes.c */
void probes_report(void);

/* irq.c */
enum gpureplay_context irq_context(void);

/* jobs.c */
void jobs_begin(void);
void jobs_end(void);
bool jobs_wait_idle(unsigned int milliseconds);
void jobs_doorbell(unsigned int slot);
void jobs_doorbell_locked(unsigned int slot);
void jobs_events(u32 events);
void jobs_complete(bool may_sleep);
void jobs_cleared(u32 events);
void jobs_retire(void);
void jobs_reset(void);
u64 jobs_completed(void);

/* dump.c */
int dump_create(void);
void dump_destroy(void);
bool dump_pages(unsigned int as, u8 slot, u32 phase, bool may_sleep);
bool dump_audit_begin(void);
void dump_audit_end(void);
void dump_audit(u64 va, size_t pages, const unsigned long *touched);
void dump_audit_skipped(size_t pages);
void dump_note(void);

/* walk.c */
struct mapped_page {
	u64 va;		/* bits 11..0: PAGE_* below */
	u64 bus;	/* address on the GPU's side of the bus */
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

enum walk_result walk_tables(struct device *dev, unsigned int as,
			     struct page_list *list, bool may_sleep);
bool walk_is_current(long generation);
long walk_generation(void);

/* touched.c */
void touched_before(struct page_list *list);
void touched_after(struct page_list *list, unsigned int slot);
bool touched_now(u64 va);
bool touched_gone(u64 va);
bool touched_knows_buffers(void);
void touched_destroy(void);

#endif /* _GPUREPLAY_RECORDER_H */

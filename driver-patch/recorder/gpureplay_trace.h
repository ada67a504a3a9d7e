/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The raw trace: what the recorder streams through /dev/gpureplay.
 *
 * A trace is a sequence of records. Every record starts with a struct
 * gpureplay_record, is a multiple of eight bytes long, and all fields are
 * little-endian. The sequence number starts at 0 with BEGIN and grows by one
 * per record, so a reader can prove that nothing is missing.
 */
#ifndef _GPUREPLAY_TRACE_H
#define _GPUREPLAY_TRACE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GPUREPLAY_TRACE_VERSION		1
#define GPUREPLAY_PAGE_SIZE		4096
#define GPUREPLAY_DEVICE_NAME		"gpureplay"
#define GPUREPLAY_NOTE_BYTES		4096	/* longest text of a NOTE */

/* No address space: the record belongs to none, or the driver did not say. */
#define GPUREPLAY_AS_NONE		0xffffffffU

enum gpureplay_record_type {
	GPUREPLAY_BEGIN		= 1,	/* struct gpureplay_begin, first record */
	GPUREPLAY_REG_READ	= 2,	/* struct gpureplay_register */
	GPUREPLAY_REG_WRITE	= 3,	/* struct gpureplay_register, logged before the write */
	GPUREPLAY_POLL_BEGIN	= 4,	/* struct gpureplay_poll: last_value and result are 0 */
	GPUREPLAY_POLL_END	= 5,	/* struct gpureplay_poll */
	GPUREPLAY_IRQ_ENTER	= 6,	/* struct gpureplay_irq: irqreturn is 0 */
	GPUREPLAY_IRQ_EXIT	= 7,	/* struct gpureplay_irq */
	GPUREPLAY_MAP		= 8,	/* struct gpureplay_mapping, announced by the driver */
	GPUREPLAY_UNMAP		= 9,	/* struct gpureplay_mapping, announced by the driver */
	GPUREPLAY_SUBMIT	= 10,	/* struct gpureplay_submit, before the doorbell */
	GPUREPLAY_REGION	= 11,	/* struct gpureplay_region, found by the page-table walk */
	GPUREPLAY_PAGE		= 12,	/* struct gpureplay_page and its bytes */
	GPUREPLAY_COMPLETE	= 13,	/* struct gpureplay_complete */
	GPUREPLAY_NOTE		= 14,	/* text, padded with NUL */
	GPUREPLAY_ERROR		= 15,	/* struct gpureplay_error: the trace is not complete */
	GPUREPLAY_END		= 16,	/* struct gpureplay_end, last record */
};

/* struct gpureplay_record.context: where the driver was when it happened. */
enum gpureplay_context {
	GPUREPLAY_CONTEXT_PROCESS	= 0,
	GPUREPLAY_CONTEXT_THREADED_IRQ	= 1,
	GPUREPLAY_CONTEXT_HARD_IRQ	= 2,
};

/* struct gpureplay_record.slot_or_line of IRQ records. */
enum gpureplay_irq_line {
	GPUREPLAY_LINE_JOB	= 0,
	GPUREPLAY_LINE_MMU	= 1,
	GPUREPLAY_LINE_GPU	= 2,
};

enum gpureplay_driver {
	GPUREPLAY_DRIVER_PANFROST	= 1,
	GPUREPLAY_DRIVER_KBASE		= 2,
	GPUREPLAY_DRIVER_PANTHOR	= 3,	/* in the app only */
};

/* struct gpureplay_begin.flags */
#define GPUREPLAY_BEGIN_COHERENT	0x001	/* the GPU snoops the CPU's caches */
#define GPUREPLAY_BEGIN_IN_APP		0x002	/* a library in the app recorded it */

/* struct gpureplay_region.flags */
#define GPUREPLAY_REGION_READ		0x001
#define GPUREPLAY_REGION_WRITE		0x002
#define GPUREPLAY_REGION_EXECUTE	0x004
#define GPUREPLAY_REGION_CPU_CACHED	0x008	/* CPU and GPU share it cached */
#define GPUREPLAY_REGION_FIRST		0x100	/* the list of this space starts anew */

/* struct gpureplay_page.phase */
#define GPUREPLAY_PHASE_BEFORE		0	/* before the doorbell */
#define GPUREPLAY_PHASE_AFTER		1	/* after completion */

/*
 * struct gpureplay_error.code. What struct gpureplay_error.detail holds is in
 * brackets.
 */
enum gpureplay_error_code {
	/* No room where sleeping is impossible [records lost] */
	GPUREPLAY_ERROR_LOG_FULL	= 1,
	/* A page table cannot be followed [entry] */
	GPUREPLAY_ERROR_WALK		= 2,
	/* A mapped page cannot be read [GPU VA] */
	GPUREPLAY_ERROR_PAGE		= 3,
	/* Unknown translation mode [TRANSTAB or TRANSCFG] */
	GPUREPLAY_ERROR_TRANSLATION	= 4,
	/* The kernel has no memory [bytes asked for] */
	GPUREPLAY_ERROR_MEMORY		= 5,
	/* A job began while another one ran [slots, one bit each] */
	GPUREPLAY_ERROR_OVERLAP		= 6,
	/* The GPU was set up before the recording [register offset] */
	GPUREPLAY_ERROR_LATE		= 7,
	/* A doorbell came without a dump before it [chain head] */
	GPUREPLAY_ERROR_DUMP		= 8,
	/* Jobs were lost in a reset, or never ended [slots, one bit each] */
	GPUREPLAY_ERROR_JOB_LOST	= 9,
	/* The kernel skipped a probe [times] */
	GPUREPLAY_ERROR_MISSED		= 10,
	/* A page changed that nobody can have changed: see "dirty" [GPU VA] */
	GPUREPLAY_ERROR_UNSEEN		= 11,
	/* Another process of the app gave the GPU work [process]; in the app only */
	GPUREPLAY_ERROR_PROCESS		= 12,
	/* A job uses memory whose creation was not seen [handle]; in the app only */
	GPUREPLAY_ERROR_OBJECT		= 13,
	/* The app uses JIT memory of kbase [requirements]; in the app only */
	GPUREPLAY_ERROR_JIT_MEMORY	= 14,
	/* The app submits a soft job or a render pass [requirements]; in the app only */
	GPUREPLAY_ERROR_SOFT_JOB	= 15,
	/* The app imports or aliases memory of kbase [GPU VA]; in the app only */
	GPUREPLAY_ERROR_IMPORTED	= 16,
	/* The app waits for kbase by epoll or io_uring [file]; in the app only */
	GPUREPLAY_ERROR_WAITS		= 17,
};

struct gpureplay_record {
	__le16 type;		/* enum gpureplay_record_type */
	__u8 context;		/* enum gpureplay_context */
	__u8 slot_or_line;	/* job slot, or enum gpureplay_irq_line */
	__le32 length;		/* bytes, with this header and padding */
	__le64 sequence;
	__le64 time_ns;		/* monotonic clock */
};

struct gpureplay_begin {
	__le32 version;		/* GPUREPLAY_TRACE_VERSION */
	__le32 page_size;	/* GPUREPLAY_PAGE_SIZE: of GPU pages and PAGE records */
	__le32 driver;		/* enum gpureplay_driver */
	__le32 flags;		/* GPUREPLAY_BEGIN_* */
	char driver_name[16];
	char kernel_release[64];
};

struct gpureplay_register {
	__le32 offset;		/* bytes from the start of the GPU's registers */
	__le32 value;
};

struct gpureplay_poll {
	__le32 offset;
	__le32 last_value;
	__le32 result;		/* signed: 0 or a negative errno */
	__le32 timeout_us;
};

struct gpureplay_irq {
	__le32 irqreturn;	/* 0 none, 1 handled, 2 wake thread */
	__le32 reserved;
};

struct gpureplay_mapping {
	__le32 as;
	__le32 flags;		/* the driver's own */
	__le64 va;
	__le64 size;		/* bytes */
};

struct gpureplay_submit {
	__le32 as;
	__le32 reserved;	/* bytes of a command stream; in the app only */
	__le64 chain_head;	/* GPU VA of the first job descriptor */
};

struct gpureplay_region {
	__le32 as;
	__le32 flags;		/* GPUREPLAY_REGION_* */
	__le64 va;
	__le64 pages;
};

struct gpureplay_page {
	__le32 as;
	__le32 phase;		/* GPUREPLAY_PHASE_* */
	__le64 va;
	/* GPUREPLAY_PAGE_SIZE bytes follow, or nothing when all are zero */
};

struct gpureplay_complete {
	__le32 status;		/* JS_STATUS */
	__le32 reserved;
};

struct gpureplay_error {
	__le32 code;		/* enum gpureplay_error_code */
	__le32 reserved;
	__le64 detail;
};

struct gpureplay_end {
	__le64 records;		/* before this one */
	__le64 bytes;		/* before this one */
};

/*
 * Control. Opening the device for reading starts a recording (one at a time;
 * -EBUSY otherwise), read() streams it, GPUREPLAY_IOC_STOP or writing "stop"
 * ends it (read() then returns what is left, END, and 0), and close() ends it
 * at once. A file opened for writing only never starts a recording: it may
 * stop the running one, ask for its status, and write "note TEXT", one NOTE
 * per write(), TEXT being printable ASCII of at most GPUREPLAY_NOTE_BYTES and
 * perhaps a newline. A note is dropped while nobody records. When no driver is bound yet the
 * recording begins with the driver's probe, and nothing is read until then.
 */
enum gpureplay_state {
	GPUREPLAY_STATE_IDLE		= 0,	/* nobody records */
	GPUREPLAY_STATE_RECORDING	= 1,
	GPUREPLAY_STATE_DRAINING	= 2,	/* stopped, END not yet read */
	GPUREPLAY_STATE_FAILED		= 3,	/* an ERROR record was written */
};

struct gpureplay_status {
	__u32 state;		/* enum gpureplay_state */
	__u32 driver;		/* enum gpureplay_driver, 0 while no driver is bound */
	__u64 records;
	__u64 bytes;
	__u64 jobs;		/* that completed */
	__u64 errors;		/* ERROR records */
	__u64 blocked_ns;	/* time the driver waited for the reader */
};

#define GPUREPLAY_IOC_STOP	_IO('G', 0x70)
#define GPUREPLAY_IOC_STATUS	_IOR('G', 0x71, struct gpureplay_status)

#ifdef __KERNEL__
#include <linux/build_bug.h>

static_assert(sizeof(struct gpureplay_record) == 24);
static_assert(sizeof(struct gpureplay_begin) == 96);
static_assert(sizeof(struct gpureplay_register) == 8);
static_assert(sizeof(struct gpureplay_poll) == 16);
static_assert(sizeof(struct gpureplay_irq) == 8);
static_assert(sizeof(struct gpureplay_mapping) == 24);
static_assert(sizeof(struct gpureplay_submit) == 16);
static_assert(sizeof(struct gpureplay_region) == 24);
static_assert(sizeof(struct gpureplay_page) == 16);
static_assert(sizeof(struct gpureplay_complete) == 8);
static_assert(sizeof(struct gpureplay_error) == 16);
static_assert(sizeof(struct gpureplay_end) == 16);
static_assert(sizeof(struct gpureplay_status) == 48);
#endif

#endif /* _GPUREPLAY_TRACE_H */

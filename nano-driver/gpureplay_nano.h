/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* What user space sees of the nano driver, /dev/gpureplay-nano: see INTERFACE.md. */
#ifndef GPUREPLAY_NANO_H
#define GPUREPLAY_NANO_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* What the driver can do, struct gpureplay_nano_info.features: there is no version number. */
#define GPUREPLAY_NANO_HAS_BASE		0x1	/* all that this header has */

/* Properties of the device, struct gpureplay_nano_info.flags. */
#define GPUREPLAY_NANO_COHERENT		0x1	/* the GPU snoops CPU caches: no sync is needed */

/* Needs no turn: every opener may ask. */
struct gpureplay_nano_info {
	__u32 features;		/* out: GPUREPLAY_NANO_HAS_* */
	__u32 flags;		/* out: GPUREPLAY_NANO_COHERENT */
	__u32 waiting;		/* out: 1 while an opener waits for its turn */
	__u32 idle_ms;		/* out: while one waits, an idle owner keeps the GPU so long */
	__u32 turn_ms;		/* out: while one waits, any owner keeps the GPU so long */
	__u32 reserved0;	/* in: 0 */
	__u64 pages;		/* out: pages that all openers hold, page tables not counted */
	__u64 free_bytes;	/* out: memory that the machine could give now */
	__u64 reserved[4];	/* in: 0 */
};

#define GPUREPLAY_NANO_WAIT	0x1	/* for the turn; EBUSY otherwise */

/* Takes the GPU, which is reset. One opener has it at a time. */
struct gpureplay_nano_acquire {
	__u32 flags;		/* in: WAIT or 0 */
	__u32 reserved0;	/* in: 0 */
	__u64 reserved[3];	/* in: 0 */
};

/* What the GPU may do with a mapping, struct gpureplay_nano_map.flags. */
#define GPUREPLAY_NANO_READ	0x1
#define GPUREPLAY_NANO_WRITE	0x2
#define GPUREPLAY_NANO_EXECUTE	0x4

/* Zeroed pages of the kernel's choice, mapped for the GPU at `va` until RELEASE. */
struct gpureplay_nano_map {
	__u64 va;		/* in: GPU virtual address, page aligned */
	__u64 pages;		/* in: number of 4 KiB pages */
	__u32 flags;		/* in: READ or WRITE, EXECUTE; never WRITE and EXECUTE */
	__u32 reserved;		/* in: 0 */
	__u64 mmap_offset;	/* out: where mmap() finds the pages */
};

/* Cache maintenance over a range of one mapping; nothing to do on coherent devices. */
#define GPUREPLAY_NANO_TO_GPU	1
#define GPUREPLAY_NANO_FROM_GPU	2

struct gpureplay_nano_sync {
	__u64 va;
	__u64 bytes;
	__u32 direction;
	__u32 reserved;
};

#define GPUREPLAY_NANO_MAX_ACCESSES	256

struct gpureplay_nano_access {
	__u32 offset;		/* register offset in bytes, a multiple of 4 */
	__u32 write;		/* 0 read, 1 write */
	__u32 value;		/* in for a write, out for a read */
	__u32 reserved;		/* 0 */
};

/* Register accesses, in order, each checked; a refused one ends the list with EPERM. */
struct gpureplay_nano_registers {
	__u64 list;		/* in: user pointer to struct gpureplay_nano_access[count] */
	__u32 count;		/* in: up to MAX_ACCESSES */
	__u32 done;		/* out: accesses carried out, 0 if the request was refused */
};

#define GPUREPLAY_NANO_LINE_JOB	0
#define GPUREPLAY_NANO_LINE_MMU	1
#define GPUREPLAY_NANO_LINE_GPU	2

/*
 * One per read(): the interrupts since the last read or reset. A line is masked in
 * its INT_MASK register from the interrupt until user space writes that register.
 */
struct gpureplay_nano_event {
	__u64 time_ns;		/* monotonic time of the latest interrupt */
	__u64 fault_address;	/* AS_FAULTADDRESS of address space 0, if the MMU interrupted */
	__u32 fault_status;	/* AS_FAULTSTATUS of address space 0, if the MMU interrupted */
	__u32 status[3];	/* INT_STAT values by line, ORed; 0: no interrupt */
	__u64 reserved[4];	/* 0 */
};

/* 'G' 0x80 to 0x89. 0x83 was BUS, of a mode that is gone: the number is not used again. */
#define GPUREPLAY_NANO_IOC_INFO		_IOWR('G', 0x80, struct gpureplay_nano_info)
#define GPUREPLAY_NANO_IOC_ACQUIRE	_IOW('G', 0x81, struct gpureplay_nano_acquire)
#define GPUREPLAY_NANO_IOC_MAP		_IOWR('G', 0x82, struct gpureplay_nano_map)
#define GPUREPLAY_NANO_IOC_SYNC		_IOW('G', 0x84, struct gpureplay_nano_sync)
#define GPUREPLAY_NANO_IOC_REGISTERS	_IOWR('G', 0x85, struct gpureplay_nano_registers)
#define GPUREPLAY_NANO_IOC_ACTIVATE	_IO('G', 0x86)	/* address space 0 to the tables */
#define GPUREPLAY_NANO_IOC_RESET	_IO('G', 0x87)	/* soft, then hard */
#define GPUREPLAY_NANO_IOC_RELEASE	_IO('G', 0x88)	/* reset, and free all mappings */
#define GPUREPLAY_NANO_IOC_YIELD	_IO('G', 0x89)	/* others first; memory stays */

#endif

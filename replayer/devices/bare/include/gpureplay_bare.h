/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Replays recordings of Mali GPUs inside of other firmware: no operating system, no allocator.
 *
 * Link libgpureplay_bare.a. It needs memcpy, memset and memcmp (it brings weak ones) and nothing else, uses no floating
 * point, contains no panic, and waits for nothing without a bound. After any error the GPU is reset.
 */
#ifndef GPUREPLAY_BARE_H
#define GPUREPLAY_BARE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the firmware gives. `context` is passed to every callback. */
struct gpureplay_device {
	void *context;
	uint32_t (*read32)(void *context, uint32_t offset);              /* GPU register at a byte offset */
	void (*write32)(void *context, uint32_t offset, uint32_t value); /* after all memory writes before it */
	uint64_t (*now_us)(void *context);                               /* never goes back */
	void (*wait_interrupt)(void *context, uint32_t timeout_us);      /* may return early; NULL: polling */
	void (*clean)(void *context, const void *bytes, size_t length);  /* the GPU sees them; NULL: coherent */
	void (*invalidate)(void *context, const void *bytes, size_t length); /* the processor sees them; NULL: coherent */
	void *arena;            /* pages for the GPU, aligned to 4096, nobody else's while a session is open */
	size_t arena_bytes;     /* all regions of the recording, and about 1/256 more for page tables */
	uint64_t arena_bus;     /* the arena's address as the GPU sees it */
	uint8_t aarch64_tables; /* 0: Mali LPAE page tables (panfrost's choice), 1: AArch64 (Arm's driver on Bifrost) */
	int (*cancelled)(void *context); /* not 0: the run in progress should end; asked while it waits. NULL: never */
};

/* Working memory of one session. Must not move between open and close. */
struct gpureplay_session {
	uint64_t opaque[36864 / 8];
} __attribute__((aligned(16)));

/* Dense, in C order, little-endian. A state is read before the first job and written after the last: the next run takes it from
 * there. A run that fails may have written some of them, so keep a copy until it has returned 0. */
struct gpureplay_io {
	int32_t index; /* from gpureplay_find */
	void *bytes;   /* read for inputs and weights, written for outputs, both for states */
	size_t length;
};

struct gpureplay_error {
	int32_t status; /* 0 none, 1 damaged recording, 2 recording not allowed, 3 GPU or memory, 4 tensors, 5 cancelled */
	uint32_t code;  /* 1: section; 2: rule, in the order of `gpureplay verify --rules`; 3, 4: kind of error */
	uint32_t index; /* 2: entry of its section; 3, 4: action, or 0xffffffff */
	uint32_t found; /* register, GPU status, tensor: what there is */
	uint64_t value; /* address or value, where there is one */
};

/* Checks every byte of a recording and every rule, and prepares a session. Touches no register. The recording stays where it is
 * until close; it needs no alignment. Returns error->status. */
int gpureplay_open(struct gpureplay_session *session, const struct gpureplay_device *device, const void *recording,
		   size_t length, struct gpureplay_error *error);

/* The index of a tensor; -1 if there is none of that name, or the name is NULL. */
int32_t gpureplay_find(const struct gpureplay_session *session, const char *name);

/* Runs once. A run that is cancelled ends as after an error. The first run, and the first after an error, also resets the GPU, maps and fills memory and powers it up.
 * Returns error->status. */
int gpureplay_run(struct gpureplay_session *session, struct gpureplay_io *tensors, size_t count,
		  struct gpureplay_error *error);

/* Switches the GPU off, resets it, and gives the arena back. Returns error->status. */
int gpureplay_close(struct gpureplay_session *session, struct gpureplay_error *error);

#ifdef __cplusplus
}
#endif
#endif

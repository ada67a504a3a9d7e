/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One OpenCL kernel, the data it runs on, and how its result is judged. */
#ifndef KERNEL_TEST_H
#define KERNEL_TEST_H

#include <stddef.h>

#define MAX_ARGUMENTS 8

/* How a buffer starts out. All fills are deterministic and tell every element apart as far as the type allows. */
enum fill {
	FILL_NONE,     /* ends a list of arguments */
	FILL_FLOAT,    /* distinct values in -4..4 */
	FILL_POSITIVE, /* distinct values in 0.25..4.25 */
	FILL_INT,      /* 32-bit patterns of both signs, none of them 0 */
	FILL_SMALL,    /* 32-bit integers in -100..100 with zeros among them */
	FILL_LONG,     /* 64-bit patterns of both signs */
	FILL_BYTES,    /* all byte values */
	FILL_ZERO,
	FILL_SENTINEL, /* a pattern that no kernel writes: an untouched output is seen */
	VALUE_INT,     /* not a buffer: an int passed by value */
	VALUE_FLOAT,
	VALUE_LONG,
	LOCAL_BYTES,   /* not a buffer: workgroup-local memory of that size */
};

struct argument {
	enum fill fill;
	size_t bytes; /* size of the buffer or of the local memory */
	double value; /* of a VALUE_ argument */
};

/* What the reference works on: copies of the buffers before the launch; it writes the expected contents there. */
struct launch {
	void *buffer[MAX_ARGUMENTS];
	const struct argument *argument;
	size_t global[3], local[3];
};

struct kernel_case {
	const char *file;   /* source, in the folder given to the checker */
	const char *kernel;
	void (*reference)(struct launch *launch);
	struct argument argument[MAX_ARGUMENTS];
	size_t global[3], local[3];
	double tolerance;   /* relative, for buffers of floats; 0: every bit counts */
};

extern const struct kernel_case own_cases[];

#endif

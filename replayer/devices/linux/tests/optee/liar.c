/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A library that an app preloads, as if the machine had OP-TEE with a trusted application that lies: results, origins and parameters are
 * random, and shared memory changes while a call is in progress. The kernel between them is honest: it makes the memory that
 * is asked for, and numbers it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONGEST 32
#define REQUEST(number) ((number) & 0xff)

static unsigned char *shared[LONGEST];
static size_t lengths[LONGEST];
static unsigned int count, busy;
static int device = -1;
static uint64_t state = 1;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

int open64(const char *path, int flags, ...)
{
	static int (*next)(const char *, int, ...);
	va_list rest;
	mode_t mode;

	if (!next)
		next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	va_start(rest, flags);
	mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
	va_end(rest);
	if (strncmp(path, "/dev/tee", 8))
		return next(path, flags, mode);
	state = strtoull(getenv("LIAR_SEED"), NULL, 10) * 2654435761u + 1;
	count = 0;
	return device = memfd_create("tee", MFD_CLOEXEC);
}

static int allocate(uint64_t *wanted)
{
	uint64_t size = wanted[0];
	int memory = memfd_create("shared", MFD_CLOEXEC);

	if (count == LONGEST || ftruncate(memory, size))
		return -1;
	shared[count] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	lengths[count] = size;
	((int32_t *)wanted)[3] = count++;
	return memory;
}

static void scribble(void)
{
	for (unsigned int i = 0; i < count; i++)
		for (size_t at = 0; at < lengths[i]; at += 1 + any() % 64)
			shared[i][at] = any();
}

/* Numbers that GlobalPlatform's interface has, and others. */
static uint32_t result(void)
{
	static const uint32_t known[] = { 0, 0, 0, 0, 0xffff0001, 0xffff0002, 0xffff0006, 0xffff0008, 0xffff000b,
		0xffff000c, 0xffff000e, 0xffff000f, 0xffff3072, 0xf0100005, 0xffff3024, 1 };

	/* Who is busy is asked again for a minute. */
	if (busy++ % 8 == 7)
		return 0xffff000d;
	return any() % 4 ? known[any() % 16] : (uint32_t)any();
}

static int invoke(const uint64_t *buffer)
{
	uint32_t *call = (uint32_t *)(uintptr_t)buffer[0];

	scribble();
	call[3] = result();
	call[4] = any();
	for (int word = 6; word < 6 + 4 * 8; word++)
		call[word] = any() % 2 ? any() : any() % 8;
	if (any() % 16 == 0) {
		errno = any() % 2 ? EIO : ENOMEM;
		return -1;
	}
	return 0;
}

int ioctl(int file, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	va_list rest;
	void *argument;

	if (!next)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	va_start(rest, request);
	argument = va_arg(rest, void *);
	va_end(rest);
	if (file != device || (request >> 8 & 0xff) != 0xa4)
		return next(file, request, argument);
	switch (REQUEST(request)) {
	case 0:
		memcpy(argument, (const uint32_t[]){ 1, (uint32_t)any(), (uint32_t)any() }, 12);
		return 0;
	case 1:
		return allocate(argument);
	case 2: {
		uint32_t *open = (uint32_t *)(uintptr_t)((uint64_t *)argument)[0];

		open[10] = any();
		open[11] = any() % 4 ? 0 : any();
		open[12] = any();
		return 0;
	}
	case 3:
		return invoke(argument);
	}
	return 0;
}

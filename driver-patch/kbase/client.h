/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What test clients of kbase (job manager, interface 11) share: requests and descriptors as they lie in memory, and a context.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE		4096u
#define TRACKING	(3 << 12)	/* Offset of the page that makes this process the owner. */
/* BASE_MEM_* */
#define CPU_READ	(1ull << 0)
#define CPU_WRITE	(1ull << 1)
#define GPU_READ	(1ull << 2)
#define GPU_WRITE	(1ull << 3)
#define GROW_ON_GPF	(1ull << 9)
#define SAME_VA		(1ull << 13)
#define REQUIRES_CS	(1u << 1)	/* BASE_JD_REQ_CS */
#define SOFT_JIT	(1u << 9 | 9)	/* BASE_JD_REQ_SOFT_JIT_ALLOC */
#define ON_FAILURE	(1u << 12)	/* BASE_JD_REQ_EVENT_ONLY_ON_FAILURE */
#define DONE		1u		/* BASE_JD_EVENT_DONE */
/* Values of job descriptors: types of a job and of what it writes. */
#define WRITE_VALUE	2u
#define IMMEDIATE_64	7u

struct version { uint16_t major, minor; };
struct flags { uint32_t flags; };
/* In: pages, pages with memory, pages that a fault adds, flags. Out: flags, address or offset. */
struct allocate { uint64_t words[4]; };
struct submit { uint64_t atoms; uint32_t count, stride; };
struct atom {
	uint64_t chain, user[2], resources;
	uint16_t resource_count;
	uint8_t jit[2], dependencies[4], number, priority, device, slot;
	uint32_t requirements;
};
struct event { uint32_t code; uint8_t atom, padding[3]; uint64_t user[2]; };
struct job {
	uint32_t status, first_incomplete;
	uint64_t fault;
	uint32_t type, dependencies;
	uint64_t next, target;
	uint32_t kind, padding;
	uint64_t value, unused;
};

_Static_assert(sizeof(struct atom) == 48 && sizeof(struct event) == 24, "as the driver has them");
_Static_assert(sizeof(struct job) == 64, "as the GPU has it");

#define CHECK_VERSION	_IOWR(0x80, 0, struct version)
#define SET_FLAGS	_IOW(0x80, 1, struct flags)
#define SUBMIT		_IOW(0x80, 2, struct submit)
#define ALLOCATE	_IOWR(0x80, 5, struct allocate)

static int fd;

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

/* Memory that CPU and GPU see at one address; a growing one has no page yet. */
static void *region(uint64_t pages, uint64_t more, int protection)
{
	uint64_t flags = CPU_WRITE | GPU_READ | GPU_WRITE | SAME_VA | more;
	struct allocate it = { { pages, pages, 0, flags } };

	if (more & GROW_ON_GPF)
		it = (struct allocate){ { pages, 0, 1, flags } };
	if (ioctl(fd, ALLOCATE, &it))
		return MAP_FAILED;
	return mmap(NULL, pages * PAGE, protection, MAP_SHARED, fd, it.words[1]);
}

/* Opens the device and makes its file a context. */
static int context(void)
{
	struct version version = { 11, 0xfff };
	struct flags flags = { 0 };

	fd = open("/dev/mali0", O_RDWR);
	if (fd < 0)
		return failed("/dev/mali0");
	if (ioctl(fd, CHECK_VERSION, &version) || ioctl(fd, SET_FLAGS, &flags))
		return failed("context");
	if (mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, fd, TRACKING) == MAP_FAILED)
		return failed("owner");
	return 0;
}

/* A job that writes 64 bits. */
static struct job write_value(unsigned int index, uint64_t next, void *target, uint64_t value)
{
	return (struct job){
		.type = 1 | WRITE_VALUE << 1 | index << 16,
		.next = next,
		.target = (uintptr_t)target,
		.kind = IMMEDIATE_64,
		.value = value,
	};
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A client of kbase (job manager, interface 11) whose memory has no pages until the GPU touches it. A chain of
 * WRITE_VALUE jobs writes across the end of a page; each page comes by a fault. Prints what memory has then, as bytes,
 * and ends with 0 if these are the values.
 *
 *	grow > values.bin
 *
 * The recorder's test runs it: faults in a trace, and pages that appear between a job's start and its end.
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
#define GROWING		16u		/* Pages. */
#define JOBS		16u
#define FIRST		(3 * PAGE - 64)	/* Where values begin in the growing memory. */
#define TRACKING	(3 << 12)	/* Offset of the page that makes this process the owner. */
/* BASE_MEM_* */
#define CPU_READ	(1ull << 0)
#define CPU_WRITE	(1ull << 1)
#define GPU_READ	(1ull << 2)
#define GPU_WRITE	(1ull << 3)
#define GROW_ON_GPF	(1ull << 9)
#define SAME_VA		(1ull << 13)
#define REQUIRES_CS	(1u << 1)	/* BASE_JD_REQ_CS */
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
	fprintf(stderr, "grow: %s: %s\n", what, strerror(errno));
	return 1;
}

/* Memory that CPU and GPU see at one address; a growing one has no page yet. */
static void *region(uint64_t pages, int grows)
{
	uint64_t flags = CPU_READ | CPU_WRITE | GPU_READ | GPU_WRITE | SAME_VA;
	struct allocate it = { { pages, pages, 0, flags } };

	if (grows)
		it = (struct allocate){ { pages, 0, 1, flags | GROW_ON_GPF } };
	if (ioctl(fd, ALLOCATE, &it))
		return MAP_FAILED;
	return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, it.words[1]);
}

static uint64_t value(unsigned int job)
{
	return (job + 1) * 0x9e3779b97f4a7c15ull;
}

int main(void)
{
	struct version version = { 11, 0xfff };
	struct flags flags = { 0 };
	struct pollfd wait = { .events = POLLIN };
	struct event event;
	struct job *jobs;
	uint64_t *found;
	char *memory;
	int wrong = 0;

	fd = open("/dev/mali0", O_RDWR);
	if (fd < 0)
		return failed("/dev/mali0");
	if (ioctl(fd, CHECK_VERSION, &version) || ioctl(fd, SET_FLAGS, &flags))
		return failed("context");
	if (mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, fd, TRACKING) == MAP_FAILED)
		return failed("owner");
	jobs = region(1, 0);
	memory = region(GROWING, 1);
	if (jobs == MAP_FAILED || memory == MAP_FAILED)
		return failed("memory");

	for (unsigned int n = 0; n < JOBS; n++)
		jobs[n] = (struct job){
			.type = 1 | WRITE_VALUE << 1 | (n + 1) << 16,
			.next = n + 1 < JOBS ? (uintptr_t)&jobs[n + 1] : 0,
			.target = (uintptr_t)memory + FIRST + 8 * n,
			.kind = IMMEDIATE_64,
			.value = value(n),
		};
	struct atom atom = {
		.chain = (uintptr_t)jobs, .number = 1, .requirements = REQUIRES_CS,
	};
	struct submit submit = { (uintptr_t)&atom, 1, sizeof(atom) };

	if (ioctl(fd, SUBMIT, &submit))
		return failed("submission");
	wait.fd = fd;
	if (poll(&wait, 1, 30000) != 1 || read(fd, &event, sizeof(event)) != sizeof(event))
		return failed("end of the chain");
	if (event.code != DONE) {
		fprintf(stderr, "grow: the chain ended with %#x\n", event.code);
		return 1;
	}
	found = (uint64_t *)(memory + FIRST);
	for (unsigned int n = 0; n < JOBS; n++)
		wrong += found[n] != value(n);
	if (fwrite(found, 8, JOBS, stdout) != JOBS || fflush(stdout))
		return failed("output");
	return wrong != 0;
}

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
#include "client.h"

#define GROWING		16u		/* Pages. */
#define JOBS		16u
#define FIRST		(3 * PAGE - 64)	/* Where values begin in the growing memory. */

static uint64_t value(unsigned int job)
{
	return (job + 1) * 0x9e3779b97f4a7c15ull;
}

int main(void)
{
	struct pollfd wait = { .events = POLLIN };
	struct event event;
	struct job *jobs;
	uint64_t *found;
	char *memory;
	int wrong = 0;

	if (context())
		return 1;
	jobs = region(1, CPU_READ, PROT_READ | PROT_WRITE);
	memory = region(GROWING, CPU_READ | GROW_ON_GPF, PROT_READ | PROT_WRITE);
	if (jobs == MAP_FAILED || memory == MAP_FAILED)
		return failed("memory");

	for (unsigned int n = 0; n < JOBS; n++)
		jobs[n] = write_value(n + 1, n + 1 < JOBS ? (uintptr_t)&jobs[n + 1] : 0,
				      memory + FIRST + 8 * n, value(n));
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

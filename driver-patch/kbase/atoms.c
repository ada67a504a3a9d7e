// SPDX-License-Identifier: GPL-2.0
/*
 * A client of kbase as libmali is one: one thread submits, another one waits for events and reads them. Each submission has
 * several atoms that depend on each other; some have no chain, and some give an event only if they fail. One region is
 * not for the processor to read. Prints the memory of the results, as bytes, and ends with 0 if each event came once and as it should.
 *
 *	atoms > values.bin
 *	atoms jit		submits an atom that asks for JIT memory, too
 *	atoms epoll		waits for the device by epoll, too
 *
 * The test of the recorder in user space runs it.
 */
#include <pthread.h>
#include <sys/epoll.h>

#include "client.h"

#define ROUNDS		8u
#define ATOMS		4u	/* Of a submission: a chain, a chain after it, one that only depends, a silent chain. */
#define EVENTS		(ATOMS - 1)

static unsigned int wrong;

/* Reads the events of all rounds, some of them at once. */
static void *reader(void *unused)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct event events[2];
	unsigned int seen = 0;

	(void)unused;
	while (seen < ROUNDS * EVENTS) {
		ssize_t bytes;

		if (seen % 2 && poll(&wait, 1, 60000) != 1) {
			failed("poll");
			wrong++;
			return NULL;
		}
		bytes = read(fd, events, sizeof(events));
		if (bytes < (ssize_t)sizeof(events[0])) {
			failed("read");
			wrong++;
			return NULL;
		}
		for (ssize_t n = 0; n < bytes / (ssize_t)sizeof(events[0]); n++, seen++) {
			unsigned int round = seen / EVENTS, atom = seen % EVENTS;

			wrong += events[n].code != DONE || events[n].atom != atom + 1 ||
				 events[n].user[0] != round || events[n].user[1] != atom;
		}
	}
	return NULL;
}

int main(int count, char **words)
{
	const char *more = count > 1 ? words[1] : "";
	struct job *jobs;
	uint64_t *values, *hidden;
	pthread_t thread;

	if (context())
		return 1;
	jobs = region(1, CPU_READ, PROT_READ | PROT_WRITE);
	values = region(1, CPU_READ, PROT_READ | PROT_WRITE);
	hidden = region(1, 0, PROT_WRITE);
	if (jobs == MAP_FAILED || values == MAP_FAILED || hidden == MAP_FAILED)
		return failed("memory");
	if (!strcmp(more, "epoll")) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &event))
			return failed("epoll");
	}
	if (pthread_create(&thread, NULL, reader, NULL))
		return failed("thread");
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct atom atoms[ATOMS] = { 0 };
		struct submit submit = { (uintptr_t)atoms, ATOMS, sizeof(atoms[0]) };

		/* The second chain overwrites what the first one wrote. */
		jobs[0] = write_value(1, 0, &values[round], 1);
		jobs[1] = write_value(1, 0, &values[round], 0x1234567800000000ull + round);
		jobs[2] = write_value(1, 0, &hidden[round], round);
		for (unsigned int n = 0; n < ATOMS; n++) {
			atoms[n].number = n + 1;
			atoms[n].user[0] = round;
			atoms[n].user[1] = n;
			atoms[n].requirements = n == 2 ? 0 : REQUIRES_CS;
			/* It needs what the one before it did. */
			atoms[n].dependencies[0] = n;
			atoms[n].dependencies[1] = n ? 1 : 0;
		}
		atoms[0].chain = (uintptr_t)&jobs[0];
		atoms[1].chain = (uintptr_t)&jobs[1];
		atoms[3].chain = (uintptr_t)&jobs[2];
		atoms[3].requirements |= ON_FAILURE;
		if (ioctl(fd, SUBMIT, &submit))
			return failed("submission");
		/* The chains lie where those of the next round will. */
		for (int waited = 0; *(volatile uint32_t *)&jobs[2].status == 0; waited++) {
			if (waited == 60000) {
				fprintf(stderr, "the last chain does not end\n");
				return 1;
			}
			usleep(1000);
		}
	}
	if (!strcmp(more, "jit")) {
		struct atom atom = { .number = 9, .requirements = SOFT_JIT };
		struct submit submit = { (uintptr_t)&atom, 1, sizeof(atom) };

		/* It fails, for it says nothing of the memory that it wants. */
		ioctl(fd, SUBMIT, &submit);
	}
	if (pthread_join(thread, NULL))
		return failed("join");
	for (unsigned int round = 0; round < ROUNDS; round++)
		wrong += values[round] != 0x1234567800000000ull + round;
	/* Its pages go with the mapping. */
	if (munmap(hidden, PAGE))
		return failed("munmap");
	if (fwrite(values, 8, ROUNDS, stdout) != ROUNDS || fflush(stdout))
		return failed("output");
	if (wrong)
		fprintf(stderr, "%u events or values are wrong\n", wrong);
	return wrong != 0;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A client of kbase as libmali is one: one thread submits, another one waits for events and reads them. Each submission has
 * several atoms that depend on each other; some have no chain, and some give an event only if they fail. One region is
 * not for the processor to read. Prints the memory of the results, as bytes, and ends with 0 if each event came once and as it should.
 *
 *	atoms > values.bin
 *	atoms jit		submits an atom that asks for JIT memory, too
 *	atoms epoll		waits for the device by epoll, too
 *	atoms ring		registers the device with a ring of io_uring, too
 *	atoms select		waits by select, and reads by readv
 *	atoms pselect		waits by pselect, and reads by pread and preadv2
 *
 * The test of the recorder in user space runs it.
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "client.h"

#define ROUNDS		8u
#define ATOMS		4u	/* Of a submission: a chain, a chain after it, one that only depends, a silent chain. */
#define EVENTS		(ATOMS - 1)

static unsigned int wrong;
static const char *more = "";

/* Waits for an event, and for no more than there is; 1 if there is one. */
static int waits(void)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	fd_set read, write;
	int found;

	FD_ZERO(&read);
	FD_SET(fd, &read);
	FD_ZERO(&write);
	if (!strcmp(more, "select")) {
		struct timeval time = { .tv_sec = 60 };

		found = select(fd + 1, &read, &write, NULL, &time);
		return found == 1 && FD_ISSET(fd, &read) && time.tv_sec < 60;
	}
	if (!strcmp(more, "pselect")) {
		struct timespec time = { .tv_sec = 60 };

		found = pselect(fd + 1, &read, NULL, NULL, &time, NULL);
		return found == 1 && FD_ISSET(fd, &read);
	}
	return poll(&one, 1, 60000) == 1;
}

/* Reads one or two events. */
static ssize_t reads(struct event *events, unsigned int turn)
{
	struct iovec parts[] = {
		{ events, sizeof(events[0]) },
		{ NULL, 0 },
		{ events + 1, sizeof(events[0]) },
	};

	if (!strcmp(more, "select"))
		return readv(fd, parts, 3);
	if (!strcmp(more, "pselect"))
		return turn & 2 ? preadv2(fd, parts, 2, -1, 0) : pread(fd, events, sizeof(events[0]), 0);
	return read(fd, events, 2 * sizeof(events[0]));
}

/* Reads the events of all rounds, some of them at once. */
static void *reader(void *unused)
{
	struct event events[2];
	unsigned int seen = 0;

	(void)unused;
	for (unsigned int turn = 0; seen < ROUNDS * EVENTS; turn++) {
		ssize_t bytes;

		if (turn % 2 && !waits()) {
			failed("wait");
			wrong++;
			return NULL;
		}
		bytes = reads(events, turn);
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
	struct job *jobs;
	uint64_t *values, *hidden;
	pthread_t thread;

	if (count > 1)
		more = words[1];
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
	if (!strcmp(more, "ring")) {
		struct io_uring_params params = { 0 };
		long ring = syscall(SYS_io_uring_setup, 4, &params);

		/* It has no function in the C library. */
		if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1))
			return failed("ring");
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

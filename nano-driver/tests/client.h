/* SPDX-License-Identifier: GPL-2.0 */
/* A small client of the nano driver for its tests: pages, registers, and a job that writes one value. */
#ifndef CLIENT_H
#define CLIENT_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../gpureplay_nano.h"

#define DEVICE	"/dev/gpureplay-nano"
#define RW	(GPUREPLAY_NANO_READ | GPUREPLAY_NANO_WRITE)

/* A GPU with two pages to write (job, then values) and one that the GPU may only read. */
struct client {
	int fd;
	char *pages;
	char *constant;
	__u64 va;
};

static int client_open(void)
{
	struct gpureplay_nano_acquire acquire = {};
	int fd = open(DEVICE, O_RDWR);

	if (fd < 0 || ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire)) {
		printf("Bail out! %s: %s\n", DEVICE, strerror(errno));
		exit(1);
	}
	return fd;
}

static int client_try_map(int fd, __u64 va, __u64 pages, __u32 flags)
{
	struct gpureplay_nano_map map = { .va = va, .pages = pages, .flags = flags };

	return ioctl(fd, GPUREPLAY_NANO_IOC_MAP, &map);
}

static char *client_map(int fd, __u64 va, __u64 pages, __u32 flags)
{
	struct gpureplay_nano_map map = { .va = va, .pages = pages, .flags = flags };
	void *at;

	if (ioctl(fd, GPUREPLAY_NANO_IOC_MAP, &map))
		return NULL;
	at = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, map.mmap_offset);
	return at == MAP_FAILED ? NULL : at;
}

static __u32 client_access(int fd, __u32 offset, __u32 write, __u32 value)
{
	struct gpureplay_nano_access access = { offset, write, value, 0 };
	struct gpureplay_nano_registers list = { .list = (__u64)&access, .count = 1 };

	if (ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list)) {
		printf("Bail out! register %#x: %s\n", offset, strerror(errno));
		exit(1);
	}
	return access.value;
}

static __u32 client_read(int fd, __u32 offset)
{
	return client_access(fd, offset, 0, 0);
}

static void client_write(int fd, __u32 offset, __u32 value)
{
	client_access(fd, offset, 1, value);
}

/* Pages, power and interrupts for a GPU that has been reset. */
static void client_prepare(struct client *client, __u64 va, __u64 constant)
{
	static const __u32 domains[][3] = { { 0x120, 0x1a0, 0x160 }, { 0x100, 0x180, 0x140 } };

	client->va = va;
	client->pages = client_map(client->fd, va, 2, RW);
	client->constant = client_map(client->fd, constant, 1, GPUREPLAY_NANO_READ);
	if (!client->pages || !client->constant || ioctl(client->fd, GPUREPLAY_NANO_IOC_ACTIVATE)) {
		printf("Bail out! pages of the GPU: %s\n", strerror(errno));
		exit(1);
	}
	for (int i = 0; i < 2; i++) {	/* L2, then shader cores */
		__u32 present = client_read(client->fd, domains[i][0]);

		client_write(client->fd, domains[i][1], present);
		for (int tries = 0; tries < 1000 && client_read(client->fd, domains[i][2]) != present; tries++)
			usleep(100);
	}
}

static void client_start(struct client *client, __u64 va, __u64 constant)
{
	client->fd = client_open();
	client_prepare(client, va, constant);
}

static void client_unmap(struct client *client)
{
	munmap(client->pages, 2 * 4096);
	munmap(client->constant, 4096);
}

/* Mapped pages keep the device open. */
static void client_end(struct client *client)
{
	client_unmap(client);
	close(client->fd);
}

/* A WRITE_VALUE job of 32 bits. */
static void client_fill_job(void *at, __u64 target, __u64 value)
{
	const __u32 header[8] = { 0, 0, 0, 0, 1 | 2 << 1 | 1 << 16, 0, 0, 0 };
	const __u64 payload[3] = { target, 6, value };

	memcpy(at, header, sizeof(header));
	memcpy((char *)at + 32, payload, sizeof(payload));
}

/* Runs the chain at `head` on slot 1: 0 when it is done, 1 when it faulted or did not end. */
static int client_submit(struct client *client, __u64 head)
{
	client_write(client->fd, 0x1004, ~0u);
	client_write(client->fd, 0x18d0, client_read(client->fd, 0x100));
	client_write(client->fd, 0x18d4, 0);
	client_write(client->fd, 0x18d8, 8 << 16 | 3 << 12 | 3 << 8);
	client_write(client->fd, 0x18c0, head);
	client_write(client->fd, 0x18c4, head >> 32);
	client_write(client->fd, 0x18e0, 1);
	for (int tries = 0; tries < 2000; tries++) {
		__u32 jobs = client_read(client->fd, 0x1000);

		if (client_read(client->fd, 0x2000) || jobs & 1 << 17)
			return 1;
		if (jobs & 1 << 1)
			return 0;
		usleep(500);
	}
	return 1;
}

static int client_write_job(struct client *client, __u64 target, __u64 value)
{
	client_fill_job(client->pages, target, value);
	return client_submit(client, client->va);
}

static __u64 client_physical(const void *at)
{
	__u64 entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0 || pread(fd, &entry, 8, (__u64)at / 4096 * 8) != 8)
		entry = 0;
	close(fd);
	return (entry & ((1ull << 55) - 1)) * 4096;
}

static void client_send(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	sendmsg(socket, &message, 0);
}

static int client_receive(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) > 0 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

#endif

// SPDX-License-Identifier: GPL-2.0
/*
 * A client of the nano driver's guarded mode that means harm. Everything that it tries must be refused, the GPU
 * must fault where it was given no page, and afterwards the GPU must work and no page be in use.
 *
 *	hostile [SECONDS [SEED]]	checks, then random requests for SECONDS
 *
 * Ends with 0 when all held. Needs root: it looks up physical addresses to aim at.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

static int passed, failed;

static void check(int good, const char *what)
{
	if (good)
		passed++;
	else
		failed++;
	if (!good)
		printf("FAIL %s (errno %d: %s)\n", what, errno, strerror(errno));
}

static void refused(int result, int error, const char *what)
{
	check(result < 0 && errno == error, what);
}

static __u64 pages_in_use(void)
{
	struct gpureplay_nano_info info = {};
	int fd = open(DEVICE, O_RDWR);

	ioctl(fd, GPUREPLAY_NANO_IOC_INFO, &info);
	close(fd);
	return info.pages;
}

static void arguments(void)
{
	int fd = client_open();
	struct gpureplay_nano_info info = { .reserved = 1 };
	struct gpureplay_nano_acquire acquire = { .mode = GPUREPLAY_NANO_GUARDED };
	struct gpureplay_nano_bus bus = {};
	struct gpureplay_nano_sync sync = {};
	const struct {
		__u64 va, pages;
		__u32 flags, reserved;
		int error;
		const char *what;
	} maps[] = {
		{ 0x1000001, 1, 3, 0, EINVAL, "map: address not aligned" },
		{ 0x1000000, 0, 3, 0, EINVAL, "map: no pages" },
		{ 0x1000000, 1, 0, 0, EINVAL, "map: no access" },
		{ 0x1000000, 1, 4, 0, EINVAL, "map: execute only" },
		{ 0x1000000, 1, 6, 0, EINVAL, "map: write and execute" },
		{ 0x1000000, 1, 7, 0, EINVAL, "map: read, write and execute" },
		{ 0x1000000, 1, 8, 0, EINVAL, "map: unknown access" },
		{ 0x1000000, 1, 0x80000003, 0, EINVAL, "map: unknown high access" },
		{ 0x1000000, 1, 3, 1, EINVAL, "map: reserved field" },
		{ 0x1000000, ~0ull, 3, 0, EINVAL, "map: 2^64 - 1 pages" },
		{ 0x1000000, 1ull << 52, 3, 0, EINVAL, "map: 2^64 bytes" },
		{ 0x1000000, 1ull << 36, 3, 0, EINVAL, "map: more than there is" },
		{ 1ull << 48, 1, 3, 0, EINVAL, "map: behind the address space" },
		{ (1ull << 48) - 4096, 2, 3, 0, EINVAL, "map: across the end" },
		{ -4096ull, 1, 3, 0, EINVAL, "map: last page of 2^64" },
		{ -4096ull, 2, 3, 0, EINVAL, "map: address wraps" },
	};

	refused(ioctl(fd, GPUREPLAY_NANO_IOC_INFO, &info), EINVAL, "info: reserved field");
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_INFO, 8), EFAULT, "info: bad pointer");
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_MAP, -1), EFAULT, "map: kernel pointer");
	refused(ioctl(fd, _IOWR('G', 0x82, char[16])), ENOTTY, "map: another size");
	refused(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'G', 0x82, 0x3fff)), ENOTTY, "map: huge size");
	refused(ioctl(fd, _IO('G', 0x8a)), ENOTTY, "unknown request");
	refused(ioctl(fd, _IO('X', 0x87)), ENOTTY, "another driver's request");
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EALREADY, "acquire twice");
	acquire.mode = GPUREPLAY_NANO_DIRECT;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EINVAL, "change the mode");
	acquire.flags = 2;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EINVAL, "acquire: unknown flag");
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACTIVATE), ENXIO, "activate without pages");

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		struct gpureplay_nano_map map = { .va = maps[i].va, .pages = maps[i].pages,
			.flags = maps[i].flags, .reserved = maps[i].reserved };

		refused(ioctl(fd, GPUREPLAY_NANO_IOC_MAP, &map), maps[i].error, maps[i].what);
	}
	check(!client_try_map(fd, 0x1000000, 4, RW), "map four pages");
	refused(client_try_map(fd, 0x1003000, 1, RW), EEXIST, "map: overlap at the end");
	refused(client_try_map(fd, 0xfff000, 2, RW), EEXIST, "map: overlap at the start");
	refused(client_try_map(fd, 0x1001000, 1, RW), EEXIST, "map: inside another");

	refused(ioctl(fd, GPUREPLAY_NANO_IOC_BUS, &bus), EPERM, "bus addresses in guarded mode");
	bus.count = 4097;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_BUS, &bus), EINVAL, "bus addresses: too many");
	sync = (struct gpureplay_nano_sync){ .va = 0x1000000, .bytes = ~0ull, .direction = 1 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_SYNC, &sync), EINVAL, "sync: length wraps");
	sync.bytes = 0x5000;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_SYNC, &sync), ENOENT, "sync: behind the mapping");
	sync = (struct gpureplay_nano_sync){ .va = 0x1000000, .bytes = 64, .direction = 3 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_SYNC, &sync), EINVAL, "sync: unknown direction");
	sync = (struct gpureplay_nano_sync){ .va = 0x1000000, .direction = 1, .reserved = 1 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_SYNC, &sync), EINVAL, "sync: reserved field");
	check(!ioctl(fd, GPUREPLAY_NANO_IOC_ACTIVATE), "activate");
	refused(client_try_map(fd, 0x2000000, 1, RW), EBUSY, "map while the tables are in use");
	close(fd);
}

/* Every register, with several values: those that reach memory or page tables are refused whatever the value. */
static void registers(void)
{
	static const struct {
		__u32 offset, value;
		const char *what;
	} forged[] = {
		{ 0x2400, 0x40000004, "AS0_TRANSTAB_LO" }, { 0x2404, 0, "AS0_TRANSTAB_HI" },
		{ 0x2408, 0x88, "AS0_MEMATTR_LO" }, { 0x2410, 0, "AS0_LOCKADDR_LO" },
		{ 0x2418, 1, "AS0_COMMAND UPDATE" }, { 0x2418, 0, "AS0_COMMAND NOP" },
		{ 0x2430, 2, "AS0_TRANSCFG_LO" }, { 0x2440, 0x40000004, "AS1_TRANSTAB_LO" },
		{ 0x2458, 1, "AS1_COMMAND" }, { 0x25c0, 0x40000004, "AS7_TRANSTAB_LO" },
		{ 0x27c0, 0x40000004, "AS15_TRANSTAB_LO" }, { 0x0030, 1, "soft reset" },
		{ 0x0030, 2, "hard reset" }, { 0x0030, 3, "counter clear" },
		{ 0x0030, 4, "counter sample, which writes memory" }, { 0x0030, 9, "unknown command" },
		{ 0x0060, 0x40000000, "PRFCNT_BASE_LO" }, { 0x0064, 0, "PRFCNT_BASE_HI" },
		{ 0x0068, 1, "PRFCNT_CONFIG" }, { 0x0050, 0x2968a819, "PWR_KEY" },
		{ 0x0054, 1, "PWR_OVERRIDE0" }, { 0x0058, 0x200fff, "PWR_OVERRIDE1" },
		{ 0x005c, 1, "register after PWR_OVERRIDE1" },
		{ 0x18d8, 1, "JS1_CONFIG_NEXT with address space 1" },
		{ 0x18d8, 0x8300f, "JS1_CONFIG_NEXT with address space 15" },
		{ 0x18e0, 2, "JS1_COMMAND_NEXT hard stop" }, { 0x1880, 0, "JS1_HEAD_LO" },
		{ 0x1898, 0, "JS1_CONFIG" }, { 0x18a0, 8, "JS1_COMMAND 8" },
		{ 0x1980, 0, "a fourth slot" }, { 0x1000, 1, "JOB_INT_RAWSTAT" },
		{ 0x2000, 1, "MMU_INT_RAWSTAT" }, { 0x0020, 1, "GPU_INT_RAWSTAT" },
		{ 0x4000, 0, "behind the GPU's blocks" }, { 0xfffc, 0, "the window's last word" },
	};
	struct gpureplay_nano_access access;
	struct gpureplay_nano_registers list = { .list = (__u64)&access, .count = 1 };
	int fd = client_open(), open_writes = 0;
	/* Physical addresses, counter dumps, what is only written, what does not exist. */
	static const __u32 hidden[] = { 0x0040, 0x0044, 0x0060, 0x0064, 0x0030, 0x0180, 0x1004, 0x2004,
		0x2400, 0x2404, 0x2408, 0x2410, 0x2418, 0x2430, 0x2440, 0x27c0, 0x1980, 0x3000, 0x4000, 0xfffc };
	/* Bits that a driver sets on a G52, registers from 0xf00 on; coherency is the kernel's. */
	static const __u32 settings[4] = { 0x3f << 16, 1 << 17, 0, 1 << 23 | 0x3f << 12 };

	check(!client_try_map(fd, 0x1000000, 1, RW), "map");
	check(!ioctl(fd, GPUREPLAY_NANO_IOC_ACTIVATE), "activate");
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++) {
		access = (struct gpureplay_nano_access){ hidden[i], 0, 0, 0 };
		refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EPERM, "read a hidden register");
		check(access.value == 0, "and learn nothing");
	}
	check(client_read(fd, 0) >> 28 == 7, "GPU_ID can be read");
	for (__u32 i = 0; i < 4; i++)
		for (__u32 bit = 0; bit < 32; bit++) {
			access = (struct gpureplay_nano_access){ 0xf00 + 4 * i, 1, 1u << bit, 0 };
			check((ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) == 0) == (settings[i] >> bit & 1),
			      "bits of settings as a driver sets them");
		}
	for (__u32 value = 0; value < 32; value++) {
		access = (struct gpureplay_nano_access){ 0x304, 1, value, 0 };
		refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EPERM, "COHERENCY_ENABLE");
	}
	for (__u32 value = 0; value < 8; value++) {
		access = (struct gpureplay_nano_access){ 0x18a0, 1, value, 0 };
		check((ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) == 0) == (value != 1),
		      "JS1_COMMAND stops and does not start");
	}
	for (size_t i = 0; i < sizeof(forged) / sizeof(*forged); i++) {
		access = (struct gpureplay_nano_access){ forged[i].offset, 1, forged[i].value, 0 };
		refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EPERM, forged[i].what);
	}
	/* The address spaces, all of them, and everything behind: no value passes. */
	for (__u32 offset = 0x200c; offset < 0x10000; offset += 4)
		for (__u32 bit = 0; bit < 33; bit++) {
			access = (struct gpureplay_nano_access){ offset, 1, bit < 32 ? 1u << bit : 0, 0 };
			open_writes += !ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) || errno != EPERM;
		}
	check(!open_writes, "all writes from 0x200c on are refused");

	access = (struct gpureplay_nano_access){ 0x10000, 0, 0, 0 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "read behind the window");
	access = (struct gpureplay_nano_access){ 0xfffffffc, 1, 0, 0 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "write behind the window");
	access = (struct gpureplay_nano_access){ 2, 0, 0, 0 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "unaligned register");
	access = (struct gpureplay_nano_access){ 0, 2, 0, 0 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "neither read nor write");
	access = (struct gpureplay_nano_access){ 0, 0, 0, 1 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "access: reserved field");
	list.count = 257;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "257 accesses");
	list = (struct gpureplay_nano_registers){ .list = 8, .count = 256 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EFAULT, "accesses: bad pointer");
	list.list = -4096ull;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EFAULT, "accesses: kernel pointer");
	close(fd);
}

/* Whether the third page kills who reads it. */
static int third_page_is_absent(const volatile char *pages)
{
	int status, child = fork();

	if (!child)
		_exit(pages[2 * 4096]);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status);
}

static void mappings(void)
{
	int fd = client_open(), other = open(DEVICE, O_RDWR);
	struct gpureplay_nano_map map = { .va = 0x1000000, .pages = 2, .flags = RW };
	void *pages;

	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "map registers, guarded");
	check(!ioctl(fd, GPUREPLAY_NANO_IOC_MAP, &map), "map two pages");
	check(mmap(NULL, 3 * 4096, 3, MAP_SHARED, fd, map.mmap_offset) == MAP_FAILED, "three of two pages");
	check(mmap(NULL, 2 * 4096, 3, MAP_SHARED, fd, map.mmap_offset + 4096) == MAP_FAILED,
	      "a page behind the mapping");
	check(mmap(NULL, 4096, 3, MAP_SHARED, fd, map.mmap_offset + 8192) == MAP_FAILED, "no mapping");
	check(mmap(NULL, 4096, 3, MAP_SHARED, fd, 0x7ffffffffffff000) == MAP_FAILED, "far offset");
	check(mmap(NULL, 4096, 3, MAP_SHARED, other, map.mmap_offset) == MAP_FAILED,
	      "another opener's pages");
	pages = mmap(NULL, 2 * 4096, 3, MAP_SHARED, fd, map.mmap_offset);
	check(pages != MAP_FAILED, "two of two pages");
	check(mmap(NULL, 2 * 4096, 3, MAP_PRIVATE, fd, map.mmap_offset) == MAP_FAILED && errno == EINVAL,
	      "a private mapping of pages");
	check(mmap(NULL, 4096, 3, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL,
	      "a private mapping of registers");
	void *longer = mremap(pages, 2 * 4096, 16 * 4096, MREMAP_MAYMOVE);

	check(longer == MAP_FAILED || third_page_is_absent(longer), "a longer mapping shows no more pages");
	if (longer != MAP_FAILED)
		pages = longer;
	munmap(pages, 16 * 4096);
	close(other);
	close(fd);
}

/* Who may lock no more memory gets no more pages, and what is given back counts no longer. */
static void limit(void)
{
	static const struct rlimit eight = { 8 * 4096, 8 * 4096 };
	int status, child = fork();

	if (!child) {
		struct gpureplay_nano_acquire acquire = {};
		int bad = 0, fd;

		bad |= chmod(DEVICE, 0666) || setrlimit(RLIMIT_MEMLOCK, &eight) || setuid(65534);
		fd = open(DEVICE, O_RDWR);
		bad |= (fd < 0 || ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire)) << 1;
		bad |= (client_try_map(fd, 0x1000000, 9, RW) != -1 || errno != ENOMEM) << 2;
		for (int round = 0; round < 3; round++) {
			bad |= (client_try_map(fd, 0x1000000, 8, RW) != 0) << 3;
			bad |= (client_try_map(fd, 0x2000000, 1, RW) != -1 || errno != ENOMEM) << 4;
			bad |= (ioctl(fd, GPUREPLAY_NANO_IOC_RELEASE) != 0) << 5;
		}
		acquire.mode = GPUREPLAY_NANO_DIRECT;
		close(fd);
		fd = open(DEVICE, O_RDWR);
		bad |= (ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire) != -1 || errno != EPERM) << 6;
		_exit(bad);
	}
	waitpid(child, &status, 0);
	errno = 0;
	check(status == 0, "the limit of locked memory holds, and direct mode needs a capability");
	if (status)
		printf("limit: status %#x\n", status);
	chmod(DEVICE, 0600);
}

static void openers(void)
{
	int fd = client_open(), other = open(DEVICE, O_RDWR), pair[2];
	struct gpureplay_nano_acquire acquire = {};
	struct gpureplay_nano_access access = {};
	struct gpureplay_nano_registers list = { .list = (__u64)&access, .count = 1 };
	char event[32];

	refused(ioctl(other, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EBUSY, "second opener: acquire");
	refused(client_try_map(other, 0x1000000, 1, RW), EBUSY, "second opener: map");
	refused(ioctl(other, GPUREPLAY_NANO_IOC_REGISTERS, &list), EBUSY, "second opener: registers");
	refused(ioctl(other, GPUREPLAY_NANO_IOC_RESET), EBUSY, "second opener: reset");
	refused(ioctl(other, GPUREPLAY_NANO_IOC_RELEASE), EBUSY, "second opener: release");
	refused(ioctl(other, GPUREPLAY_NANO_IOC_YIELD), EBUSY, "second opener: yield");
	refused(ioctl(other, GPUREPLAY_NANO_IOC_ACTIVATE), EBUSY, "second opener: activate");
	fcntl(other, F_SETFL, O_NONBLOCK);
	refused(read(other, event, sizeof(event)), EAGAIN, "second opener: read");
	refused(read(other, event, 8), EINVAL, "read of eight bytes");

	/* A child and a process that gets the descriptor sent are the same opener; closing here ends nothing. */
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	if (!fork()) {
		int got = client_receive(pair[1]);
		struct gpureplay_nano_map map = { .va = 0x5000000, .pages = 1, .flags = RW };
		int bad = ioctl(got, GPUREPLAY_NANO_IOC_MAP, &map) || ioctl(fd, GPUREPLAY_NANO_IOC_RELEASE);

		_exit(bad);
	}
	client_send(pair[0], fd);
	int status;

	wait(&status);
	check(status == 0, "a passed descriptor works as the one that it is");
	close(pair[0]);
	close(pair[1]);
	close(fd);
	check(!ioctl(other, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), "the second opener gets its turn");
	close(other);
}

/* What a job that writes `target` does: 0 done, else fault. */
static void reach(void)
{
	static const __u64 job = 0x1000000, granted = 0x1001000, read_only = 0x2000000;
	char *foreign = mmap(NULL, 4096, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	__u64 physical;

	mlock(foreign, 4096);
	memset(foreign, 0x5a, 4096);
	physical = client_physical(foreign);
	check(physical != 0, "the foreign page's physical address is known");
	const __u64 targets[] = {
		physical, (__u64)foreign, 0xffff000000000000 | physical, 0x40080000, 0, 0x10002400,
		granted + 4096, job - 4096, (1ull << 48) - 8, read_only,
	};

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		struct client client;
		char what[80];

		client_start(&client, job, read_only);
		check(client_write_job(&client, granted, 1) == 0 && client.pages[4096] == 1,
		      "a job writes the granted page");
		snprintf(what, sizeof(what), "a job faults at %#llx", targets[i]);
		check(client_write_job(&client, targets[i], 0x666) != 0, what);
		check(client.constant[0] == 0, "the read-only page is unchanged");
		client_end(&client);
	}
	for (int i = 0; i < 4096; i++)
		if (foreign[i] != 0x5a) {
			check(0, "the foreign page is unchanged");
			break;
		}
	check(1, "the foreign page is unchanged");

	/* A descriptor in a foreign page is never fetched: the job in it would write the granted page. */
	struct client client;

	client_start(&client, job, read_only);
	client_fill_job(foreign, granted, 0x777);
	check(client_submit(&client, physical) != 0, "a job at a physical address faults");
	check(client.pages[4096] == 0, "and does nothing");
	/* A head in the granted page, next job foreign. */
	check(!ioctl(client.fd, GPUREPLAY_NANO_IOC_RELEASE), "release after a fault");
	client_unmap(&client);
	client_prepare(&client, job, read_only);
	client_fill_job(client.pages, granted, 2);
	memcpy(client.pages + 24, &physical, 8);
	check(client_submit(&client, job) != 0, "a chain into a foreign page faults");
	check(client.pages[4096] == 2, "after its first job");
	client_end(&client);

	/* What was mapped before is gone after RELEASE, and for the next opener. */
	client_start(&client, job, read_only);
	check(client_write_job(&client, granted, 3) == 0, "granted");
	check(!ioctl(client.fd, GPUREPLAY_NANO_IOC_RELEASE), "release");
	check(client.pages[4096] == 3, "released pages can still be read by who mapped them");
	struct client old = client;

	client_prepare(&client, 0x9000000, read_only);
	check(client_write_job(&client, granted, 4) != 0, "a released page faults");
	check(old.pages[4096] == 3, "and keeps what it was");
	client_unmap(&old);
	client_end(&client);
}

/* Random requests and those that were carried out, of all processes. */
static unsigned long *counts;
static unsigned long long state;

static __u64 rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static __u64 interesting(void)
{
	static const __u64 values[] = { 0, 1, 2, 4095, 4096, 0x1000000, 0x1001000, 1ull << 32, 1ull << 47,
		1ull << 48, ~0ull, -4096ull, 1ull << 63, 0x100000, 257, 3 };

	return rnd() & 1 ? values[rnd() % 16] : rnd() >> (rnd() % 64);
}

static void random_requests(int fd, time_t end)
{
	static const unsigned int commands[] = {
		GPUREPLAY_NANO_IOC_INFO, GPUREPLAY_NANO_IOC_ACQUIRE, GPUREPLAY_NANO_IOC_MAP,
		GPUREPLAY_NANO_IOC_BUS, GPUREPLAY_NANO_IOC_SYNC, GPUREPLAY_NANO_IOC_REGISTERS,
		GPUREPLAY_NANO_IOC_ACTIVATE, GPUREPLAY_NANO_IOC_RESET, GPUREPLAY_NANO_IOC_RELEASE,
		GPUREPLAY_NANO_IOC_YIELD,
	};
	struct gpureplay_nano_access accesses[256];
	__u64 argument[8];
	void *mapped[16] = {};

	while (time(NULL) < end) {
		unsigned int command = commands[rnd() % 10];
		struct gpureplay_nano_map *map = (void *)argument;
		size_t slot = rnd() % 16;

		for (int i = 0; i < 8; i++)
			argument[i] = rnd() % 3 ? interesting() : 0;
		switch (rnd() % 16) {
		case 0:
			command = _IOC(rnd() & 3, 'G', 0x80 + rnd() % 16, rnd() % 64);
			break;
		case 1: {
			char event[40];

			fcntl(fd, F_SETFL, rnd() & 7 ? O_NONBLOCK : 0);
			if (fcntl(fd, F_GETFL) & O_NONBLOCK)
				(void)!read(fd, event, rnd() % 41);
			continue;
		}
		case 2: {
			struct pollfd poller = { fd, rnd(), 0 };

			poll(&poller, 1, 0);
			continue;
		}
		case 3:
			if (mapped[slot])
				munmap(mapped[slot], 4096 * (1 + rnd() % 4));
			mapped[slot] = NULL;
			continue;
		case 4 ... 6:
			*map = (struct gpureplay_nano_map){ .va = (rnd() % 64) << 12, .pages = 1 + rnd() % 8,
				.flags = rnd() % 8 };
			command = GPUREPLAY_NANO_IOC_MAP;
			break;
		case 7 ... 10: {
			struct gpureplay_nano_registers *list = (void *)argument;

			for (int i = 0; i < 256; i++)
				accesses[i] = (struct gpureplay_nano_access){
					rnd() % 4 ? (rnd() % 0x2800) & ~3 : interesting(), rnd() % 3 > 0,
					rnd() & 1 ? 1u << rnd() % 32 : interesting(), rnd() % 64 == 0 };
			*list = (struct gpureplay_nano_registers){ .list = (__u64)accesses,
				.count = 1 + rnd() % 8 };
			command = GPUREPLAY_NANO_IOC_REGISTERS;
			break;
		}
		}
		if (command == GPUREPLAY_NANO_IOC_ACQUIRE)	/* never the direct mode: that one is trusted */
			argument[0] = (rnd() % 8 ? 0 : 2 + rnd() % 2) | (rnd() & 1) << 32;
		/* A turn may be long in coming. */
		alarm(1);
		int refused = ioctl(fd, command, argument);

		alarm(0);
		__atomic_fetch_add(&counts[0], 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&counts[1], !refused, __ATOMIC_RELAXED);
		if (!refused && command == GPUREPLAY_NANO_IOC_MAP && !mapped[slot]) {
			mapped[slot] = mmap(NULL, map->pages * 4096, 3, rnd() & 7 ? MAP_SHARED : MAP_PRIVATE, fd,
					    map->mmap_offset);
			if (mapped[slot] == MAP_FAILED)
				mapped[slot] = NULL;
			else
				memset(mapped[slot], rnd(), 4096);
		}
	}
}

static void nothing(int signal)
{
	(void)signal;
}

/* Several processes with descriptors of their own and a shared one; now and then one is killed. */
static void fuzz(int seconds, unsigned long seed)
{
	time_t end = time(NULL) + seconds;
	int shared = open(DEVICE, O_RDWR), children[4] = {};
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGALRM, &action, NULL);
	for (unsigned long round = 0; time(NULL) < end; round++) {
		int i = round % 4;

		if (children[i] > 0) {
			kill(children[i], round & 4 ? SIGKILL : SIGTERM);
			waitpid(children[i], NULL, 0);
		}
		fflush(stdout);
		children[i] = fork();
		if (!children[i]) {
			state = seed * 1000003 + round * 2654435761 + 1;
			for (int step = 0; step < 20; step++)
				rnd();
			int fd = round % 3 ? open(DEVICE, O_RDWR) : shared;

			random_requests(fd, end);
			_exit(0);
		}
		usleep(250000);
	}
	for (int i = 0; i < 4; i++)
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	close(shared);
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	struct client client;

	arguments();
	registers();
	mappings();
	limit();
	openers();
	reach();
	check(pages_in_use() == 0, "no page is in use after the checks");
	counts = mmap(NULL, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seconds)
		fuzz(seconds, seed);
	check(pages_in_use() == 0, "no page is in use at the end");
	client_start(&client, 0x1000000, 0x2000000);
	check(client_write_job(&client, 0x1001000, 7) == 0 && client.pages[4096] == 7, "the GPU works");
	client_end(&client);
	printf("hostile: %d passed, %d failed; %lu random requests in %d s, %lu carried out, seed %lu\n", passed,
	       failed, counts[0], seconds, counts[1], seed);
	return failed != 0;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile client of the nano driver, as a kselftest with TAP output. Everything that it tries must be refused, the
 * GPU must fault where it was given no page, and afterwards the GPU must work and no page be in use.
 *
 *	hostile [SECONDS [SEED]]	checks, then random requests for SECONDS
 *	hostile neighbours		what the processor wrote beside a range that is synced stays
 *	hostile orphans			pages of who is gone stay until a GPU resets that did not
 *	hostile copies			a machine whose pages reach the GPU by copies only: MAP is refused
 *
 * Ends with 0 when all held, 4 (skip) without the device. Needs root: it looks up physical addresses to aim at.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
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
	int error = errno;

	if (good)
		passed++;
	else
		failed++;
	printf("%s %d - %s\n", good ? "ok" : "not ok", passed + failed, what);
	if (!good)
		printf("# errno %d: %s\n", error, strerror(error));
	fflush(stdout);
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
	struct {
		struct gpureplay_nano_info info;
		__u64 later;
	} longer = {};
	struct gpureplay_nano_info info = { .reserved = { 0, 1 } };
	struct gpureplay_nano_acquire acquire = {};
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
	refused(ioctl(fd, _IOWR('G', 0x82, char[16]), &info), EINVAL, "map: a shorter structure");
	refused(ioctl(fd, _IOC(_IOC_READ, 'G', 0x82, 32), &info), ENOTTY, "map: another direction");
	check(!ioctl(fd, _IOWR('G', 0x80, longer), &longer) && longer.info.features & GPUREPLAY_NANO_HAS_BASE,
	      "info: a longer structure of a later program");
	longer.later = 1;
	refused(ioctl(fd, _IOWR('G', 0x80, longer), &longer), E2BIG, "info: an unknown field is in use");
	info = (struct gpureplay_nano_info){ .reserved0 = 1 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_INFO, &info), EINVAL, "info: first reserved field");
	refused(ioctl(fd, _IOWR('G', 0x83, char[32]), &info), ENOTTY, "the number of a mode that is gone");
	refused(ioctl(fd, _IO('G', 0x8a)), ENOTTY, "unknown request");
	refused(ioctl(fd, _IO('X', 0x87)), ENOTTY, "another driver's request");
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EALREADY, "acquire twice");
	acquire.flags = 2;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EINVAL, "acquire: unknown flag");
	acquire = (struct gpureplay_nano_acquire){ .reserved0 = 1 };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EINVAL, "acquire: first reserved field");
	acquire = (struct gpureplay_nano_acquire){ .reserved = { 0, 0, 1 } };
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EINVAL, "acquire: last reserved field");
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
		{ 0x18d8, 0x10, "JS1_CONFIG_NEXT with a bit above the address space" },
		{ 0x18d8, 0x80, "JS1_CONFIG_NEXT with the last bit below the flushes" },
		{ 0x18d8, 1 << 24, "JS1_CONFIG_NEXT with a bit above the priority" },
		{ 0x18d8, 1u << 31, "JS1_CONFIG_NEXT with the last bit" },
		{ 0x18e0, 2, "JS1_COMMAND_NEXT hard stop" }, { 0x1880, 0, "JS1_HEAD_LO" },
		{ 0x1898, 0, "JS1_CONFIG" }, { 0x18a0, 8, "JS1_COMMAND 8" },
		{ 0x1980, 0, "a fourth slot" }, { 0x1000, 1, "JOB_INT_RAWSTAT" },
		{ 0x2000, 1, "MMU_INT_RAWSTAT" }, { 0x0020, 1, "GPU_INT_RAWSTAT" },
		{ 0x4000, 0, "behind the GPU's blocks" }, { 0xfffc, 0, "the window's last word" },
	};
	struct gpureplay_nano_access access;
	struct gpureplay_nano_registers list = { .list = (__u64)&access, .count = 1 };
	int fd = client_open(), open_writes = 0, wrong = 0;
	/* Physical addresses, counter dumps, what is only written, what does not exist. */
	static const __u32 hidden[] = { 0x0040, 0x0044, 0x0060, 0x0064, 0x0030, 0x0180, 0x1004, 0x2004,
		0x2400, 0x2404, 0x2408, 0x2410, 0x2418, 0x2430, 0x2440, 0x27c0, 0x1980, 0x3000, 0x4000, 0xfffc };
	/* Bits that a driver sets on a G52, registers from 0xf00 on; coherency is the kernel's. */
	static const __u32 settings[4] = { 0x3f << 16, 1 << 17, 0, 1 << 23 | 0x3f << 12 };

	check(!client_try_map(fd, 0x1000000, 1, RW), "map");
	check(!ioctl(fd, GPUREPLAY_NANO_IOC_ACTIVATE), "activate");
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++) {
		access = (struct gpureplay_nano_access){ hidden[i], 0, 0, 0 };
		wrong += !ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) || errno != EPERM || access.value;
	}
	check(!wrong, "hidden registers are not read, and tell nothing");
	check(client_read(fd, 0) >> 28 == 7, "GPU_ID can be read");
	wrong = 0;
	for (__u32 i = 0; i < 4; i++)
		for (__u32 bit = 0; bit < 32; bit++) {
			access = (struct gpureplay_nano_access){ 0xf00 + 4 * i, 1, 1u << bit, 0 };
			wrong += (ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) == 0) != (settings[i] >> bit & 1);
		}
	check(!wrong, "bits of settings as a driver sets them");
	wrong = 0;
	for (__u32 bit = 0; bit < 32; bit++) {
		access = (struct gpureplay_nano_access){ 0x18d8, 1, 1u << bit, 0 };
		wrong += (ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) == 0) != (bit >= 8 && bit < 24);
	}
	check(!wrong, "bits of JS1_CONFIG_NEXT as a driver sets them");
	wrong = 0;
	for (__u32 value = 0; value < 32; value++) {
		access = (struct gpureplay_nano_access){ 0x304, 1, value, 0 };
		wrong += !ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) || errno != EPERM;
	}
	check(!wrong, "COHERENCY_ENABLE takes no value");
	wrong = 0;
	for (__u32 value = 0; value < 8; value++) {
		access = (struct gpureplay_nano_access){ 0x18a0, 1, value, 0 };
		wrong += (ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list) == 0) != (value != 1);
	}
	check(!wrong, "JS1_COMMAND stops and does not start");
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
	list.done = 77;
	refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EINVAL, "257 accesses");
	check(list.done == 0, "none of them done");
	/* The kernel once freed the error that these addresses give. */
	static const __u64 bad[] = { 8, 4096, -4096ull, 1ull << 63, -1ull };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		for (__u32 count = 1; count <= 256; count += 255) {
			list = (struct gpureplay_nano_registers){ .list = bad[i], .count = count, .done = 77 };
			refused(ioctl(fd, GPUREPLAY_NANO_IOC_REGISTERS, &list), EFAULT, "accesses at a bad address");
			check(list.done == 0, "none of them done");
		}
	close(fd);
}

/* Whether a page kills who reads it. */
static int is_absent(const volatile char *page)
{
	int status, child = fork();

	if (!child)
		_exit(page[0] & 0);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status);
}

static void mappings(void)
{
	int fd = client_open(), other = open(DEVICE, O_RDWR);
	struct gpureplay_nano_map map = { .va = 0x1000000, .pages = 2, .flags = RW };
	void *pages;

	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "nothing is at offset 0");
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
	void *longer = mremap(pages, 2 * 4096, 16 * 4096, MREMAP_MAYMOVE);

	check(longer == MAP_FAILED || is_absent((char *)longer + 2 * 4096), "a longer mapping shows no more pages");
	if (longer != MAP_FAILED)
		munmap(longer, 16 * 4096);
	else
		munmap(pages, 2 * 4096);
	close(other);
	close(fd);
}

/* Who may lock no more memory gets no more pages, and what is given back counts no longer. */
static void limit(void)
{
	/* Eight pages, and four of page tables. */
	static const struct rlimit eight = { 12 * 4096, 12 * 4096 };
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
		/* Pages far from each other need three tables each, the first one a fourth: 5, 9, 13. */
		for (int page = 0; page < 3; page++)
			bad |= (client_try_map(fd, page * 0x8000000000ull, 1, RW) == 0) != (page < 2) ? 1 << 6 : 0;
		_exit(bad);
	}
	waitpid(child, &status, 0);
	errno = 0;
	check(status == 0, "the limit of locked memory holds, page tables included");
	if (status)
		printf("# limit: status %#x\n", status);
	chmod(DEVICE, 0600);
}

/* MAP, mmap, RELEASE, again and again: what is released is seen no more, by whatever process. */
static void released_pages(void)
{
	enum { ROUNDS = 64, PAGES = 8 };
	int fd = client_open(), seen = 0, status;
	char *at[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		at[round] = client_map(fd, 0x1000000, PAGES, RW);
		if (!at[round]) {
			check(0, "map what was released");
			return;
		}
		memset(at[round], round + 1, PAGES * 4096);
		/* A process that was forked sees them too. */
		if (round == ROUNDS - 1 && !fork()) {
			for (int tries = 0; tries < 500; tries++, usleep(10000))
				if (is_absent(at[round]))
					_exit(0);
			_exit(1);
		}
		if (ioctl(fd, GPUREPLAY_NANO_IOC_RELEASE))
			check(0, "release");
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int page = 0; page < PAGES; page += PAGES - 1)
			seen += !is_absent(at[round] + 4096 * page);
	check(!seen, "released pages are seen no more");
	wait(&status);
	check(status == 0, "not by a forked process either");
	check(pages_in_use() == 0, "and none is in use");
	/* Two mappings never had one offset. */
	char *again = client_map(fd, 0x1000000, PAGES, RW);

	check(!!again, "map again");
	for (int round = 0; round < ROUNDS; round++)
		seen += !is_absent(at[round]);
	check(!seen, "old addresses do not show new pages");
	munmap(again, PAGES * 4096);
	for (int round = 0; round < ROUNDS; round++)
		munmap(at[round], PAGES * 4096);
	close(fd);
}

/* What processes tell each other. */
struct shared {
	volatile int begun, ended;
};

/* While one opener maps much, others open this device and all other misc devices. */
static void open_does_not_wait(void)
{
	struct shared *shared = mmap(NULL, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum { OPENS = 100 };
	int opened = 0, fd = client_open(), fds[OPENS] = {}, status, child;

	child = fork();
	if (!child) {
		shared->begun = 1;
		int bad = client_try_map(fd, 0x10000000, 300 << 8, RW);

		shared->ended = 1;
		_exit(!!bad);
	}
	while (!shared->begun)
		usleep(100);
	usleep(20000);
	/* Closing may wait; it holds nothing that other devices need. */
	for (int i = 0; i < OPENS && !shared->ended; i++) {
		fds[i] = open(DEVICE, O_RDWR);
		close(open("/dev/cpu_dma_latency", O_RDWR));
		opened += !shared->ended;
		usleep(1000);
	}
	waitpid(child, &status, 0);
	for (int i = 0; i < OPENS; i++)
		if (fds[i] > 0)
			close(fds[i]);
	check(status == 0, "map 300 MiB");
	printf("# opened %d times meanwhile\n", opened);
	check(opened >= 10, "open does not wait for who maps much memory");
	close(fd);
	munmap(shared, 4096);
}

static void parameter(const char *name, unsigned int value)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/module/gpureplay_nano/parameters/%s", name);
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%u", value) < 0 || fclose(file))
		check(0, path);
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start->tv_sec + (now.tv_nsec - start->tv_nsec) / 1e9;
}

/* Seconds until another opener has the GPU; less than 0 if it never gets it. The owner works meanwhile, or does not. */
static double wait_for_turn(int owner, int works)
{
	struct gpureplay_nano_acquire acquire = { .flags = GPUREPLAY_NANO_WAIT };
	struct timespec start;
	int status, child;

	clock_gettime(CLOCK_MONOTONIC, &start);
	child = fork();
	if (!child) {
		int fd = open(DEVICE, O_RDWR);

		alarm(30);
		_exit(fd < 0 || ioctl(fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire));
	}
	while (!waitpid(child, &status, WNOHANG)) {
		struct gpureplay_nano_access access = {};
		struct gpureplay_nano_registers list = { .list = (__u64)&access, .count = 1 };

		if (works)
			ioctl(owner, GPUREPLAY_NANO_IOC_REGISTERS, &list);
		usleep(10000);
	}
	return status ? -1 : seconds_since(&start);
}

/* An owner that neither works nor yields loses the GPU to who waits, one that works a while later. Its pages stay. */
static void turns_end(void)
{
	struct gpureplay_nano_acquire acquire = {};
	struct pollfd poller = { .events = POLLIN };
	struct client client;
	char event[64];
	double waited;

	parameter("idle_ms", 300);
	parameter("turn_ms", 20000);
	client_start(&client, 0x1000000, 0x2000000);
	check(client_write_job(&client, 0x1001000, 5) == 0, "a job before the turn ends");
	client.pages[0] = 77;
	usleep(2000000);
	check(client_read(client.fd, 0) >> 28 == 7, "nobody waits: the GPU stays");
	waited = wait_for_turn(client.fd, 0);
	printf("# an idle owner lost the GPU after %.2f s\n", waited);
	check(waited >= 0.3 && waited < 15, "an idle owner loses the GPU");
	refused(client_try_map(client.fd, 0x5000000, 1, RW), ESTALE, "and is told so by requests");
	refused(ioctl(client.fd, GPUREPLAY_NANO_IOC_RESET), ESTALE, "by all of them");
	poller.fd = client.fd;
	check(poll(&poller, 1, 0) == 1 && poller.revents == POLLERR, "and by poll()");
	fcntl(client.fd, F_SETFL, O_NONBLOCK);
	refused(read(client.fd, event, sizeof(event)), ESTALE, "and by read()");
	check(client.pages[0] == 77 && client.pages[4096] == 5, "its pages are what they were");
	check(!ioctl(client.fd, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), "it may have the GPU again");
	check(client.pages[0] == 77 && !ioctl(client.fd, GPUREPLAY_NANO_IOC_ACTIVATE), "and its pages on it");
	parameter("idle_ms", 1000);
	parameter("turn_ms", 3000);
	waited = wait_for_turn(client.fd, 1);
	printf("# an owner that works lost the GPU after %.2f s\n", waited);
	check(waited >= 3 && waited < 20, "an owner that works loses it at the end of its turn");
	parameter("idle_ms", 2000);
	parameter("turn_ms", 30000);
	client_end(&client);
}

/* What interrupted before a reset is not read after it. */
static void reset_forgets(void)
{
	struct client client;
	struct pollfd poller = { .events = POLLIN };
	char event[64];

	client_start(&client, 0x1000000, 0x2000000);
	poller.fd = client.fd;
	fcntl(client.fd, F_SETFL, O_NONBLOCK);
	client_write(client.fd, 0x1008, ~0u);
	check(client_write_job(&client, 0x1001000, 6) == 0, "a job that interrupts");
	check(poll(&poller, 1, 5000) == 1 && poller.revents & POLLIN, "its interrupt is there");
	check(!ioctl(client.fd, GPUREPLAY_NANO_IOC_RESET), "reset");
	check(poll(&poller, 1, 0) == 0, "no interrupt is there any more");
	refused(read(client.fd, event, sizeof(event)), EAGAIN, "nor can one be read");
	client_end(&client);
}

static void openers(void)
{
	int fd = client_open(), other = open(DEVICE, O_RDWR), pair[2];
	struct gpureplay_nano_acquire acquire = {};
	struct gpureplay_nano_access access = {};
	struct gpureplay_nano_registers list = { .list = (__u64)&access, .count = 1 };
	char event[64];

	refused(ioctl(other, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), EBUSY, "second opener: acquire");
	refused(client_try_map(other, 0x1000000, 1, RW), EBUSY, "second opener: map");
	list.done = 77;
	refused(ioctl(other, GPUREPLAY_NANO_IOC_REGISTERS, &list), EBUSY, "second opener: registers");
	check(list.done == 0, "second opener: no access done");
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
	int changed = 0;

	for (int i = 0; i < 4096; i++)
		changed += foreign[i] != 0x5a;
	check(!changed, "the foreign page is unchanged");

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
	client_unmap(&client);
	client_prepare(&client, 0x9000000, read_only);
	check(client_write_job(&client, granted, 4) != 0, "a released page faults");
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

static sigjmp_buf taken_away;

/* Another process that has the descriptor released the pages. */
static void on_bus_error(int signal)
{
	(void)signal;
	siglongjmp(taken_away, 1);
}

static void random_requests(int fd, time_t end)
{
	static const unsigned int commands[] = {
		GPUREPLAY_NANO_IOC_INFO, GPUREPLAY_NANO_IOC_ACQUIRE, GPUREPLAY_NANO_IOC_MAP,
		GPUREPLAY_NANO_IOC_SYNC, GPUREPLAY_NANO_IOC_REGISTERS,
		GPUREPLAY_NANO_IOC_ACTIVATE, GPUREPLAY_NANO_IOC_RESET, GPUREPLAY_NANO_IOC_RELEASE,
		GPUREPLAY_NANO_IOC_YIELD,
	};
	struct gpureplay_nano_access accesses[256];
	__u64 argument[16];
	void *mapped[16] = {};

	while (time(NULL) < end) {
		unsigned int command = commands[rnd() % 9];
		struct gpureplay_nano_map *map = (void *)argument;
		size_t slot = rnd() % 16;

		for (int i = 0; i < 16; i++)
			argument[i] = rnd() % 3 ? interesting() : 0;
		switch (rnd() % 16) {
		case 0:
			command = _IOC(rnd() & 3, 'G', 0x80 + rnd() % 16, rnd() % 128);
			break;
		case 1: {
			char event[80];

			fcntl(fd, F_SETFL, rnd() & 7 ? O_NONBLOCK : 0);
			if (fcntl(fd, F_GETFL) & O_NONBLOCK)
				(void)!read(fd, event, rnd() % 81);
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
		if (command == GPUREPLAY_NANO_IOC_ACQUIRE && rnd() % 8)
			memset(memset(argument, 0, sizeof(argument)), rnd() & 1, 1);
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
			else if (!sigsetjmp(taken_away, 1))
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
	action.sa_handler = on_bus_error;
	sigaction(SIGBUS, &action, NULL);
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

/* Every page reaches the GPU by a copy that nobody updates: it is refused by name, and nothing is left. */
static void copies(void)
{
	int fd = client_open();

	refused(client_try_map(fd, 0x1000000, 8, RW), EREMOTEIO, "a page out of the GPU's reach");
	check(pages_in_use() == 0, "no page is in use");
	close(fd);
}

/* The module of the guest's power domain keeps the GPU from resetting, or lets it. */
static void let_reset(int carried_out)
{
	FILE *file = fopen("/sys/module/gpureplay_power/parameters/resets", "w");

	if (!file || fputs(carried_out ? "0" : "1", file) < 0 || fclose(file))
		check(0, "the GPU's resets are under control");
}

/* Locked memory of this process, in pages. */
static long locked_pages(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long locked = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmLck: %ld", &locked) == 1)
			break;
	fclose(file);
	return locked / 4;
}

/* Closed while the GPU does not reset: the pages stay, and stay locked memory. The next good reset frees both. */
static void orphans_of(int by_reset)
{
	struct gpureplay_nano_acquire acquire = {}, wait = { .flags = GPUREPLAY_NANO_WAIT };
	int fd = client_open(), other = open(DEVICE, O_RDWR);

	check(!client_try_map(fd, 0x1000000, 8, RW) && locked_pages() == 12, "eight pages, four of page tables");
	if (by_reset)
		check(!ioctl(other, GPUREPLAY_NANO_IOC_ACQUIRE, &wait), "the GPU goes to another, the pages stay");
	let_reset(0);
	refused(ioctl(by_reset ? other : fd, GPUREPLAY_NANO_IOC_RESET), ETIMEDOUT, "a GPU that does not reset");
	close(fd);
	check(pages_in_use() == 8 && locked_pages() == 12, "its pages stay, and stay locked memory");
	if (!by_reset)
		refused(ioctl(other, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), ETIMEDOUT, "nobody gets such a GPU");
	check(pages_in_use() == 8, "nor are the pages freed");
	let_reset(1);
	if (by_reset)
		check(!ioctl(other, GPUREPLAY_NANO_IOC_RESET), "a reset that succeeds");
	else
		check(!ioctl(other, GPUREPLAY_NANO_IOC_ACQUIRE, &acquire), "a new owner, with a reset");
	for (int tries = 0; tries < 500 && (pages_in_use() || locked_pages()); tries++)
		usleep(10000);
	check(pages_in_use() == 0 && locked_pages() == 0, "frees them");
	close(other);
}

/* Shows something only where the GPU does not see the processor's caches. */
static void neighbours(void)
{
	int fd = client_open();
	struct gpureplay_nano_sync sync = { 0x1000000 + 2048, 4096, GPUREPLAY_NANO_FROM_GPU, 0 };
	char *pages = client_map(fd, 0x1000000, 2, RW);

	check(!!pages, "map two pages");
	memset(pages, 1, 2048);
	memset(pages + 6144, 2, 2048);
	check(!ioctl(fd, GPUREPLAY_NANO_IOC_SYNC, &sync), "sync what is between");
	int lost = 0;

	for (int i = 0; i < 2048; i++)
		lost += pages[i] != 1 || pages[6144 + i] != 2;
	check(!lost, "no byte beside the range is lost");
	close(fd);
}

int main(int argc, char **argv)
{
	int only_copies = argc > 1 && !strcmp(argv[1], "copies");
	int only_orphans = argc > 1 && !strcmp(argv[1], "orphans");
	int only_neighbours = argc > 1 && !strcmp(argv[1], "neighbours");
	int only_registers = argc > 1 && !strcmp(argv[1], "registers");
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	struct client client;

	printf("TAP version 13\n");
	if (access(DEVICE, F_OK)) {
		printf("1..0 # SKIP %s is missing\n", DEVICE);
		return 4;
	}
	if (only_copies) {
		copies();
	} else if (only_orphans) {
		parameter("idle_ms", 300);
		orphans_of(0);
		orphans_of(1);
		parameter("idle_ms", 2000);
	} else if (only_neighbours) {
		neighbours();
	} else if (only_registers) {
		registers();
	} else {
		arguments();
		registers();
		mappings();
		limit();
		released_pages();
		open_does_not_wait();
		openers();
		turns_end();
		reset_forgets();
		reach();
		check(pages_in_use() == 0, "no page is in use after the checks");
		counts = mmap(NULL, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (seconds)
			fuzz(seconds, seed);
		check(pages_in_use() == 0, "no page is in use at the end");
		client_start(&client, 0x1000000, 0x2000000);
		check(client_write_job(&client, 0x1001000, 7) == 0 && client.pages[4096] == 7, "the GPU works");
		client_end(&client);
		printf("# hostile: %d passed, %d failed; %lu random requests in %d s, %lu carried out, seed %lu\n",
		       passed, failed, counts[0], seconds, counts[1], seed);
	}
	printf("1..%d\n", passed + failed);
	return failed != 0;
}

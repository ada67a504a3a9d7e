// SPDX-License-Identifier: GPL-2.0
/* Tests PANFROST_BO_FIXED of panfrost, see fixed.cocci. Prints TAP; argument: the render node. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm/panfrost_drm.h>

#define PAGE	4096u
#define MIB	0x100000ull
#define DATA	(PANFROST_BO_NOEXEC | PANFROST_BO_FIXED)
/* Values of job descriptors: types of a job and of what it writes. */
#define WRITE_VALUE	2
#define IMMEDIATE_64	7

static const char *node;
static int count, failed;

static void check(bool right, const char *what)
{
	printf("%sok %d - %s\n", right ? "" : "not ", ++count, what);
	failed += !right;
}

static int open_node(void)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		printf("Bail out! %s: %s\n", node, strerror(errno));
		exit(1);
	}
	return fd;
}

/* Returns 0 or an error number; *offset is what was wished, and what came of it. */
static int create(int fd, __u32 size, __u32 flags, __u64 *offset, __u32 *handle)
{
	struct drm_panfrost_create_bo args = {
		.size = size, .flags = flags, .offset = *offset,
	};

	if (ioctl(fd, DRM_IOCTL_PANFROST_CREATE_BO, &args))
		return errno;
	*offset = args.offset;
	*handle = args.handle;
	return 0;
}

/* What an object at this address says. */
static int at(int fd, __u32 size, __u32 flags, __u64 offset)
{
	__u32 handle;

	return create(fd, size, flags, &offset, &handle);
}

static __u64 offset_of(int fd, __u32 handle)
{
	struct drm_panfrost_get_bo_offset args = { .handle = handle };

	return ioctl(fd, DRM_IOCTL_PANFROST_GET_BO_OFFSET, &args) ? 0 : args.offset;
}

static void close_handle(int fd, __u32 handle)
{
	struct drm_gem_close args = { .handle = handle };

	ioctl(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

static __u64 *map(int fd, __u32 handle)
{
	struct drm_panfrost_mmap_bo args = { .handle = handle };
	void *at;

	if (ioctl(fd, DRM_IOCTL_PANFROST_MMAP_BO, &args))
		return NULL;
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, args.offset);
	return at == MAP_FAILED ? NULL : at;
}

/* The GPU finds a job at one address that user space chose, and writes to another. */
static bool gpu_writes(int fd)
{
	__u64 job_at = 0x3f000000, value_at = 0x71234000;
	__u64 wanted = 0x0123456789abcdef;
	__u32 handles[2], sync = 0;
	__u64 *job, *value;
	struct drm_syncobj_create fence = {};
	struct drm_panfrost_submit submit = { .requirements = 0 };
	struct drm_panfrost_wait_bo wait = { .timeout_ns = 0x7fffffffffffffff };

	if (create(fd, PAGE, DATA, &job_at, &handles[0]) ||
	    create(fd, PAGE, DATA, &value_at, &handles[1]))
		return false;
	job = map(fd, handles[0]);
	value = map(fd, handles[1]);
	if (!job || !value || ioctl(fd, DRM_IOCTL_SYNCOBJ_CREATE, &fence))
		return false;
	sync = fence.handle;
	/* Header: 64-bit, its type, index 1. */
	job[2] = 1 | WRITE_VALUE << 1 | 1 << 16;
	job[4] = value_at + 16;
	job[5] = IMMEDIATE_64;
	job[6] = wanted;
	submit.jc = job_at;
	submit.bo_handles = (__u64)(unsigned long)handles;
	submit.bo_handle_count = 2;
	submit.out_sync = sync;
	if (ioctl(fd, DRM_IOCTL_PANFROST_SUBMIT, &submit))
		return false;
	wait.handle = handles[1];
	if (ioctl(fd, DRM_IOCTL_PANFROST_WAIT_BO, &wait))
		return false;
	return value[2] == wanted && !value[1] && !value[3];
}

/* An object of one file in another: where it is fixed, or not at all. */
static void shared(int fd)
{
	__u64 offset = 0x22000000, other = 0x22000000;
	__u32 handle, blocking;
	struct drm_prime_handle prime = { .flags = O_CLOEXEC }, import = {};
	int second = open_node();

	if (create(fd, PAGE, DATA, &offset, &handle)) {
		check(false, "an object to share");
		return;
	}
	prime.handle = handle;
	if (ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime)) {
		check(false, "an object is exported");
		return;
	}
	import.fd = prime.fd;
	check(!create(second, PAGE, DATA, &other, &blocking) && other == offset,
	      "each file has an address space of its own");
	check(ioctl(second, DRM_IOCTL_PRIME_FD_TO_HANDLE, &import) && errno == ENOSPC,
	      "an import into a taken place: ENOSPC");
	close_handle(second, blocking);
	check(!ioctl(second, DRM_IOCTL_PRIME_FD_TO_HANDLE, &import) &&
	      offset_of(second, import.handle) == offset,
	      "an import has the object's address");
	close(prime.fd);
	close(second);
}

int main(int argc, char **argv)
{
	__u64 offset, page, first = 0x50000000;
	__u32 handle, handles[16];
	bool right = true;
	int fd, i;

	node = argc > 1 ? argv[1] : "/dev/dri/renderD128";
	fd = open_node();

	check(at(fd, PAGE, DATA, 0) == EINVAL, "address 0: EINVAL");
	check(at(fd, PAGE, DATA, first + 1) == EINVAL, "within a page: EINVAL");
	check(at(fd, PAGE, DATA, -(__u64)PAGE) == EINVAL, "past the last byte: EINVAL");
	check(at(fd, PAGE, DATA, MIB) == ENOSPC, "below the address space: ENOSPC");
	check(at(fd, PAGE, DATA, 1ull << 47) == ENOSPC, "above it: ENOSPC");
	check(at(fd, 2 * PAGE, PANFROST_BO_FIXED, 16 * MIB * 3 - PAGE) == EINVAL,
	      "code across 16 MB: EINVAL");
	check(at(fd, PAGE, PANFROST_BO_FIXED, 1ull << 32) == EINVAL,
	      "code at the start of 4 GB: EINVAL");
	check(at(fd, PAGE, PANFROST_BO_FIXED, (1ull << 32) - PAGE) == EINVAL,
	      "code at the end of 4 GB: EINVAL");
	check(at(fd, 2 * MIB, DATA | PANFROST_BO_HEAP, first + PAGE) == EINVAL,
	      "a heap between blocks: EINVAL");
	check(at(fd, PAGE, DATA | 1u << 30, first) == EINVAL, "an unknown flag: EINVAL");
	check(!at(fd, 2 * MIB, DATA | PANFROST_BO_HEAP, 0x60000000), "a heap at a block");
	check(!at(fd, PAGE, PANFROST_BO_FIXED, 16 * MIB * 3 - PAGE), "code up to 16 MB");

	for (i = 15; i >= 0; i--) {
		offset = first + 3 * (__u64)i * PAGE;
		right &= !create(fd, 2 * PAGE, DATA, &offset, &handles[i]);
		right &= offset == first + 3 * (__u64)i * PAGE;
		right &= offset_of(fd, handles[i]) == offset;
	}
	check(right, "16 objects, from the highest to the lowest");
	check(at(fd, 2 * PAGE, DATA, first + 2 * PAGE) == ENOSPC, "over the start of one: ENOSPC");
	check(at(fd, PAGE, DATA, first + PAGE) == ENOSPC, "over the end of one: ENOSPC");
	check(!at(fd, PAGE, DATA, first + 2 * PAGE), "between two");
	close_handle(fd, handles[7]);
	check(!at(fd, 2 * PAGE, DATA, first + 21 * PAGE), "where one was");

	right = true;
	for (i = 0; i < 64; i++) {
		offset = 0;
		right &= !create(fd, PAGE, PANFROST_BO_NOEXEC, &offset, &handle);
		/* The third page of three is free, but for the first such page. */
		page = (offset - first) / PAGE;
		right &= page >= 48 || (page % 3 == 2 && page != 2);
	}
	check(right, "the driver's own choice keeps clear of them");
	check(gpu_writes(fd), "a job at a chosen address writes to another");
	shared(fd);

	printf("1..%d\n", count);
	return failed != 0;
}

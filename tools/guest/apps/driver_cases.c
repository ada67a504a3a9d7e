// SPDX-License-Identifier: MIT OR Apache-2.0
// What an app may do with panfrost's files that no runtime does: jobs made by hand, each of which writes one word. `sealed` is panthor's.
//
// driver_cases NAME
// Prints what the app sees in the end. Exit code 2 if the driver refuses a call.
#define _GNU_SOURCE
#include <drm/drm.h>
#include <drm/panfrost_drm.h>
#include <drm/panthor_drm.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define NODE "/dev/dri/renderD128"

/* Memory of the GPU, as one file of the driver knows it. */
struct memory {
	int file;
	uint32_t handle;
	uint64_t address;
	volatile uint32_t *words;
};

/* Makes a request that must work. */
static void ask(int file, unsigned long request, void *argument, const char *what)
{
	if (ioctl(file, request, argument)) {
		perror(what);
		exit(2);
	}
}

static int open_node(void)
{
	int file = open(NODE, O_RDWR | O_CLOEXEC);
	if (file < 0) {
		perror(NODE);
		exit(2);
	}
	return file;
}

static struct memory allocate(int file, uint32_t bytes, uint32_t flags)
{
	struct drm_panfrost_create_bo create = { .size = bytes, .flags = flags };
	ask(file, DRM_IOCTL_PANFROST_CREATE_BO, &create, "CREATE_BO");
	struct memory memory = { file, create.handle, create.offset, NULL };
	if (flags & PANFROST_BO_HEAP)
		return memory;
	struct drm_panfrost_mmap_bo place = { .handle = create.handle };
	ask(file, DRM_IOCTL_PANFROST_MMAP_BO, &place, "MMAP_BO");
	void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, place.offset);
	if (mapped == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	memory.words = mapped;
	return memory;
}

/* Puts a chain of one WRITE_VALUE job at the start of memory. */
static void write_job(struct memory *chain, uint64_t target, uint32_t value)
{
	const uint32_t job[16] = {
		[4] = 1 /* 64-bit */ | 2 << 1 /* WRITE_VALUE */ | 1 << 16 /* index */,
		[8] = (uint32_t)target, (uint32_t)(target >> 32),
		6 /* immediate, 32 bits */, 0, value,
	};
	for (int word = 0; word < 16; word++)
		chain->words[word] = job[word];
}

/* Submits a chain; the sync object may be 0. */
static void submit(int file, uint64_t chain, uint32_t sync, const struct memory *const *list, uint32_t count)
{
	uint32_t handles[4];
	for (uint32_t index = 0; index < count; index++)
		handles[index] = list[index]->handle;
	struct drm_panfrost_submit job = {
		.jc = chain, .out_sync = sync, .bo_handles = (uintptr_t)handles, .bo_handle_count = count,
	};
	ask(file, DRM_IOCTL_PANFROST_SUBMIT, &job, "SUBMIT");
}

static uint32_t make_sync(int file)
{
	struct drm_syncobj_create create = { 0 };
	ask(file, DRM_IOCTL_SYNCOBJ_CREATE, &create, "SYNCOBJ_CREATE");
	return create.handle;
}

static void wait_sync(int file, uint32_t sync)
{
	struct drm_syncobj_wait wait = { .handles = (uintptr_t)&sync, .count_handles = 1, .timeout_nsec = INT64_MAX };
	ask(file, DRM_IOCTL_SYNCOBJ_WAIT, &wait, "SYNCOBJ_WAIT");
}

static void wait_memory(const struct memory *memory)
{
	struct drm_panfrost_wait_bo wait = { .handle = memory->handle, .timeout_ns = INT64_MAX };
	ask(memory->file, DRM_IOCTL_PANFROST_WAIT_BO, &wait, "WAIT_BO");
}

static void give_up(const struct memory *memory)
{
	struct drm_gem_close close = { .handle = memory->handle };
	ask(memory->file, DRM_IOCTL_GEM_CLOSE, &close, "GEM_CLOSE");
}

/* One job in a file of its own, without a sync object of the app's. */
static uint32_t one_job(uint32_t value)
{
	int file = open_node();
	struct memory chain = allocate(file, PAGE, 0), target = allocate(file, PAGE, PANFROST_BO_NOEXEC);
	write_job(&chain, target.address, value);
	submit(file, chain.address, 0, (const struct memory *const[]){ &chain, &target }, 2);
	wait_memory(&target);
	return target.words[0];
}

static int signals, handled_file;

/* A handler that calls the driver, too. */
static void on_alarm(int signal)
{
	(void)signal;
	struct drm_panfrost_get_param param = { .param = DRM_PANFROST_PARAM_GPU_PROD_ID };
	ioctl(handled_file, DRM_IOCTL_PANFROST_GET_PARAM, &param);
	int copy = dup(handled_file);
	ioctl(copy, DRM_IOCTL_PANFROST_GET_PARAM, &param);
	close(copy);
	signals++;
}

static uint32_t in_signals(void)
{
	int file = handled_file = open_node();
	struct memory chain = allocate(file, PAGE, 0), target = allocate(file, 64 * PAGE, PANFROST_BO_NOEXEC);
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint32_t turn = 1; turn <= 40 || signals < 40; turn++) {
		write_job(&chain, target.address, turn);
		submit(file, chain.address, 0, (const struct memory *const[]){ &chain, &target }, 2);
		wait_memory(&target);
		if (target.words[0] != turn)
			return 0;
	}
	often = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &often, NULL);
	return 1;
}

/* Whether memory lets itself be mapped by the app: 0, or why not. */
static int mapped(int file, uint32_t handle)
{
	struct drm_panthor_bo_mmap_offset place = { .handle = handle };
	if (ioctl(file, DRM_IOCTL_PANTHOR_BO_MMAP_OFFSET, &place))
		return errno;
	void *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, place.offset);
	return words == MAP_FAILED ? 1000 + errno : munmap(words, PAGE);
}

/* Memory that the app says it will not map, beside other memory; each gets an address of the GPU. */
static void sealed(void)
{
	int file = open_node();
	struct drm_panthor_vm_create space = { 0 };
	ask(file, DRM_IOCTL_PANTHOR_VM_CREATE, &space, "VM_CREATE");
	for (uint32_t flags = 0; flags <= DRM_PANTHOR_BO_NO_MMAP; flags += DRM_PANTHOR_BO_NO_MMAP) {
		struct drm_panthor_bo_create made = { .size = PAGE, .flags = flags };
		ask(file, DRM_IOCTL_PANTHOR_BO_CREATE, &made, "BO_CREATE");
		struct drm_panthor_vm_bind_op place = {
			.flags = DRM_PANTHOR_VM_BIND_OP_TYPE_MAP | DRM_PANTHOR_VM_BIND_OP_MAP_NOEXEC,
			.bo_handle = made.handle, .va = 0x1000000 * (1 + flags), .size = made.size,
		};
		struct drm_panthor_vm_bind bind = { .vm_id = space.id, .ops = DRM_PANTHOR_OBJ_ARRAY(1, &place) };
		ask(file, DRM_IOCTL_PANTHOR_VM_BIND, &bind, "VM_BIND");
		printf("%u %u %llu %d\n", flags, made.handle, made.size, mapped(file, made.handle));
		struct drm_gem_close gone = { .handle = made.handle };
		ask(file, DRM_IOCTL_GEM_CLOSE, &gone, "GEM_CLOSE");
	}
	struct drm_panthor_bo_create odd = { .size = PAGE, .flags = DRM_PANTHOR_BO_NO_MMAP | 1u << 31 };
	printf("%d\n", ioctl(file, DRM_IOCTL_PANTHOR_BO_CREATE, &odd) ? errno : 0);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "files")) {
		uint32_t first = one_job(1);
		printf("%u %u\n", first, one_job(2));
		return 0;
	}
	if (!strcmp(name, "fork")) {
		uint32_t value = one_job(3);
		int status = 0;
		pid_t child = fork();
		if (child == 0)
			_exit(one_job(4) == 4 ? 0 : 1);
		waitpid(child, &status, 0);
		printf("%u, child %d\n", value, status);
		return 0;
	}
	if (!strcmp(name, "signals")) {
		printf("%u\n", in_signals());
		return 0;
	}
	if (!strcmp(name, "sealed")) {
		sealed();
		return 0;
	}
	int file = open_node();
	uint32_t sync = make_sync(file);
	struct memory chain = allocate(file, PAGE, 0), target = allocate(file, 2 * PAGE, PANFROST_BO_NOEXEC);
	const struct memory *both[] = { &chain, &target };
	if (!strcmp(name, "import")) {
		int other = open_node();
		struct memory theirs = allocate(other, 3 * PAGE, PANFROST_BO_NOEXEC);
		theirs.words[2 * PAGE / 4] = 0x600d;
		struct drm_prime_handle prime = { .handle = theirs.handle, .flags = DRM_CLOEXEC | DRM_RDWR };
		ask(other, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime, "PRIME_HANDLE_TO_FD");
		ask(file, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime, "PRIME_FD_TO_HANDLE");
		struct drm_panfrost_get_bo_offset place = { .handle = prime.handle };
		ask(file, DRM_IOCTL_PANFROST_GET_BO_OFFSET, &place, "GET_BO_OFFSET");
		struct memory ours = { file, prime.handle, place.offset, NULL };
		write_job(&chain, ours.address + PAGE, 5);
		submit(file, chain.address, sync, (const struct memory *const[]){ &chain, &ours }, 2);
		wait_sync(file, sync);
		printf("%u\n", theirs.words[PAGE / 4]);
	} else if (!strcmp(name, "freed")) {
		write_job(&chain, target.address + 64, 6);
		submit(file, chain.address, sync, both, 2);
		give_up(&chain);
		give_up(&target);
		wait_sync(file, sync);
		printf("%u\n", target.words[16]);
	} else if (!strcmp(name, "unlisted")) {
		write_job(&chain, target.address + 64, 7);
		for (int turn = 0; turn < 2; turn++) {
			submit(file, chain.address, sync, both, 1);
			wait_sync(file, sync);
		}
		printf("%u\n", target.words[16]);
	} else if (!strcmp(name, "fault")) {
		submit(file, 0x9000000, sync, both, 1);
		wait_sync(file, sync);
		struct drm_syncobj_handle fence = { .handle = sync, .flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE };
		ask(file, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &fence, "SYNCOBJ_HANDLE_TO_FD");
		struct sync_file_info info = { 0 };
		ask(fence.fd, SYNC_IOC_FILE_INFO, &info, "FILE_INFO");
		printf("%d\n", info.status);
	} else if (!strcmp(name, "purged")) {
		struct memory idle = allocate(file, 4 * PAGE, PANFROST_BO_NOEXEC), heap = allocate(file, 1 << 21, PANFROST_BO_HEAP | PANFROST_BO_NOEXEC);
		idle.words[0] = 8;
		struct drm_panfrost_madvise advice = { .handle = idle.handle, .madv = PANFROST_MADV_DONTNEED };
		ask(file, DRM_IOCTL_PANFROST_MADVISE, &advice, "MADVISE");
		write_job(&chain, target.address + 64, 9);
		submit(file, chain.address, sync, (const struct memory *const[]){ &chain, &target, &heap }, 3);
		wait_sync(file, sync);
		advice = (struct drm_panfrost_madvise){ .handle = idle.handle, .madv = PANFROST_MADV_WILLNEED };
		ask(file, DRM_IOCTL_PANFROST_MADVISE, &advice, "MADVISE");
		printf("%u %u\n", target.words[16], advice.retained ? idle.words[0] : 8);
	} else {
		fprintf(stderr, "driver_cases: files, fork, signals, import, freed, unlisted, fault, purged or sealed\n");
		return 2;
	}
	return 0;
}

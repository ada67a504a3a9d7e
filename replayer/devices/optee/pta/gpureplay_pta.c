// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A pseudo-TA that owns the GPU: it keeps one recording in secure memory, checks it, and runs it.
 *
 * Only the trusted application beside it may open it, so all memory that it is given is secure already.
 */
#include <io.h>
#include <kernel/delay.h>
#include <kernel/mutex.h>
#include <kernel/pseudo_ta.h>
#include <kernel/tee_ta_manager.h>
#include <kernel/tee_time.h>
#include <kernel/ts_manager.h>
#include <kernel/user_ta.h>
#include <malloc.h>
#include <mm/core_memprot.h>
#include <mm/core_mmu.h>
#include <string.h>
#include <string_ext.h>
#include <trace.h>

#include <gpureplay_bare.h>

#include "gpureplay_board.h"
#include "gpureplay_tee.h"

register_phys_mem(MEM_AREA_IO_SEC, GPUREPLAY_GPU_BASE, GPUREPLAY_GPU_BYTES);
register_phys_mem(MEM_AREA_IO_SEC, GPUREPLAY_CONFIGURATION, SMALL_PAGE_SIZE);
register_phys_mem(MEM_AREA_RAM_NSEC, GPUREPLAY_CARVE_OUT, GPUREPLAY_CARVE_OUT_BYTES);

/* One session, and the GPU if the session has it. */
struct gpu {
	struct gpureplay_session session;
	/* While a run is in progress: the session of the trusted application that asked for it. */
	struct tee_ta_session *caller;
	vaddr_t registers;
	uint8_t *arena;
	uint8_t *recording;
	size_t recording_bytes;
	/* Of the run in progress. The core's stacks are small. */
	struct gpureplay_io tensors[GPUREPLAY_TEE_TENSORS];
	/* Whether the carve-out may hold anything. */
	bool used;
};

static struct mutex lock = MUTEX_INITIALIZER;
/* The session that has the GPU. */
static struct gpu *owner;

static uint32_t read_register(void *context, uint32_t offset)
{
	struct gpu *gpu = context;

	return offset < GPUREPLAY_GPU_BYTES ? io_read32(gpu->registers + offset) : 0;
}

static void write_register(void *context, uint32_t offset, uint32_t value)
{
	struct gpu *gpu = context;

	dsb();
	if (offset < GPUREPLAY_GPU_BYTES)
		io_write32(gpu->registers + offset, value);
}

static uint64_t now(void *context __unused)
{
	return barrier_read_counter_timer() / (read_cntfrq() / 1000000);
}

/* Between two looks at the GPU the bus is free for others: a loop without a pause keeps them, and timers, waiting. */
static void rest(void *context __unused, uint32_t timeout_us)
{
	udelay(MIN(timeout_us, GPUREPLAY_POLL_US));
}

/* What the normal world asks of the trusted application's session: a bare flag, so it may be read at any time. */
static int cancelled(void *context)
{
	struct gpu *gpu = context;

	return gpu->caller && tee_ta_session_is_cancelled(gpu->caller, NULL);
}

/* Gives the function its address and lets it decode and master: the normal world may have moved it. */
static TEE_Result switch_on(struct gpu *gpu)
{
	vaddr_t configuration = (vaddr_t)phys_to_virt(GPUREPLAY_CONFIGURATION, MEM_AREA_IO_SEC, SMALL_PAGE_SIZE);

	gpu->registers = (vaddr_t)phys_to_virt(GPUREPLAY_GPU_BASE, MEM_AREA_IO_SEC, GPUREPLAY_GPU_BYTES);
	gpu->arena = phys_to_virt(GPUREPLAY_CARVE_OUT, MEM_AREA_RAM_NSEC, GPUREPLAY_CARVE_OUT_BYTES);
	if (!configuration || !gpu->registers || !gpu->arena)
		return TEE_ERROR_ITEM_NOT_FOUND;
	if (io_read32(configuration) == UINT32_MAX)
		return TEE_ERROR_ITEM_NOT_FOUND;
	io_write32(configuration + GPUREPLAY_PCI_BAR0, GPUREPLAY_GPU_BASE);
	io_setbits32(configuration + GPUREPLAY_PCI_COMMAND, GPUREPLAY_PCI_MEMORY_AND_MASTER);
	return TEE_SUCCESS;
}

/* Resets the GPU; then nothing of the recording, its tensors or its results stays in any memory. */
static void unload(struct gpu *gpu)
{
	struct gpureplay_error error = { };

	if (!gpu->recording)
		return;
	if (gpureplay_close(&gpu->session, &error))
		EMSG("the GPU did not reset: status %d, code %u", (int)error.status, (unsigned int)error.code);
	if (gpu->used) {
		memzero_explicit(gpu->arena, GPUREPLAY_CARVE_OUT_BYTES);
		dsb();
	}
	gpu->used = false;
	memzero_explicit(gpu->recording, gpu->recording_bytes);
	free(gpu->recording);
	gpu->recording = NULL;
	memzero_explicit(&gpu->session, sizeof(gpu->session));
}

/* The GPU is this session's until it is given back. A session waits in the normal world, where it holds nothing. */
static TEE_Result take(struct gpu *gpu)
{
	TEE_Result result = TEE_SUCCESS;

	mutex_lock(&lock);
	if (owner && owner != gpu)
		result = TEE_ERROR_BUSY;
	else if (!owner)
		result = switch_on(gpu);
	if (!result)
		owner = gpu;
	mutex_unlock(&lock);
	return result;
}

/* What the session left is gone before another one has the GPU. */
static void give_back(struct gpu *gpu)
{
	unload(gpu);
	mutex_lock(&lock);
	if (owner == gpu)
		owner = NULL;
	mutex_unlock(&lock);
}

static TEE_Result status_of(const struct gpureplay_error *error, TEE_Param *out)
{
	out->value.a = error->status;
	out->value.b = error->code;
	switch (error->status) {
	case 0:
		return TEE_SUCCESS;
	case 1:
	case 2:
		return TEE_ERROR_SECURITY;
	case 4:
		return TEE_ERROR_BAD_PARAMETERS;
	case 5:
		return TEE_ERROR_CANCEL;
	default:
		return TEE_ERROR_COMMUNICATION;
	}
}

static TEE_Result load(struct gpu *gpu, uint32_t types, TEE_Param params[TEE_NUM_PARAMS])
{
	struct gpureplay_device device = {
		.context = gpu,
		.read32 = read_register,
		.write32 = write_register,
		.now_us = now,
		.wait_interrupt = rest,
		.arena_bytes = GPUREPLAY_CARVE_OUT_BYTES,
		.arena_bus = GPUREPLAY_CARVE_OUT,
		.cancelled = cancelled,
	};
	struct gpureplay_error error = { };
	TEE_Result result = TEE_SUCCESS;
	size_t bytes = 0;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_VALUE_OUTPUT,
				     TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	bytes = params[0].memref.size;
	if (!params[0].memref.buffer || !bytes)
		return TEE_ERROR_BAD_PARAMETERS;
	if (bytes > GPUREPLAY_TEE_RECORDING_BYTES)
		return TEE_ERROR_EXCESS_DATA;
	result = take(gpu);
	if (result)
		return result;
	unload(gpu);
	device.arena = gpu->arena;
	gpu->recording = malloc(bytes);
	if (!gpu->recording)
		return TEE_ERROR_OUT_OF_MEMORY;
	memcpy(gpu->recording, params[0].memref.buffer, bytes);
	gpu->recording_bytes = bytes;
	if (gpureplay_open(&gpu->session, &device, gpu->recording, bytes, &error)) {
		memzero_explicit(gpu->recording, bytes);
		free(gpu->recording);
		gpu->recording = NULL;
	}
	return status_of(&error, &params[1]);
}

static TEE_Result find(struct gpu *gpu, uint32_t types, TEE_Param params[TEE_NUM_PARAMS])
{
	char name[GPUREPLAY_TEE_NAME_BYTES + 1] = { };
	int32_t index = -1;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_VALUE_OUTPUT,
				     TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	if (!params[0].memref.buffer || params[0].memref.size > GPUREPLAY_TEE_NAME_BYTES)
		return TEE_ERROR_BAD_PARAMETERS;
	if (!gpu->recording)
		return TEE_ERROR_BAD_STATE;
	memcpy(name, params[0].memref.buffer, params[0].memref.size);
	index = gpureplay_find(&gpu->session, name);
	if (index < 0)
		return TEE_ERROR_ITEM_NOT_FOUND;
	params[1].value.a = index;
	return TEE_SUCCESS;
}

/* Adds the entries of a block to the tensors of a run. */
static TEE_Result entries(TEE_Param *block, struct gpureplay_io *tensors, size_t *count)
{
	uint8_t *bytes = block->memref.buffer;
	size_t left = block->memref.size;

	while (left) {
		struct gpureplay_tee_entry entry = { };
		size_t padded = 0;

		if (left < sizeof(entry) || *count == GPUREPLAY_TEE_TENSORS)
			return TEE_ERROR_BAD_FORMAT;
		memcpy(&entry, bytes, sizeof(entry));
		bytes += sizeof(entry);
		left -= sizeof(entry);
		if (entry.index > INT32_MAX || entry.length > left)
			return TEE_ERROR_BAD_FORMAT;
		tensors[*count] = (struct gpureplay_io){
			.index = entry.index, .bytes = bytes, .length = entry.length,
		};
		(*count)++;
		padded = ROUNDUP((size_t)entry.length, 8);
		if (padded > left)
			return TEE_ERROR_BAD_FORMAT;
		bytes += padded;
		left -= padded;
	}
	return TEE_SUCCESS;
}

static TEE_Result run(struct gpu *gpu, uint32_t types, TEE_Param params[TEE_NUM_PARAMS])
{
	struct gpureplay_error error = { };
	TEE_Result result = TEE_SUCCESS;
	size_t count = 0;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_MEMREF_INOUT,
				     TEE_PARAM_TYPE_VALUE_OUTPUT, TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	if (!gpu->recording)
		return TEE_ERROR_BAD_STATE;
	result = entries(&params[0], gpu->tensors, &count);
	if (!result)
		result = entries(&params[1], gpu->tensors, &count);
	if (result)
		return result;
	gpu->used = true;
	gpu->caller = to_ta_session(ts_get_calling_session());
	gpureplay_run(&gpu->session, gpu->tensors, count, &error);
	gpu->caller = NULL;
	memset(gpu->tensors, 0, sizeof(gpu->tensors));
	result = status_of(&error, &params[2]);
	/* After an error nothing stays: neither in the GPU nor in its memory. */
	if (result)
		give_back(gpu);
	return result;
}

static TEE_Result open_session(uint32_t types __unused, TEE_Param params[TEE_NUM_PARAMS] __unused, void **context)
{
	static const TEE_UUID application = GPUREPLAY_TA_UUID;
	struct ts_session *caller = ts_get_calling_session();
	struct gpu *gpu = NULL;

	if (!caller || !is_user_ta_ctx(caller->ctx) || memcmp(&caller->ctx->uuid, &application, sizeof(application)))
		return TEE_ERROR_ACCESS_DENIED;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return TEE_ERROR_OUT_OF_MEMORY;
	*context = gpu;
	return TEE_SUCCESS;
}

/* OP-TEE closes a session that did not open, too: without a context. */
static void close_session(void *context)
{
	struct gpu *gpu = context;

	if (!gpu)
		return;
	give_back(gpu);
	free(gpu);
}

static TEE_Result invoke(void *context, uint32_t command, uint32_t types, TEE_Param params[TEE_NUM_PARAMS])
{
	switch (command) {
	case GPUREPLAY_TEE_LOAD:
		return load(context, types, params);
	case GPUREPLAY_TEE_FIND:
		return find(context, types, params);
	case GPUREPLAY_TEE_RUN:
		return run(context, types, params);
	case GPUREPLAY_TEE_UNLOAD:
		give_back(context);
		return TEE_SUCCESS;
	case GPUREPLAY_TEE_TAKE:
		return take(context);
	default:
		return TEE_ERROR_NOT_SUPPORTED;
	}
}

pseudo_ta_register(.uuid = GPUREPLAY_PTA_UUID, .name = "gpureplay.pta", .flags = PTA_DEFAULT_FLAGS,
		   .open_session_entry_point = open_session, .close_session_entry_point = close_session,
		   .invoke_command_entry_point = invoke);

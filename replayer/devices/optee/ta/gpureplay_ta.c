// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The trusted application: copies what the normal world hands in, checks signature and counter, and lets the pseudo-TA
 * run it. A counter that has run is kept in secure storage; what is older is refused from then on.
 */
#include <string.h>
#include <tee_internal_api.h>

#include "gpureplay_key.h"
#include "gpureplay_tee.h"
#include "gpureplay_trust.h"

/* One session of the normal world. */
struct session {
	TEE_TASessionHandle gpu;
	bool loaded;
	uint64_t counter;
	/* The stored counter is no smaller: storage is not asked again after each run. */
	bool raised;
};

static const char counter_object[] = "gpureplay-counter";

void gpureplay_trust_panic(void)
{
	TEE_Panic(TEE_ERROR_GENERIC);
	while (true)
		;
}

/* The smallest counter that is accepted. Without a stored one, any. */
static TEE_Result stored_counter(uint64_t *counter)
{
	TEE_ObjectHandle object = TEE_HANDLE_NULL;
	size_t read = 0;
	TEE_Result result = TEE_OpenPersistentObject(TEE_STORAGE_PRIVATE, counter_object, sizeof(counter_object),
						     TEE_DATA_FLAG_ACCESS_READ, &object);

	*counter = 0;
	if (result == TEE_ERROR_ITEM_NOT_FOUND)
		return TEE_SUCCESS;
	if (result)
		return result;
	result = TEE_ReadObjectData(object, counter, sizeof(*counter), &read);
	TEE_CloseObject(object);
	if (!result && read != sizeof(*counter))
		result = TEE_ERROR_CORRUPT_OBJECT;
	return result;
}

/* From now on nothing older is accepted. Creating with OVERWRITE replaces the object as a whole or not at all. */
static TEE_Result raise_counter(uint64_t counter)
{
	TEE_ObjectHandle object = TEE_HANDLE_NULL;
	uint64_t stored = 0;
	TEE_Result result = stored_counter(&stored);

	if (result || counter <= stored)
		return result;
	result = TEE_CreatePersistentObject(TEE_STORAGE_PRIVATE, counter_object, sizeof(counter_object),
					    TEE_DATA_FLAG_ACCESS_WRITE | TEE_DATA_FLAG_OVERWRITE, TEE_HANDLE_NULL,
					    &counter, sizeof(counter), &object);
	if (!result)
		TEE_CloseObject(object);
	return result;
}

static TEE_Result to_gpu(struct session *session, uint32_t command, uint32_t types, TEE_Param params[4])
{
	uint32_t origin = 0;

	return TEE_InvokeTACommand(session->gpu, TEE_TIMEOUT_INFINITE, command, types, params, &origin);
}

/* The normal world's bytes where it cannot change them any more. */
static TEE_Result copy_in(const TEE_Param *from, size_t most, uint8_t **copy)
{
	*copy = NULL;
	if (from->memref.size > most)
		return TEE_ERROR_EXCESS_DATA;
	if (!from->memref.buffer || !from->memref.size)
		return TEE_ERROR_BAD_PARAMETERS;
	*copy = TEE_Malloc(from->memref.size, TEE_MALLOC_FILL_ZERO);
	if (!*copy)
		return TEE_ERROR_OUT_OF_MEMORY;
	memcpy(*copy, from->memref.buffer, from->memref.size);
	return TEE_SUCCESS;
}

static TEE_Result refusal(int trust)
{
	switch (trust) {
	case GPUREPLAY_SIGNED:
		return TEE_SUCCESS;
	case GPUREPLAY_UNSIGNED:
		return TEE_ERROR_NO_DATA;
	case GPUREPLAY_OTHER_KEY:
		return TEE_ERROR_ACCESS_DENIED;
	case GPUREPLAY_ROLLBACK:
		return TEE_ERROR_UNSUPPORTED_VERSION;
	default:
		return TEE_ERROR_SIGNATURE_INVALID;
	}
}

static TEE_Result load(struct session *session, uint32_t types, TEE_Param params[4])
{
	struct gpureplay_signed found = { 0 };
	TEE_Param forward[4] = { 0 };
	uint64_t oldest = 0;
	uint8_t *pack = NULL;
	TEE_Result result = TEE_SUCCESS;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_VALUE_OUTPUT,
				     TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	session->loaded = false;
	params[1].value.a = 0;
	params[1].value.b = 0;
	/* Who must wait learns it before any work is done. */
	result = to_gpu(session, GPUREPLAY_TEE_TAKE, 0, forward);
	if (result)
		return result;
	result = stored_counter(&oldest);
	if (!result)
		result = copy_in(&params[0], GPUREPLAY_TEE_RECORDING_BYTES, &pack);
	if (!result)
		result = refusal(gpureplay_trust_check(pack, params[0].memref.size, gpureplay_key, oldest, &found));
	if (!result) {
		forward[0].memref.buffer = pack + found.offset;
		forward[0].memref.size = found.length;
		result = to_gpu(session, GPUREPLAY_TEE_LOAD, types, forward);
		params[1].value = forward[1].value;
	}
	TEE_Free(pack);
	if (result)
		to_gpu(session, GPUREPLAY_TEE_UNLOAD, 0, forward);
	session->loaded = !result;
	session->counter = found.counter;
	session->raised = !result && found.counter <= oldest;
	return result;
}

static TEE_Result find(struct session *session, uint32_t types, TEE_Param params[4])
{
	TEE_Param forward[4] = { 0 };
	uint8_t *name = NULL;
	TEE_Result result = TEE_SUCCESS;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_VALUE_OUTPUT,
				     TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	if (!session->loaded)
		return TEE_ERROR_BAD_STATE;
	result = copy_in(&params[0], GPUREPLAY_TEE_NAME_BYTES, &name);
	if (result)
		return result;
	forward[0].memref.buffer = name;
	forward[0].memref.size = params[0].memref.size;
	result = to_gpu(session, GPUREPLAY_TEE_FIND, types, forward);
	params[1].value = forward[1].value;
	TEE_Free(name);
	return result;
}

static TEE_Result run(struct session *session, uint32_t types, TEE_Param params[4])
{
	TEE_Param forward[4] = { 0 };
	uint8_t *inputs = NULL;
	uint8_t *outputs = NULL;
	TEE_Result result = TEE_SUCCESS;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_MEMREF_INPUT, TEE_PARAM_TYPE_MEMREF_INOUT,
				     TEE_PARAM_TYPE_VALUE_OUTPUT, TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	if (!session->loaded)
		return TEE_ERROR_BAD_STATE;
	/* A recording without inputs has an empty block of them. */
	if (params[0].memref.size)
		result = copy_in(&params[0], GPUREPLAY_TEE_TENSOR_BYTES, &inputs);
	if (!result)
		result = copy_in(&params[1], GPUREPLAY_TEE_TENSOR_BYTES, &outputs);
	if (!result) {
		forward[0].memref.buffer = inputs;
		forward[0].memref.size = params[0].memref.size;
		forward[1].memref.buffer = outputs;
		forward[1].memref.size = params[1].memref.size;
		TEE_UnmaskCancellation();
		result = to_gpu(session, GPUREPLAY_TEE_RUN, types, forward);
		TEE_MaskCancellation();
		params[2].value = forward[2].value;
		session->loaded = !result;
		if (result)
			to_gpu(session, GPUREPLAY_TEE_UNLOAD, 0, forward);
	}
	if (!result && !session->raised) {
		result = raise_counter(session->counter);
		session->raised = !result;
	}
	/* What a failed run left in the outputs is not for the normal world. */
	if (!result)
		memcpy(params[1].memref.buffer, outputs, params[1].memref.size);
	TEE_Free(inputs);
	TEE_Free(outputs);
	return result;
}

TEE_Result TA_CreateEntryPoint(void)
{
	return TEE_SUCCESS;
}

void TA_DestroyEntryPoint(void)
{
}

TEE_Result TA_OpenSessionEntryPoint(uint32_t types, TEE_Param params[4] __unused, void **context)
{
	static const TEE_UUID pta = GPUREPLAY_PTA_UUID;
	struct session *session = NULL;
	uint32_t origin = 0;
	TEE_Result result = TEE_SUCCESS;

	if (types != TEE_PARAM_TYPES(TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE, TEE_PARAM_TYPE_NONE,
				     TEE_PARAM_TYPE_NONE))
		return TEE_ERROR_BAD_PARAMETERS;
	session = TEE_Malloc(sizeof(*session), TEE_MALLOC_FILL_ZERO);
	if (!session)
		return TEE_ERROR_OUT_OF_MEMORY;
	result = TEE_OpenTASession(&pta, TEE_TIMEOUT_INFINITE, 0, NULL, &session->gpu, &origin);
	if (result) {
		TEE_Free(session);
		return result;
	}
	*context = session;
	return TEE_SUCCESS;
}

void TA_CloseSessionEntryPoint(void *context)
{
	struct session *session = context;

	TEE_CloseTASession(session->gpu);
	TEE_Free(session);
}

TEE_Result TA_InvokeCommandEntryPoint(void *context, uint32_t command, uint32_t types, TEE_Param params[4])
{
	struct session *session = context;

	switch (command) {
	case GPUREPLAY_TEE_LOAD:
		return load(session, types, params);
	case GPUREPLAY_TEE_FIND:
		return find(session, types, params);
	case GPUREPLAY_TEE_RUN:
		return run(session, types, params);
	case GPUREPLAY_TEE_UNLOAD:
		session->loaded = false;
		return to_gpu(session, GPUREPLAY_TEE_UNLOAD, 0, params);
	default:
		return TEE_ERROR_NOT_SUPPORTED;
	}
}

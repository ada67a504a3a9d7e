// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A client that means harm: calls of all commands with parameters of all kinds, sizes and contents, and another thread that
 * changes the shared memory meanwhile. Every call must end with an error code or with the right answer.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tee_client_api.h>
#include <time.h>

#include "gpureplay_tee.h"

#define SHARED_BYTES (4u << 20)

static const char usage[] =
	"Usage: gpureplay_tee_hostile PACK SECONDS SEED\n"
	"Prints how many calls ended how; exit status 1 if the session was lost.\n";

static uint64_t state;
static volatile bool done;

static uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t below(uint32_t bound)
{
	return random64() % bound;
}

/* Changes bytes of the shared memory as fast as it can. */
static void *scribble(void *memory)
{
	uint64_t x = 0x9e3779b97f4a7c15;
	volatile uint8_t *bytes = memory;

	while (!done) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[x % SHARED_BYTES] = x >> 32;
	}
	return NULL;
}

/* A size that is likely to meet a bound. */
static size_t odd_size(void)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 9, 15, 16, 255, 256, 257, 4095, 4096, 4097, GPUREPLAY_TEE_TENSOR_BYTES - 1,
		GPUREPLAY_TEE_TENSOR_BYTES, GPUREPLAY_TEE_TENSOR_BYTES + 1, GPUREPLAY_TEE_RECORDING_BYTES,
		GPUREPLAY_TEE_RECORDING_BYTES + 1, SHARED_BYTES,
	};

	return sizes[below(sizeof(sizes) / sizeof(*sizes))];
}

/* Entries whose headers are sometimes right. */
static void entries(uint8_t *bytes, size_t length)
{
	size_t at = 0;

	while (at + sizeof(struct gpureplay_tee_entry) <= length) {
		struct gpureplay_tee_entry entry = { .index = below(4), .length = below(512) };

		switch (below(8)) {
		case 0:
			entry.length = random64();
			break;
		case 1:
			entry.index = random64();
			break;
		case 2:
			entry.length = UINT32_MAX - below(16);
			break;
		}
		memcpy(bytes + at, &entry, sizeof(entry));
		if (entry.length > length)
			break;
		at += sizeof(entry) + ((entry.length + 7) & ~7u);
	}
}

static bool open_session(TEEC_Context *context, TEEC_Session *session)
{
	static const TEEC_UUID application = GPUREPLAY_TA_UUID;
	uint32_t origin = 0;

	return !TEEC_OpenSession(context, session, &application, TEEC_LOGIN_PUBLIC, NULL, NULL, &origin);
}

static TEEC_Result load(TEEC_Session *session, void *pack, size_t length)
{
	TEEC_Operation operation = { 0 };
	uint32_t origin = 0;

	operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_INPUT, TEEC_VALUE_OUTPUT, TEEC_NONE, TEEC_NONE);
	operation.params[0].tmpref.buffer = pack;
	operation.params[0].tmpref.size = length;
	return TEEC_InvokeCommand(session, GPUREPLAY_TEE_LOAD, &operation, &origin);
}

int main(int count, char **arguments)
{
	static const uint32_t kinds[] = {
		TEEC_NONE, TEEC_VALUE_INPUT, TEEC_VALUE_OUTPUT, TEEC_VALUE_INOUT, TEEC_MEMREF_TEMP_INPUT,
		TEEC_MEMREF_TEMP_OUTPUT, TEEC_MEMREF_TEMP_INOUT, TEEC_MEMREF_PARTIAL_INPUT,
		TEEC_MEMREF_PARTIAL_OUTPUT, TEEC_MEMREF_PARTIAL_INOUT,
	};
	TEEC_Context context;
	TEEC_Session session;
	TEEC_SharedMemory shared = { .size = SHARED_BYTES, .flags = TEEC_MEM_INPUT | TEEC_MEM_OUTPUT };
	unsigned long calls = 0, good = 0, lost = 0;
	uint8_t *buffers[4];
	uint8_t *pack = calloc(1, SHARED_BYTES);
	size_t length = 0;
	pthread_t other;
	time_t end;
	FILE *file;

	if (count != 4) {
		fputs(usage, stderr);
		return 2;
	}
	state = strtoull(arguments[3], NULL, 0) * 2 + 1;
	file = fopen(arguments[1], "rb");
	if (!file || !pack)
		return fprintf(stderr, "cannot read %s\n", arguments[1]), 2;
	length = fread(pack, 1, SHARED_BYTES, file);
	fclose(file);
	for (int index = 0; index < 4; index++) {
		buffers[index] = calloc(1, SHARED_BYTES);
		if (!buffers[index])
			return 2;
	}
	if (TEEC_InitializeContext(NULL, &context) || TEEC_AllocateSharedMemory(&context, &shared) ||
	    !open_session(&context, &session))
		return fputs("no session\n", stderr), 1;
	pthread_create(&other, NULL, scribble, shared.buffer);
	end = time(NULL) + atoi(arguments[2]);
	while (time(NULL) < end) {
		TEEC_Operation operation = { 0 };
		uint32_t types[4], origin = 0;
		TEEC_Result result;

		/* Half of the calls have the form that the command wants, so that they get further in. */
		uint32_t command = below(8) ? below(4) : (uint32_t)random64();
		bool right = below(2);

		if (!below(16))
			load(&session, pack, length);
		for (int index = 0; index < 4; index++) {
			size_t size = odd_size();

			types[index] = kinds[below(sizeof(kinds) / sizeof(*kinds))];
			if (right)
				types[index] = index == 0 ? TEEC_MEMREF_TEMP_INPUT :
					       index == 1 ? (command == GPUREPLAY_TEE_RUN ? TEEC_MEMREF_TEMP_INOUT : TEEC_VALUE_OUTPUT) :
					       index == 2 && command == GPUREPLAY_TEE_RUN ? TEEC_VALUE_OUTPUT : TEEC_NONE;
			switch (types[index]) {
			case TEEC_MEMREF_TEMP_INPUT:
			case TEEC_MEMREF_TEMP_OUTPUT:
			case TEEC_MEMREF_TEMP_INOUT:
				if (right && size > 4096)
					size = 8 * below(512);
				operation.params[index].tmpref.buffer = below(16) ? buffers[index] : NULL;
				operation.params[index].tmpref.size = size;
				if (command == GPUREPLAY_TEE_LOAD && below(2)) {
					memcpy(buffers[index], pack, length);
					buffers[index][below(length)] ^= 1 << below(8);
					operation.params[index].tmpref.size = below(4) ? length : below(length);
				} else {
					entries(buffers[index], size);
				}
				break;
			case TEEC_MEMREF_PARTIAL_INPUT:
			case TEEC_MEMREF_PARTIAL_OUTPUT:
			case TEEC_MEMREF_PARTIAL_INOUT:
				operation.params[index].memref.parent = &shared;
				operation.params[index].memref.offset = below(SHARED_BYTES);
				operation.params[index].memref.size =
					below(SHARED_BYTES - operation.params[index].memref.offset + 1);
				break;
			default:
				operation.params[index].value.a = random64();
				operation.params[index].value.b = random64();
			}
		}
		operation.paramTypes = TEEC_PARAM_TYPES(types[0], types[1], types[2], types[3]);
		result = TEEC_InvokeCommand(&session, command, &operation, &origin);
		calls++;
		good += !result;
		if (result == TEEC_ERROR_TARGET_DEAD) {
			lost++;
			TEEC_CloseSession(&session);
			if (!open_session(&context, &session))
				return fputs("the application does not come back\n", stderr), 1;
		} else if (!below(64)) {
			TEEC_CloseSession(&session);
			if (!open_session(&context, &session))
				return fputs("no new session\n", stderr), 1;
		}
	}
	done = true;
	pthread_join(other, NULL);
	TEEC_CloseSession(&session);
	TEEC_ReleaseSharedMemory(&shared);
	TEEC_FinalizeContext(&context);
	printf("seed %s: %lu calls, %lu succeeded, %lu lost the application\n", arguments[3], calls, good, lost);
	return lost ? 1 : 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Changes a pack in shared memory while the secure world takes it: each call must end with a refusal or with the right
 * answer, never with something that was not signed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tee_client_api.h>

#include "gpureplay_tee.h"

static const char usage[] =
	"Usage: gpureplay_tee_race PACK AT INPUT:FILE OUTPUT:FILE LOADS\n"
	"Inverts the byte AT of the pack and puts it right again, over and over, while it is loaded LOADS times.\n"
	"Prints how often it was refused and how often it ran; exit status 1 if an answer was not that of OUTPUT's file.\n";

static volatile bool done;

struct target {
	volatile uint8_t *byte;
	uint8_t right;
	volatile unsigned long changes;
};

static void *change(void *argument)
{
	struct target *target = argument;
	uint64_t x = 0x9e3779b97f4a7c15;

	while (!done) {
		/* Each state lasts for another time, so that changes meet the copy at other places. */
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		*target->byte = target->right ^ (x & 1 ? 0xff : 0);
		target->changes++;
		for (volatile uint32_t wait = x >> 32 & 0xffff; wait; wait--)
			;
	}
	*target->byte = target->right;
	return NULL;
}

static uint8_t *contents(const char *path, size_t *length)
{
	uint8_t *bytes = malloc(GPUREPLAY_TEE_RECORDING_BYTES);
	FILE *file = fopen(path, "rb");

	if (!file || !bytes) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(2);
	}
	*length = fread(bytes, 1, GPUREPLAY_TEE_RECORDING_BYTES, file);
	fclose(file);
	return bytes;
}

/* Splits NAME:FILE and makes an entry of the file's bytes. */
static uint8_t *entry(TEEC_Session *session, char *argument, size_t *length)
{
	char *path = strchr(argument, ':');
	struct gpureplay_tee_entry header = { 0 };
	TEEC_Operation operation = { 0 };
	uint32_t origin = 0;
	uint8_t *bytes, *block;

	if (!path) {
		fputs(usage, stderr);
		exit(2);
	}
	*path++ = 0;
	bytes = contents(path, length);
	operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_INPUT, TEEC_VALUE_OUTPUT, TEEC_NONE, TEEC_NONE);
	operation.params[0].tmpref.buffer = argument;
	operation.params[0].tmpref.size = strlen(argument);
	if (TEEC_InvokeCommand(session, GPUREPLAY_TEE_FIND, &operation, &origin)) {
		fprintf(stderr, "no tensor %s\n", argument);
		exit(2);
	}
	header.index = operation.params[1].value.a;
	header.length = *length;
	block = calloc(1, sizeof(header) + *length + 7);
	if (!block)
		exit(2);
	memcpy(block, &header, sizeof(header));
	memcpy(block + sizeof(header), bytes, *length);
	free(bytes);
	return block;
}

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

int main(int count, char **arguments)
{
	static const TEEC_UUID application = GPUREPLAY_TA_UUID;
	TEEC_SharedMemory shared = { .size = GPUREPLAY_TEE_RECORDING_BYTES, .flags = TEEC_MEM_INPUT };
	unsigned long refused = 0, ran = 0, other = 0, wrong = 0, loads = 0;
	uint8_t *input = NULL, *expected = NULL, *output = NULL;
	size_t length = 0, in = 0, out = 0;
	struct target target = { 0 };
	TEEC_Context context;
	TEEC_Session session;
	uint32_t origin = 0;
	pthread_t thread;
	uint8_t *pack;

	if (count != 6) {
		fputs(usage, stderr);
		return 2;
	}
	pack = contents(arguments[1], &length);
	if (TEEC_InitializeContext(NULL, &context) || TEEC_AllocateSharedMemory(&context, &shared) ||
	    TEEC_OpenSession(&context, &session, &application, TEEC_LOGIN_PUBLIC, NULL, NULL, &origin))
		return fputs("no session\n", stderr), 1;
	memcpy(shared.buffer, pack, length);
	target.byte = (uint8_t *)shared.buffer + strtoul(arguments[2], NULL, 0) % length;
	target.right = *target.byte;
	loads = strtoul(arguments[5], NULL, 10);
	for (unsigned long load = 0; load <= loads; load++) {
		TEEC_Operation operation = { 0 };
		TEEC_Result result;

		operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_PARTIAL_INPUT, TEEC_VALUE_OUTPUT, TEEC_NONE, TEEC_NONE);
		operation.params[0].memref.parent = &shared;
		operation.params[0].memref.size = length;
		result = TEEC_InvokeCommand(&session, GPUREPLAY_TEE_LOAD, &operation, &origin);
		if (!load) {
			/* Nobody changes anything yet. */
			if (result)
				return fprintf(stderr, "the pack itself is refused: 0x%08x\n", result), 2;
			input = entry(&session, arguments[3], &in);
			expected = entry(&session, arguments[4], &out);
			output = calloc(1, sizeof(struct gpureplay_tee_entry) + padded(out));
			if (!output || pthread_create(&thread, NULL, change, &target))
				return 2;
			continue;
		}
		/* The pack's own checksum does not hold, or the signature (TEE_ERROR_SIGNATURE_INVALID). */
		if (result == TEEC_ERROR_NO_DATA || result == 0xffff3072) {
			refused++;
			continue;
		}
		if (result) {
			fprintf(stderr, "load %lu: 0x%08x\n", load, result);
			other++;
			continue;
		}
		/* What was taken is what runs, whatever the shared memory holds by now. */
		memset(output, 0, sizeof(struct gpureplay_tee_entry) + padded(out));
		memcpy(output, expected, sizeof(struct gpureplay_tee_entry));
		memset(&operation, 0, sizeof(operation));
		operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_INPUT, TEEC_MEMREF_TEMP_INOUT, TEEC_VALUE_OUTPUT,
							TEEC_NONE);
		operation.params[0].tmpref.buffer = input;
		operation.params[0].tmpref.size = sizeof(struct gpureplay_tee_entry) + padded(in);
		operation.params[1].tmpref.buffer = output;
		operation.params[1].tmpref.size = sizeof(struct gpureplay_tee_entry) + padded(out);
		result = TEEC_InvokeCommand(&session, GPUREPLAY_TEE_RUN, &operation, &origin);
		ran++;
		if (result || memcmp(output, expected, sizeof(struct gpureplay_tee_entry) + out)) {
			fprintf(stderr, "run %lu: 0x%08x\n", load, result);
			wrong++;
		}
	}
	done = true;
	pthread_join(thread, NULL);
	TEEC_CloseSession(&session);
	TEEC_ReleaseSharedMemory(&shared);
	TEEC_FinalizeContext(&context);
	printf("%lu refused, %lu ran right, %lu changes meanwhile\n", refused, ran - wrong, target.changes);
	return wrong || other ? 1 : 0;
}

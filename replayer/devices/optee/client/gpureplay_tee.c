// SPDX-License-Identifier: MIT OR Apache-2.0
/* A program of the normal world that has recordings replayed in the secure world, by libteec. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tee_client_api.h>
#include <time.h>
#include <unistd.h>

#include "gpureplay_names.h"
#include "gpureplay_tee.h"

static const char usage[] =
	"Usage: gpureplay_tee PACK [-n RUNS] [-c MS] [-i NAME:BYTES=FILE]... [-o NAME:BYTES=FILE]...\n"
	"\n"
	"Has the secure world replay a signed pack (`gpureplay pack`). Run number k takes the k-th BYTES of each input's\n"
	"FILE (.npy or raw), and appends BYTES to each output's FILE. With -c a run that takes longer than MS milliseconds\n"
	"is cancelled.\n"
	"\n"
	"Example, one digit:\n"
	"  gpureplay_tee digits.pack -i input:256=three.npy -o probabilities:40=answer.bin\n"
	"\n"
	"Exit status: 0 done, 1 the secure world refused or failed, 2 wrong arguments or files.\n";

/* How long to wait for the GPU while another client has it, in steps of 10 ms. */
#define TURNS 6000

/* A tensor that the command line names. */
struct tensor {
	const char *name;
	uint32_t bytes;
	uint32_t index;
	uint8_t *data; /* inputs: the file, from its first element on */
	size_t length;
	FILE *file; /* outputs */
};

/* The run that is cancelled if it takes too long. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	TEEC_Operation *operation;
	unsigned long milliseconds;
} watched = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static void fail(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("gpureplay_tee: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(code);
}

/* A whole file, at most GPUREPLAY_TEE_RECORDING_BYTES of it. */
static uint8_t *contents(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(GPUREPLAY_TEE_RECORDING_BYTES + 1);

	if (!file || !bytes)
		fail(2, "%s: %s", path, strerror(errno));
	*length = fread(bytes, 1, GPUREPLAY_TEE_RECORDING_BYTES + 1, file);
	if (ferror(file))
		fail(2, "%s: %s", path, strerror(errno));
	if (*length > GPUREPLAY_TEE_RECORDING_BYTES)
		fail(2, "%s has more than %u bytes", path, GPUREPLAY_TEE_RECORDING_BYTES);
	fclose(file);
	return bytes;
}

/* Splits NAME:BYTES=FILE. */
static const char *split(char *argument, struct tensor *tensor)
{
	char *equals = strchr(argument, '=');
	char *colon = equals ? memchr(argument, ':', equals - argument) : NULL;
	char *end = NULL;
	unsigned long bytes = 0;

	if (!colon)
		fail(2, "expected NAME:BYTES=FILE, got %s", argument);
	*colon = 0;
	bytes = strtoul(colon + 1, &end, 10);
	if (end != equals || !bytes || bytes > GPUREPLAY_TEE_TENSOR_BYTES)
		fail(2, "%s: expected a number of bytes from 1 to %u", argument, GPUREPLAY_TEE_TENSOR_BYTES);
	tensor->name = argument;
	tensor->bytes = bytes;
	return equals + 1;
}

static void input(char *argument, struct tensor *tensor)
{
	const char *path = split(argument, tensor);
	uint8_t *bytes = contents(path, &tensor->length);
	size_t header = 0;

	if (tensor->length >= 10 && !memcmp(bytes, "\x93NUMPY\x01", 7)) {
		header = 10 + bytes[8] + 256 * bytes[9];
		if (header > tensor->length)
			fail(2, "%s: its header is cut off", path);
	}
	tensor->data = bytes + header;
	tensor->length -= header;
}

static void output(char *argument, struct tensor *tensor)
{
	const char *path = split(argument, tensor);

	tensor->file = fopen(path, "wb");
	if (!tensor->file)
		fail(2, "%s: %s", path, strerror(errno));
}

/* What the trusted application's answers mean. */
static const char *meaning(TEEC_Result result)
{
	switch (result) {
	case TEEC_ERROR_NO_DATA:
		return "the pack has no signature";
	case TEEC_ERROR_ACCESS_DENIED:
		return "the pack is signed with another key";
	case 0xf0100005: /* TEE_ERROR_UNSUPPORTED_VERSION */
		return "the pack is older than one that has run";
	case 0xffff3072: /* TEE_ERROR_SIGNATURE_INVALID */
		return "the signature does not fit the recording";
	case TEEC_ERROR_SECURITY:
		return "the recording is damaged or breaks a rule";
	case TEEC_ERROR_COMMUNICATION:
		return "the GPU failed";
	case TEEC_ERROR_ITEM_NOT_FOUND:
		return "there is no such tensor, or no GPU";
	case TEEC_ERROR_CANCEL:
		return "it was cancelled";
	case TEEC_ERROR_BUSY:
		return "another client has the GPU";
	case TEEC_ERROR_OUT_OF_MEMORY:
		return "the secure memory does not suffice";
	default:
		return "";
	}
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void check(TEEC_Result result, const char *what, const TEEC_Value *status)
{
	if (result == TEEC_ERROR_SECURITY && status && status->a == 1 && status->b < COUNT(gpureplay_sections))
		fail(1, "%s: the recording's section %s is damaged (0x%08x)", what, gpureplay_sections[status->b], result);
	if (result == TEEC_ERROR_SECURITY && status && status->a == 2 && status->b < COUNT(gpureplay_rules))
		fail(1, "%s: the recording's rule %s is broken (0x%08x)", what, gpureplay_rules[status->b], result);
	if (result && status && (status->a || status->b))
		fail(1, "%s: %s (0x%08x, status %u, code %u)", what, meaning(result), result, status->a, status->b);
	if (result)
		fail(1, "%s: %s (0x%08x)", what, meaning(result), result);
}

/* Cancels the run if it does not end in time. */
static void *watch(void *nothing)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += watched.milliseconds / 1000;
	until.tv_nsec += watched.milliseconds % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&watched.lock);
	while (watched.operation)
		if (pthread_cond_timedwait(&watched.ended, &watched.lock, &until) == ETIMEDOUT)
			break;
	if (watched.operation)
		TEEC_RequestCancellation(watched.operation);
	pthread_mutex_unlock(&watched.lock);
	return nothing;
}

/* Invokes RUN, and cancels it after `watched.milliseconds` if that is not 0. */
static TEEC_Result run_watched(TEEC_Session *session, TEEC_Operation *operation)
{
	uint32_t origin = 0;
	TEEC_Result result;
	pthread_t thread;

	if (!watched.milliseconds)
		return TEEC_InvokeCommand(session, GPUREPLAY_TEE_RUN, operation, &origin);
	watched.operation = operation;
	if (pthread_create(&thread, NULL, watch, NULL))
		fail(2, "no thread to cancel the run");
	result = TEEC_InvokeCommand(session, GPUREPLAY_TEE_RUN, operation, &origin);
	pthread_mutex_lock(&watched.lock);
	watched.operation = NULL;
	pthread_cond_signal(&watched.ended);
	pthread_mutex_unlock(&watched.lock);
	pthread_join(thread, NULL);
	return result;
}

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Writes the header of an entry and returns where its bytes are. */
static uint8_t *entry(uint8_t **at, const struct tensor *tensor)
{
	struct gpureplay_tee_entry header = { .index = tensor->index, .length = tensor->bytes };
	uint8_t *bytes = *at + sizeof(header);

	memcpy(*at, &header, sizeof(header));
	*at = bytes + padded(tensor->bytes);
	return bytes;
}

int main(int count, char **arguments)
{
	static const TEEC_UUID application = GPUREPLAY_TA_UUID;
	struct tensor inputs[GPUREPLAY_TEE_TENSORS] = { 0 };
	struct tensor outputs[GPUREPLAY_TEE_TENSORS] = { 0 };
	size_t input_count = 0, output_count = 0, in_bytes = 0, out_bytes = 0, length = 0;
	unsigned long runs = 1;
	const char *path = NULL;
	TEEC_Context context;
	TEEC_Session session;
	TEEC_Operation operation;
	uint32_t origin = 0;
	TEEC_Result result;
	uint8_t *pack, *in, *out;

	for (int option; (option = getopt(count, arguments, "-hn:c:i:o:")) != -1;) {
		switch (option) {
		case 1:
			path = optarg;
			break;
		case 'n':
			runs = strtoul(optarg, NULL, 10);
			break;
		case 'c':
			watched.milliseconds = strtoul(optarg, NULL, 10);
			break;
		case 'i':
		case 'o':
			if (input_count + output_count == GPUREPLAY_TEE_TENSORS)
				fail(2, "more than %u tensors", GPUREPLAY_TEE_TENSORS);
			if (option == 'i')
				input(optarg, &inputs[input_count++]);
			else
				output(optarg, &outputs[output_count++]);
			break;
		default:
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	if (!path || !output_count || !input_count) {
		fputs(usage, stderr);
		return 2;
	}
	pack = contents(path, &length);
	check(TEEC_InitializeContext(NULL, &context), "no trusted execution environment", NULL);
	/* Many clients at once need more memory than there is. */
	for (int turn = 0;; turn++) {
		result = TEEC_OpenSession(&context, &session, &application, TEEC_LOGIN_PUBLIC, NULL, NULL, &origin);
		if (result != TEEC_ERROR_OUT_OF_MEMORY || turn == TURNS)
			break;
		usleep(10000);
	}
	check(result, "the application", NULL);

	memset(&operation, 0, sizeof(operation));
	operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_INPUT, TEEC_VALUE_OUTPUT, TEEC_NONE, TEEC_NONE);
	operation.params[0].tmpref.buffer = pack;
	operation.params[0].tmpref.size = length;
	for (int turn = 0;; turn++) {
		result = TEEC_InvokeCommand(&session, GPUREPLAY_TEE_LOAD, &operation, &origin);
		if (result != TEEC_ERROR_BUSY || turn == TURNS)
			break;
		usleep(10000);
	}
	check(result, path, &operation.params[1].value);

	for (size_t index = 0; index < input_count + output_count; index++) {
		bool is_input = index < input_count;
		struct tensor *tensor = is_input ? &inputs[index] : &outputs[index - input_count];

		operation.params[0].tmpref.buffer = (void *)tensor->name;
		operation.params[0].tmpref.size = strlen(tensor->name);
		check(TEEC_InvokeCommand(&session, GPUREPLAY_TEE_FIND, &operation, &origin), tensor->name, NULL);
		tensor->index = operation.params[1].value.a;
		*(is_input ? &in_bytes : &out_bytes) += sizeof(struct gpureplay_tee_entry) + padded(tensor->bytes);
		if (is_input && tensor->length / tensor->bytes < runs)
			fail(2, "%s has values for %zu runs, not for %lu", tensor->name, tensor->length / tensor->bytes,
			     runs);
	}
	in = calloc(1, in_bytes);
	out = calloc(1, out_bytes);
	if (!in || !out)
		fail(2, "out of memory");
	for (unsigned long run = 0; run < runs; run++) {
		uint8_t *at = in;

		for (size_t index = 0; index < input_count; index++)
			memcpy(entry(&at, &inputs[index]), inputs[index].data + run * inputs[index].bytes,
			       inputs[index].bytes);
		at = out;
		for (size_t index = 0; index < output_count; index++)
			entry(&at, &outputs[index]);
		memset(&operation, 0, sizeof(operation));
		operation.paramTypes = TEEC_PARAM_TYPES(TEEC_MEMREF_TEMP_INPUT, TEEC_MEMREF_TEMP_INOUT,
							TEEC_VALUE_OUTPUT, TEEC_NONE);
		operation.params[0].tmpref.buffer = in;
		operation.params[0].tmpref.size = in_bytes;
		operation.params[1].tmpref.buffer = out;
		operation.params[1].tmpref.size = out_bytes;
		result = run_watched(&session, &operation);
		check(result, "the run", &operation.params[2].value);
		at = out;
		for (size_t index = 0; index < output_count; index++) {
			const struct tensor *tensor = &outputs[index];
			const uint8_t *bytes = at + sizeof(struct gpureplay_tee_entry);

			if (fwrite(bytes, 1, tensor->bytes, tensor->file) != tensor->bytes)
				fail(2, "%s: %s", tensor->name, strerror(errno));
			at += sizeof(struct gpureplay_tee_entry) + padded(tensor->bytes);
		}
	}
	for (size_t index = 0; index < output_count; index++)
		if (fclose(outputs[index].file))
			fail(2, "%s: %s", outputs[index].name, strerror(errno));
	TEEC_CloseSession(&session);
	TEEC_FinalizeContext(&context);
	printf("%lu runs\n", runs);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes text with a recurrent network, one character a step, all of it in OpenCL kernels. It knows nothing of a recorder.
//
// generate --weights DIR --forced F.npy --characters OUT.npy
//   F: int32 steps x 1, the token that a step takes, or -1 for the one that the step before chose. OUT: uint8 steps x 1.
//   DIR has table.npy, recurrent.npy, bias.npy, output.npy, output_bias.npy: tools/generation/network.py.
#include "opencl_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

#define SOURCE "/opt/gpureplay/share/networks/generate.cl"

enum { HIDDEN = 192, TOKENS = 30 };

static const char alphabet[TOKENS + 1] = "\n ,.abcdefghijklmnopqrstuvwxyz";

static struct gpu gpu;
static cl_program program;

static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	fprintf(stderr, "generate: %s is missing; see generate.c\n", name);
	exit(2);
}

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);
	if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) {
		fprintf(stderr, "generate: %s cannot be read\n", path);
		exit(2);
	}
	fclose(file);
	return text;
}

/* A buffer with this content, or zeros. */
static cl_mem buffer(size_t bytes, const void *content)
{
	cl_int error;
	cl_mem made = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, bytes, NULL, &error);
	must(error, "buffer");
	void *zeros = content ? NULL : calloc(1, bytes);
	must(clEnqueueWriteBuffer(gpu.queue, made, CL_TRUE, 0, bytes, content ? content : zeros, 0, NULL, NULL), "write");
	free(zeros);
	return made;
}

static cl_mem weights(const char *folder, const char *name, int rank, size_t rows, size_t columns)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.npy", folder, name);
	struct npy array = npy_read_shape(path, 'f', rank, (size_t[]){ rows, columns });
	return buffer(array.count * 4, array.data);
}

struct launch {
	const char *name;
	size_t items;
	cl_mem given[8]; /* up to the first that is none */
	cl_kernel kernel;
};

int main(int argc, char **argv)
{
	const char *from = option(argc, argv, "--weights"), *out = option(argc, argv, "--characters");
	size_t shape[2] = { 0, 1 };
	struct npy forced = npy_read_shape(option(argc, argv, "--forced"), 'i', 2, shape);
	size_t steps = shape[0];
	struct npy text = { .type = 'u', .size = 1, .rank = 2, .shape = { steps, 1 }, .count = steps, .data = calloc(steps, 1) };

	gpu = open_gpu();
	program = build_program(&gpu, read_text(SOURCE), "", "generate.cl");
	cl_mem table = weights(from, "table", 2, 3 * HIDDEN, TOKENS);
	cl_mem recurrent = weights(from, "recurrent", 2, 3 * HIDDEN, HIDDEN);
	cl_mem bias = weights(from, "bias", 1, 3 * HIDDEN, 0);
	cl_mem output = weights(from, "output", 2, TOKENS, HIDDEN);
	cl_mem output_bias = weights(from, "output_bias", 1, TOKENS, 0);
	cl_mem letters = buffer(TOKENS, alphabet), hidden = buffer(HIDDEN * 4, NULL), token = buffer(4, NULL);
	cl_mem given = buffer(4, NULL), gate = buffer(2 * HIDDEN * 4, NULL), next = buffer(HIDDEN * 4, NULL);
	cl_mem score = buffer(TOKENS * 4, NULL), character = buffer(1, NULL);
	struct launch launches[] = {
		{ "gates", 2 * HIDDEN, { table, recurrent, bias, hidden, token, given, gate } },
		{ "candidate", HIDDEN, { table, recurrent, bias, hidden, token, given, gate, next } },
		{ "keep", HIDDEN, { next, hidden } },
		{ "scores", TOKENS, { output, output_bias, hidden, score } },
		{ "choose", 1, { score, letters, token, character } },
	};
	enum { LAUNCHES = sizeof launches / sizeof *launches };
	for (int i = 0; i < LAUNCHES; i++) {
		cl_int error;
		launches[i].kernel = clCreateKernel(program, launches[i].name, &error);
		must(error, launches[i].name);
		for (int a = 0; a < 8 && launches[i].given[a]; a++)
			must(clSetKernelArg(launches[i].kernel, a, sizeof(cl_mem), &launches[i].given[a]), launches[i].name);
	}
	for (size_t step = 0; step < steps; step++) {
		must(clEnqueueWriteBuffer(gpu.queue, given, CL_TRUE, 0, 4, (int *)forced.data + step, 0, NULL, NULL), "token");
		for (int i = 0; i < LAUNCHES; i++)
			must(clEnqueueNDRangeKernel(gpu.queue, launches[i].kernel, 1, NULL, &launches[i].items, NULL, 0, NULL,
						    NULL),
			     launches[i].name);
		must(clEnqueueReadBuffer(gpu.queue, character, CL_TRUE, 0, 1, (char *)text.data + step, 0, NULL, NULL), "read");
	}
	npy_write(out, &text);
	return 0;
}

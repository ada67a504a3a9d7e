// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes text with a recurrent network, one character a step, all of it in OpenCL kernels. It knows nothing of a recorder.
//
// generate --weights DIR --forced F.npy --characters OUT.npy
//   F: int32 steps x 1, the token that a step takes, or -1 for the one that the step before chose. OUT: uint8 steps x 1.
//   DIR has table.npy, recurrent.npy, bias.npy, output.npy, output_bias.npy: tools/generation/network.py.
#include "app.h"

enum { HIDDEN = 192, TOKENS = 30 };

static const char alphabet[TOKENS + 1] = "\n ,.abcdefghijklmnopqrstuvwxyz";

struct prepared {
	const char *name;
	size_t items;
	cl_mem given[8]; /* up to the first that is none */
	cl_kernel kernel;
};

int main(int argc, char **argv)
{
	const char *from = option(argc, argv, "--weights", NULL), *out = option(argc, argv, "--characters", NULL);
	size_t shape[2] = { 0, 1 };
	struct npy forced = npy_read_shape(option(argc, argv, "--forced", NULL), 'i', 2, shape);
	size_t steps = shape[0];
	struct npy text = { .type = 'u', .size = 1, .rank = 2, .shape = { steps, 1 }, .count = steps, .data = calloc(steps, 1) };

	gpu = open_gpu();
	cl_program program = program_of("generate.cl", "");
	cl_mem table = weights_of(from, "table", 2, 3 * HIDDEN, TOKENS);
	cl_mem recurrent = weights_of(from, "recurrent", 2, 3 * HIDDEN, HIDDEN);
	cl_mem bias = weights_of(from, "bias", 1, 3 * HIDDEN, 0);
	cl_mem output = weights_of(from, "output", 2, TOKENS, HIDDEN);
	cl_mem output_bias = weights_of(from, "output_bias", 1, TOKENS, 0);
	cl_mem letters = filled(TOKENS, alphabet), hidden = filled(HIDDEN * 4, NULL), token = filled(4, NULL);
	cl_mem given = filled(4, NULL), gate = filled(2 * HIDDEN * 4, NULL), next = filled(HIDDEN * 4, NULL);
	cl_mem score = filled(TOKENS * 4, NULL), character = filled(1, NULL);
	struct prepared launches[] = {
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
		put(given, (int *)forced.data + step, 4);
		for (int i = 0; i < LAUNCHES; i++)
			must(clEnqueueNDRangeKernel(gpu.queue, launches[i].kernel, 1, NULL, &launches[i].items, NULL, 0, NULL,
						    NULL),
			     launches[i].name);
		get(character, (char *)text.data + step, 1);
	}
	npy_write(out, &text);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes text with a transformer decoder, one character a step, all of it in OpenCL kernels. It knows nothing of a recorder.
//
// decode --weights DIR --forced F.npy --place P.npy --mask M.npy --characters OUT.npy [--position buffer|argument|size]
//   F: int32 steps x 1, the token that a step takes, or -1 for the one that the step before chose. P: int32 steps x 1, its place in the
//   cache. M: uint8 steps x 128, which places are taken. OUT: uint8 steps x 1. DIR: tools/decoding/network.py says what is in it.
//   --position: how kernels learn the place: by a buffer, by an argument, or (look only at places that are taken) by the size of a launch.
#include "opencl_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

#define SOURCE "/opt/gpureplay/share/networks/decode.cl"

enum { TOKENS = 29, WIDTH = 64, HEADS = 4, INNER = 256, PLACES = 128, LAYERS = 2 };

static const char alphabet[TOKENS + 1] = "\n .abcdefghijklmnopqrstuvwxyz";

static struct gpu gpu;
static cl_program program;

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	if (!otherwise) {
		fprintf(stderr, "decode: %s is missing; see decode.c\n", name);
		exit(2);
	}
	return otherwise;
}

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);
	if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) {
		fprintf(stderr, "decode: %s cannot be read\n", path);
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

static cl_mem weights(const char *folder, const char *name, int layer, size_t rows, size_t columns)
{
	char path[4096], number[8] = "";
	if (layer)
		snprintf(number, sizeof number, "%d", layer);
	snprintf(path, sizeof path, "%s/%s%s.npy", folder, name, number);
	struct npy array = npy_read_shape(path, 'f', 2, (size_t[]){ rows, columns });
	return buffer(array.count * 4, array.data);
}

/* An argument of a launch: a buffer, a number, or the place. */
struct given {
	enum { BUFFER = 1, NUMBER, PLACE } kind;
	cl_mem buffer;
	cl_int number;
};

struct launch {
	const char *name;
	size_t items[2];
	struct given given[6]; /* up to the first without a kind */
	cl_kernel kernel;
};

#define B(of) { .kind = BUFFER, .buffer = (of) }

static void prepare(struct launch *launch)
{
	cl_int error;
	launch->kernel = clCreateKernel(program, launch->name, &error);
	must(error, launch->name);
	for (int a = 0; a < 6 && launch->given[a].kind; a++) {
		const struct given *given = &launch->given[a];
		if (given->kind == BUFFER)
			must(clSetKernelArg(launch->kernel, a, sizeof(cl_mem), &given->buffer), launch->name);
		if (given->kind == NUMBER)
			must(clSetKernelArg(launch->kernel, a, sizeof(cl_int), &given->number), launch->name);
	}
}

int main(int argc, char **argv)
{
	const char *from = option(argc, argv, "--weights", NULL), *out = option(argc, argv, "--characters", NULL);
	const char *position = option(argc, argv, "--position", "buffer");
	size_t shape[2] = { 0, 1 };
	struct npy forced = npy_read_shape(option(argc, argv, "--forced", NULL), 'i', 2, shape);
	size_t steps = shape[0];
	struct npy places = npy_read_shape(option(argc, argv, "--place", NULL), 'i', 2, (size_t[]){ steps, 1 });
	struct npy masks = npy_read_sized(option(argc, argv, "--mask", NULL), 'u', 1);
	if (masks.rank != 2 || masks.shape[0] != steps || masks.shape[1] != PLACES) {
		fprintf(stderr, "decode: a mask has %d places, and there are %zu steps\n", PLACES, steps);
		return 2;
	}
	struct npy text = { .type = 'u', .size = 1, .rank = 2, .shape = { steps, 1 }, .count = steps, .data = calloc(steps, 1) };
	int by_argument = !strcmp(position, "argument"), by_size = !strcmp(position, "size");

	gpu = open_gpu();
	program = build_program(&gpu, read_text(SOURCE), by_argument ? "-DARGUMENT" : "", "decode.cl");
	cl_mem table = weights(from, "table", 0, TOKENS, WIDTH), output = weights(from, "output", 0, TOKENS, WIDTH);
	cl_mem letters = buffer(TOKENS, alphabet), token = buffer(4, NULL), character = buffer(1, NULL);
	cl_mem given = buffer(4, NULL), place = buffer(4, NULL), mask = buffer(PLACES, NULL);
	cl_mem x = buffer(WIDTH * 4, NULL), query = buffer(WIDTH * 4, NULL), seen = buffer(WIDTH * 4, NULL);
	cl_mem inner = buffer(INNER * 4, NULL), look = buffer(HEADS * PLACES * 4, NULL), score = buffer(TOKENS * 4, NULL);
	struct given at = { .kind = by_argument ? PLACE : BUFFER, .buffer = place };
	struct launch launches[3 + 6 * LAYERS] = { { "embed", { WIDTH, 1 }, { B(table), B(token), B(given), B(x) } } };
	int count = 1;
	for (int layer = 1; layer <= LAYERS; layer++) {
		cl_mem keys = buffer(PLACES * WIDTH * 4, NULL), values = buffer(PLACES * WIDTH * 4, NULL);
		cl_mem attention = weights(from, "attention", layer, 3 * WIDTH, WIDTH);
		cl_mem distance = weights(from, "distance", layer, HEADS, PLACES);
		cl_mem project = weights(from, "project", layer, WIDTH, WIDTH);
		cl_mem expand = weights(from, "expand", layer, INNER, WIDTH);
		cl_mem contract = weights(from, "contract", layer, WIDTH, INNER);
		struct launch these[6] = {
			{ "attend", { 3 * WIDTH, 1 }, { B(attention), B(x), at, B(query), B(keys), B(values) } },
			{ "look", { PLACES, HEADS }, { B(query), B(keys), B(distance), at, B(look) } },
			{ "gather", { WIDTH, 1 }, { B(look), B(values), B(mask), B(seen) } },
			{ "add", { WIDTH, 1 }, { B(project), B(seen), B(x), { .kind = NUMBER, .number = WIDTH } } },
			{ "expand", { INNER, 1 }, { B(expand), B(x), B(inner) } },
			{ "add", { WIDTH, 1 }, { B(contract), B(inner), B(x), { .kind = NUMBER, .number = INNER } } },
		};
		memcpy(launches + count, these, sizeof these);
		count += 6;
	}
	launches[count++] = (struct launch){ "scores", { TOKENS, 1 }, { B(output), B(x), B(score) } };
	launches[count++] = (struct launch){ "choose", { 1, 1 }, { B(score), B(letters), B(token), B(character) } };
	for (int i = 0; i < count; i++)
		prepare(&launches[i]);

	for (size_t step = 0; step < steps; step++) {
		const int *here = (int *)places.data + step;
		must(clEnqueueWriteBuffer(gpu.queue, given, CL_TRUE, 0, 4, (int *)forced.data + step, 0, NULL, NULL), "token");
		must(clEnqueueWriteBuffer(gpu.queue, mask, CL_TRUE, 0, PLACES, (char *)masks.data + step * PLACES, 0, NULL, NULL),
		     "mask");
		if (!by_argument)
			must(clEnqueueWriteBuffer(gpu.queue, place, CL_TRUE, 0, 4, here, 0, NULL, NULL), "place");
		for (int i = 0; i < count; i++) {
			struct launch *launch = &launches[i];
			size_t items[2] = { launch->items[0], launch->items[1] };
			if (by_size && !strcmp(launch->name, "look"))
				items[0] = step < PLACES ? step + 1 : PLACES;
			for (int a = 0; a < 6 && launch->given[a].kind; a++)
				if (launch->given[a].kind == PLACE)
					must(clSetKernelArg(launch->kernel, a, sizeof *here, here), launch->name);
			must(clEnqueueNDRangeKernel(gpu.queue, launch->kernel, 2, NULL, items, NULL, 0, NULL, NULL),
			     launch->name);
		}
		must(clEnqueueReadBuffer(gpu.queue, character, CL_TRUE, 0, 1, (char *)text.data + step, 0, NULL, NULL), "read");
	}
	npy_write(out, &text);
	return 0;
}

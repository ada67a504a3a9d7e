// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes text with a transformer decoder, one character a step, all of it in OpenCL kernels. It knows nothing of a recorder.
//
// decode --weights DIR --forced F.npy --place P.npy --mask M.npy --characters OUT.npy [--position buffer|argument|size]
//   F: int32 steps x 1, the token that a step takes, or -1 for the one that the step before chose. P: int32 steps x 1, its place in the
//   cache. M: uint8 steps x 128, which places are taken. OUT: uint8 steps x 1. DIR: tools/decoding/network.py says what is in it.
//   --position: how kernels learn the place: by a buffer, by an argument, or (look only at places that are taken) by the size of a launch.
#include "app.h"

enum { TOKENS = 29, WIDTH = 64, HEADS = 4, INNER = 256, PLACES = 128, LAYERS = 2 };

static const char alphabet[TOKENS + 1] = "\n .abcdefghijklmnopqrstuvwxyz";

static cl_mem layer_weights(const char *folder, const char *name, int layer, size_t rows, size_t columns)
{
	char numbered[64];
	snprintf(numbered, sizeof numbered, "%s%d", name, layer);
	return weights_of(folder, numbered, 2, rows, columns);
}

/* An argument of a launch: a buffer, a number, or the place. */
struct given {
	enum { BUFFER = 1, NUMBER, PLACE } kind;
	cl_mem buffer;
	cl_int number;
};

struct prepared {
	const char *name;
	size_t items[2];
	struct given given[6]; /* up to the first without a kind */
	cl_kernel kernel;
};

#define B(of) { .kind = BUFFER, .buffer = (of) }

static void prepare(cl_program program, struct prepared *launch)
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
	cl_program program = program_of("decode.cl", by_argument ? "-DARGUMENT" : "");
	cl_mem table = weights_of(from, "table", 2, TOKENS, WIDTH), output = weights_of(from, "output", 2, TOKENS, WIDTH);
	cl_mem letters = filled(TOKENS, alphabet), token = filled(4, NULL), character = filled(1, NULL);
	cl_mem given = filled(4, NULL), place = filled(4, NULL), mask = filled(PLACES, NULL);
	cl_mem x = filled(WIDTH * 4, NULL), query = filled(WIDTH * 4, NULL), seen = filled(WIDTH * 4, NULL);
	cl_mem inner = filled(INNER * 4, NULL), look = filled(HEADS * PLACES * 4, NULL), score = filled(TOKENS * 4, NULL);
	struct given at = { .kind = by_argument ? PLACE : BUFFER, .buffer = place };
	struct prepared launches[3 + 6 * LAYERS] = { { "embed", { WIDTH, 1 }, { B(table), B(token), B(given), B(x) } } };
	int count = 1;
	for (int layer = 1; layer <= LAYERS; layer++) {
		cl_mem keys = filled(PLACES * WIDTH * 4, NULL), values = filled(PLACES * WIDTH * 4, NULL);
		cl_mem attention = layer_weights(from, "attention", layer, 3 * WIDTH, WIDTH);
		cl_mem distance = layer_weights(from, "distance", layer, HEADS, PLACES);
		cl_mem project = layer_weights(from, "project", layer, WIDTH, WIDTH);
		cl_mem expand = layer_weights(from, "expand", layer, INNER, WIDTH);
		cl_mem contract = layer_weights(from, "contract", layer, WIDTH, INNER);
		struct prepared these[6] = {
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
	launches[count++] = (struct prepared){ "scores", { TOKENS, 1 }, { B(output), B(x), B(score) } };
	launches[count++] = (struct prepared){ "choose", { 1, 1 }, { B(score), B(letters), B(token), B(character) } };
	for (int i = 0; i < count; i++)
		prepare(program, &launches[i]);

	for (size_t step = 0; step < steps; step++) {
		const int *here = (int *)places.data + step;
		put(given, (int *)forced.data + step, 4);
		put(mask, (char *)masks.data + step * PLACES, PLACES);
		if (!by_argument)
			put(place, here, 4);
		for (int i = 0; i < count; i++) {
			struct prepared *launch = &launches[i];
			size_t items[2] = { launch->items[0], launch->items[1] };
			if (by_size && !strcmp(launch->name, "look"))
				items[0] = step < PLACES ? step + 1 : PLACES;
			for (int a = 0; a < 6 && launch->given[a].kind; a++)
				if (launch->given[a].kind == PLACE)
					must(clSetKernelArg(launch->kernel, a, sizeof *here, here), launch->name);
			must(clEnqueueNDRangeKernel(gpu.queue, launch->kernel, 2, NULL, items, NULL, 0, NULL, NULL),
			     launch->name);
		}
		get(character, (char *)text.data + step, 1);
	}
	npy_write(out, &text);
	return 0;
}

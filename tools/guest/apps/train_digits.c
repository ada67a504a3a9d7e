// SPDX-License-Identifier: MIT OR Apache-2.0
// Trains the digits network: SGD with momentum, one batch a step, all of it in OpenCL kernels. It knows nothing of a recorder.
//
// train_digits --weights DIR --images I.npy --labels L.npy --rates R.npy --losses OUT.npy [--learnt DIR]
//   I: float32 steps x 32 x 8 x 8; L: int32 steps x 32; R: float32 steps x 1. OUT gets the loss of each step.
//   DIR has NAME.npy for each array of weights; the learnt ones are written to the other DIR.
#include "opencl_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

#define SOURCE "/opt/gpureplay/share/networks/train_digits.cl"

enum { BATCH = 32, CLASSES = 10, FLAT = 128 };

/* An array of weights with all that its training needs. */
struct weights {
	const char *name;
	size_t count;
	int rank;
	size_t shape[4];
	cl_mem value, velocity, gradient;
};

enum { CONV1, CONV1_BIAS, CONV2, CONV2_BIAS, CONV3, CONV3_BIAS, FC, FC_BIAS, ARRAYS };

static struct weights arrays[ARRAYS] = {
	{ "conv1.weight", 16 * 9, 4, { 16, 3, 3, 1 } },	      { "conv1.bias", 16, 1, { 16 } },
	{ "conv2.weight", 32 * 9 * 16, 4, { 32, 3, 3, 16 } }, { "conv2.bias", 32, 1, { 32 } },
	{ "conv3.weight", 32 * 9 * 32, 4, { 32, 3, 3, 32 } }, { "conv3.bias", 32, 1, { 32 } },
	{ "fc.weight", CLASSES * FLAT, 2, { CLASSES, FLAT } }, { "fc.bias", CLASSES, 1, { CLASSES } },
};

static struct gpu gpu;
static cl_program program;

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	if (!otherwise) {
		fprintf(stderr, "train_digits: %s is missing; see train_digits.c\n", name);
		exit(2);
	}
	return otherwise;
}

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);
	if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) {
		fprintf(stderr, "train_digits: %s cannot be read\n", path);
		exit(2);
	}
	fclose(file);
	return text;
}

static cl_mem buffer(size_t elements)
{
	cl_int error;
	cl_mem made = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, elements * 4, NULL, &error);
	must(error, "buffer");
	return made;
}

static void put(cl_mem to, const void *data, size_t elements)
{
	must(clEnqueueWriteBuffer(gpu.queue, to, CL_TRUE, 0, elements * 4, data, 0, NULL, NULL), "write");
}

static void get(cl_mem from, void *data, size_t elements)
{
	must(clEnqueueReadBuffer(gpu.queue, from, CL_TRUE, 0, elements * 4, data, 0, NULL, NULL), "read");
}

/* Launches a kernel: buffers first, up to NULL, then as many integers as are left. */
static void launch(const char *name, const size_t sizes[3], int buffers, const cl_mem *given, int integers,
		   const cl_int *numbers)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(program, name, &error);
	must(error, name);
	for (int i = 0; i < buffers; i++)
		must(clSetKernelArg(kernel, i, sizeof given[i], &given[i]), name);
	for (int i = 0; i < integers; i++)
		must(clSetKernelArg(kernel, buffers + i, sizeof numbers[i], &numbers[i]), name);
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, 3, NULL, sizes, NULL, 0, NULL, NULL), name);
	clReleaseKernel(kernel);
}

#define COUNT(...) (sizeof(__VA_ARGS__) / sizeof((__VA_ARGS__)[0]))
#define SIZES(x, y, z) ((const size_t[3]){ x, y, z })
#define BUFFERS(...) COUNT(((cl_mem[]){ __VA_ARGS__ })), (cl_mem[]){ __VA_ARGS__ }
#define NUMBERS(...) COUNT(((cl_int[]){ __VA_ARGS__ })), (cl_int[]){ __VA_ARGS__ }

int main(int argc, char **argv)
{
	const char *from = option(argc, argv, "--weights", NULL), *learnt = option(argc, argv, "--learnt", "");
	const char *out = option(argc, argv, "--losses", NULL);
	size_t shape[4] = { 0, BATCH, 8, 8 };
	struct npy images = npy_read_shape(option(argc, argv, "--images", NULL), 'f', 4, shape);
	size_t steps = shape[0];
	struct npy labels = npy_read_shape(option(argc, argv, "--labels", NULL), 'i', 2, (size_t[]){ steps, BATCH });
	struct npy rates = npy_read_shape(option(argc, argv, "--rates", NULL), 'f', 2, (size_t[]){ steps, 1 });
	struct npy losses = { .type = 'f', .rank = 1, .shape = { steps }, .count = steps, .data = calloc(steps, 4) };

	gpu = open_gpu();
	program = build_program(&gpu, read_text(SOURCE), "", "train_digits.cl");
	cl_kernel move = NULL;
	char path[4096];
	for (int i = 0; i < ARRAYS; i++) {
		struct weights *w = &arrays[i];
		snprintf(path, sizeof path, "%s/%s.npy", from, w->name);
		struct npy value = npy_read_shape(path, 'f', w->rank, w->shape);
		w->value = buffer(w->count);
		w->velocity = buffer(w->count);
		w->gradient = buffer(w->count);
		put(w->value, value.data, w->count);
		put(w->velocity, calloc(w->count, 4), w->count);
	}
	cl_mem image = buffer(BATCH * 64), label = buffer(BATCH), rate = buffer(1), loss = buffer(1);
	cl_mem x1 = buffer(BATCH * 64 * 16), x2 = buffer(BATCH * 64 * 32), p1 = buffer(BATCH * 16 * 32);
	cl_mem x3 = buffer(BATCH * 16 * 32), p2 = buffer(BATCH * FLAT), scores = buffer(BATCH * CLASSES);
	cl_mem error = buffer(BATCH * CLASSES), parts = buffer(BATCH);
	cl_mem g_p2 = buffer(BATCH * FLAT), g_x3 = buffer(BATCH * 16 * 32), g_p1 = buffer(BATCH * 16 * 32);
	cl_mem g_x2 = buffer(BATCH * 64 * 32), g_x1 = buffer(BATCH * 64 * 16);
	cl_int status;
	move = clCreateKernel(program, "move", &status);
	must(status, "move");
	struct weights *w = arrays;

	for (size_t step = 0; step < steps; step++) {
		put(image, (float *)images.data + step * BATCH * 64, BATCH * 64);
		put(label, (int *)labels.data + step * BATCH, BATCH);
		put(rate, (float *)rates.data + step, 1);
		launch("convolve", SIZES(16, 64, BATCH), BUFFERS(image, w[CONV1].value, w[CONV1_BIAS].value, x1),
		       NUMBERS(8, 8, 1, 16));
		launch("convolve", SIZES(32, 64, BATCH), BUFFERS(x1, w[CONV2].value, w[CONV2_BIAS].value, x2),
		       NUMBERS(8, 8, 16, 32));
		launch("maximum", SIZES(32, 4, 4 * BATCH), BUFFERS(x2, p1), NUMBERS(4, 32));
		launch("convolve", SIZES(32, 16, BATCH), BUFFERS(p1, w[CONV3].value, w[CONV3_BIAS].value, x3),
		       NUMBERS(4, 4, 32, 32));
		launch("maximum", SIZES(32, 2, 2 * BATCH), BUFFERS(x3, p2), NUMBERS(2, 32));
		launch("connect", SIZES(CLASSES, BATCH, 1), BUFFERS(p2, w[FC].value, w[FC_BIAS].value, scores),
		       NUMBERS(FLAT, CLASSES));
		launch("cross_entropy", SIZES(BATCH, 1, 1), BUFFERS(scores, label, error, parts),
		       NUMBERS(CLASSES, BATCH));
		launch("total", SIZES(1, 1, 1), BUFFERS(parts, loss), NUMBERS(BATCH));

		launch("connect_weight", SIZES(FLAT, CLASSES, 1), BUFFERS(error, p2, w[FC].gradient),
		       NUMBERS(FLAT, CLASSES, BATCH));
		launch("sum_places", SIZES(CLASSES, 1, 1), BUFFERS(error, w[FC_BIAS].gradient), NUMBERS(BATCH, CLASSES));
		launch("connect_back", SIZES(FLAT, BATCH, 1), BUFFERS(error, w[FC].value, g_p2), NUMBERS(FLAT, CLASSES));
		launch("maximum_back", SIZES(32, 2, 2 * BATCH), BUFFERS(g_p2, x3, p2, g_x3), NUMBERS(2, 32));
		launch("convolve_weight", SIZES(32, 9, 32), BUFFERS(g_x3, p1, w[CONV3].gradient),
		       NUMBERS(4, 4, 32, 32, BATCH));
		launch("sum_places", SIZES(32, 1, 1), BUFFERS(g_x3, w[CONV3_BIAS].gradient), NUMBERS(BATCH * 16, 32));
		launch("convolve_back", SIZES(32, 16, BATCH), BUFFERS(g_x3, w[CONV3].value, p1, g_p1),
		       NUMBERS(4, 4, 32, 32));
		launch("maximum_back", SIZES(32, 4, 4 * BATCH), BUFFERS(g_p1, x2, p1, g_x2), NUMBERS(4, 32));
		launch("convolve_weight", SIZES(16, 9, 32), BUFFERS(g_x2, x1, w[CONV2].gradient),
		       NUMBERS(8, 8, 16, 32, BATCH));
		launch("sum_places", SIZES(32, 1, 1), BUFFERS(g_x2, w[CONV2_BIAS].gradient), NUMBERS(BATCH * 64, 32));
		launch("convolve_back", SIZES(16, 64, BATCH), BUFFERS(g_x2, w[CONV2].value, x1, g_x1),
		       NUMBERS(8, 8, 16, 32));
		launch("convolve_weight", SIZES(1, 9, 16), BUFFERS(g_x1, image, w[CONV1].gradient),
		       NUMBERS(8, 8, 1, 16, BATCH));
		launch("sum_places", SIZES(16, 1, 1), BUFFERS(g_x1, w[CONV1_BIAS].gradient), NUMBERS(BATCH * 64, 16));

		cl_float momentum = 0.9f;
		must(clSetKernelArg(move, 4, sizeof momentum, &momentum), "momentum");
		for (int i = 0; i < ARRAYS; i++) {
			cl_mem given[] = { w[i].value, w[i].velocity, w[i].gradient, rate };
			for (int a = 0; a < 4; a++)
				must(clSetKernelArg(move, a, sizeof given[a], &given[a]), "move");
			must(clEnqueueNDRangeKernel(gpu.queue, move, 1, NULL, &w[i].count, NULL, 0, NULL, NULL), "move");
		}
		get(loss, (float *)losses.data + step, 1);
	}
	npy_write(out, &losses);
	for (int i = 0; i < ARRAYS && *learnt; i++) {
		struct npy value = { .type = 'f', .rank = w[i].rank, .count = w[i].count };
		memcpy(value.shape, w[i].shape, sizeof w[i].shape);
		value.data = calloc(value.count, 4);
		get(w[i].value, value.data, value.count);
		snprintf(path, sizeof path, "%s/%s.npy", learnt, w[i].name);
		npy_write(path, &value);
	}
	return 0;
}

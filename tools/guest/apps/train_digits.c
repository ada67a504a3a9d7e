// SPDX-License-Identifier: MIT OR Apache-2.0
// Trains the digits network: SGD with momentum, one batch a step, all of it in OpenCL kernels. It knows nothing of a recorder.
//
// train_digits --weights DIR --images I.npy --labels L.npy --rates R.npy --losses OUT.npy [--learnt DIR]
//   I: float32 steps x 32 x 8 x 8; L: int32 steps x 32; R: float32 steps x 1. OUT gets the loss of each step.
//   DIR has NAME.npy for each array of weights; the learnt ones are written to the other DIR.
#include "app.h"

enum { BATCH = 32, CLASSES = 10, FLAT = 128 };

enum { CONV1, CONV1_BIAS, CONV2, CONV2_BIAS, CONV3, CONV3_BIAS, FC, FC_BIAS, ARRAYS };

static struct weights arrays[ARRAYS] = {
	{ "conv1.weight", 4, { 16, 3, 3, 1 } },	 { "conv1.bias", 1, { 16 } },
	{ "conv2.weight", 4, { 32, 3, 3, 16 } }, { "conv2.bias", 1, { 32 } },
	{ "conv3.weight", 4, { 32, 3, 3, 32 } }, { "conv3.bias", 1, { 32 } },
	{ "fc.weight", 2, { CLASSES, FLAT } },	 { "fc.bias", 1, { CLASSES } },
};

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
	programs[0] = program_of("train_digits.cl", "");
	for (int i = 0; i < ARRAYS; i++)
		load(&arrays[i], from);
	cl_mem image = buffer(4 * BATCH * 64), label = buffer(4 * BATCH), rate = buffer(4), loss = buffer(4);
	cl_mem x1 = buffer(4 * BATCH * 64 * 16), x2 = buffer(4 * BATCH * 64 * 32), p1 = buffer(4 * BATCH * 16 * 32);
	cl_mem x3 = buffer(4 * BATCH * 16 * 32), p2 = buffer(4 * BATCH * FLAT), scores = buffer(4 * BATCH * CLASSES);
	cl_mem error = buffer(4 * BATCH * CLASSES), parts = buffer(4 * BATCH);
	cl_mem g_p2 = buffer(4 * BATCH * FLAT), g_x3 = buffer(4 * BATCH * 16 * 32), g_p1 = buffer(4 * BATCH * 16 * 32);
	cl_mem g_x2 = buffer(4 * BATCH * 64 * 32), g_x1 = buffer(4 * BATCH * 64 * 16);
	cl_kernel kernel = mover();
	struct weights *w = arrays;

	for (size_t step = 0; step < steps; step++) {
		put(image, (float *)images.data + step * BATCH * 64, 4 * BATCH * 64);
		put(label, (int *)labels.data + step * BATCH, 4 * BATCH);
		put(rate, (float *)rates.data + step, 4);
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

		for (int i = 0; i < ARRAYS; i++)
			move(kernel, &w[i], rate);
		get(loss, (float *)losses.data + step, 4);
	}
	npy_write(out, &losses);
	for (int i = 0; i < ARRAYS && *learnt; i++)
		save(&w[i], learnt);
	return 0;
}

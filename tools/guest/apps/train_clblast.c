// SPDX-License-Identifier: MIT OR Apache-2.0
// Trains a network for digits with the matrix products of CLBlast and a few kernels: SGD with momentum, one batch a step. It knows nothing of a
// recorder.
//
// train_clblast --network convolutions|perceptron --weights DIR --images I.npy --labels L.npy --rates R.npy --losses OUT.npy [--learnt DIR]
//   I: float32 steps x 32 x 8 x 8; L: int32 steps x 32; R: float32 steps x 1. OUT gets the loss of each step.
//   DIR has NAME.npy for each array of weights; the learnt ones are written to the other DIR.
#include "app.h"

#include <clblast_c.h>

enum { BATCH = 32, CLASSES = 10, MOST_LAYERS = 4 };

struct layer {
	const char *name;
	int side; /* height and width of a convolution's pictures, 0 if each output is connected with all inputs */
	int inputs, outputs;
	int rectified, halved; /* ReLU, and the largest of each 2x2 block */
	struct weights weight, bias;
	cl_mem columns, out, smaller;           /* forward */
	cl_mem by_out, by_columns, by_in; /* gradients */
};

struct network {
	const char *name;
	int count;
	struct layer layers[MOST_LAYERS];
};

static struct network networks[] = {
	{ "convolutions",
	  4,
	  { { .name = "conv1", .side = 8, .inputs = 1, .outputs = 16, .rectified = 1 },
	    { .name = "conv2", .side = 8, .inputs = 16, .outputs = 32, .rectified = 1, .halved = 1 },
	    { .name = "conv3", .side = 4, .inputs = 32, .outputs = 32, .rectified = 1, .halved = 1 },
	    { .name = "fc", .inputs = 128, .outputs = CLASSES } } },
	{ "perceptron",
	  2,
	  { { .name = "fc1", .inputs = 64, .outputs = 64, .rectified = 1 },
	    { .name = "fc2", .inputs = 64, .outputs = CLASSES } } },
};

/* to (rows x columns) = a x b over `between`; `turned`: the matrix in memory is the transpose of what is meant. */
static void product(cl_mem a, int a_turned, cl_mem b, int b_turned, cl_mem to, size_t rows, size_t columns, size_t between)
{
	CLBlastStatusCode status = CLBlastSgemm(
		CLBlastLayoutRowMajor, a_turned ? CLBlastTransposeYes : CLBlastTransposeNo,
		b_turned ? CLBlastTransposeYes : CLBlastTransposeNo, rows, columns, between, 1.0f, a, 0, a_turned ? rows : between,
		b, 0, b_turned ? between : columns, 0.0f, to, 0, columns, &gpu.queue, NULL);
	if (status != CLBlastSuccess) {
		fprintf(stderr, "train_clblast: CLBlast's status is %d\n", status);
		exit(2);
	}
}

static size_t places(const struct layer *layer)
{
	return (size_t)BATCH * (layer->side ? layer->side * layer->side : 1);
}

static size_t width(const struct layer *layer)
{
	return (size_t)layer->inputs * (layer->side ? 9 : 1);
}

static void prepare(struct layer *layer, const char *folder)
{
	size_t inputs = layer->inputs, outputs = layer->outputs, out = places(layer) * outputs;
	if (layer->side)
		layer->weight = (struct weights){ .rank = 4, .shape = { outputs, 3, 3, inputs } };
	else
		layer->weight = (struct weights){ .rank = 2, .shape = { outputs, inputs } };
	layer->bias = (struct weights){ .rank = 1, .shape = { outputs } };
	snprintf(layer->weight.name, sizeof layer->weight.name, "%s.weight", layer->name);
	snprintf(layer->bias.name, sizeof layer->bias.name, "%s.bias", layer->name);
	load(&layer->weight, folder);
	load(&layer->bias, folder);
	layer->out = buffer(4 * out);
	layer->by_out = buffer(4 * out);
	layer->smaller = layer->halved ? buffer(out) : layer->out;
	layer->by_columns = buffer(4 * places(layer) * width(layer));
	layer->columns = layer->side ? buffer(4 * places(layer) * width(layer)) : NULL;
	layer->by_in = layer->side ? buffer(4 * places(layer) * inputs) : layer->by_columns;
}

static cl_mem forward(struct layer *layer, cl_mem in)
{
	int side = layer->side, outputs = layer->outputs;
	if (side)
		launch("spread", SIZES(layer->inputs, 9, places(layer)), BUFFERS(in, layer->columns),
		       NUMBERS(side, side, layer->inputs));
	product(side ? layer->columns : in, 0, layer->weight.value, 1, layer->out, places(layer), outputs, width(layer));
	launch("finish", SIZES(outputs, places(layer), 1), BUFFERS(layer->out, layer->bias.value),
	       NUMBERS(outputs, layer->rectified));
	if (layer->halved)
		launch("maximum", SIZES(outputs, side / 2, side / 2 * BATCH), BUFFERS(layer->out, layer->smaller),
		       NUMBERS(side / 2, outputs));
	return layer->smaller;
}

/* From the gradient by what the layer gives to those by its weights and, unless it is the first, by what it is given. */
static cl_mem back(struct layer *layer, cl_mem in, cl_mem gradient, int first)
{
	int side = layer->side, outputs = layer->outputs;
	if (layer->halved) {
		launch("maximum_back", SIZES(outputs, side / 2, side / 2 * BATCH),
		       BUFFERS(gradient, layer->out, layer->smaller, layer->by_out), NUMBERS(side / 2, outputs));
		gradient = layer->by_out;
	} else if (layer->rectified) {
		launch("rectify_back", SIZES(places(layer) * outputs, 1, 1), BUFFERS(gradient, layer->out), 0, NULL);
	}
	product(gradient, 1, side ? layer->columns : in, 0, layer->weight.gradient, outputs, width(layer), places(layer));
	launch("sum_places", SIZES(outputs, 1, 1), BUFFERS(gradient, layer->bias.gradient), NUMBERS(places(layer), outputs));
	if (first)
		return NULL;
	product(gradient, 0, layer->weight.value, 0, layer->by_columns, places(layer), width(layer), outputs);
	if (side)
		launch("collect", SIZES(layer->inputs, places(layer), 1), BUFFERS(layer->by_columns, layer->by_in),
		       NUMBERS(side, side, layer->inputs));
	return layer->by_in;
}

int main(int argc, char **argv)
{
	const char *from = option(argc, argv, "--weights", NULL), *learnt = option(argc, argv, "--learnt", "");
	const char *out = option(argc, argv, "--losses", NULL), *chosen = option(argc, argv, "--network", NULL);
	struct network *network = strcmp(chosen, networks[0].name) ? &networks[1] : &networks[0];
	if (strcmp(chosen, network->name)) {
		fprintf(stderr, "train_clblast: no network is called %s; see train_clblast.c\n", chosen);
		return 2;
	}
	size_t shape[4] = { 0, BATCH, 8, 8 };
	struct npy images = npy_read_shape(option(argc, argv, "--images", NULL), 'f', 4, shape);
	size_t steps = shape[0];
	struct npy labels = npy_read_shape(option(argc, argv, "--labels", NULL), 'i', 2, (size_t[]){ steps, BATCH });
	struct npy rates = npy_read_shape(option(argc, argv, "--rates", NULL), 'f', 2, (size_t[]){ steps, 1 });
	struct npy losses = { .type = 'f', .rank = 1, .shape = { steps }, .count = steps, .data = calloc(steps, 4) };

	gpu = open_gpu();
	programs[0] = program_of("train_digits.cl", "");
	programs[1] = program_of("train_clblast.cl", "");
	struct layer *layers = network->layers;
	int count = network->count;
	for (int i = 0; i < count; i++)
		prepare(&layers[i], from);
	cl_mem image = buffer(4 * BATCH * 64), label = buffer(4 * BATCH), rate = buffer(4), loss = buffer(4);
	cl_mem error = buffer(4 * BATCH * CLASSES), parts = buffer(4 * BATCH);
	cl_kernel kernel = mover();

	for (size_t step = 0; step < steps; step++) {
		put(image, (float *)images.data + step * BATCH * 64, 4 * BATCH * 64);
		put(label, (int *)labels.data + step * BATCH, 4 * BATCH);
		put(rate, (float *)rates.data + step, 4);
		cl_mem given[MOST_LAYERS + 1] = { image };
		for (int i = 0; i < count; i++)
			given[i + 1] = forward(&layers[i], given[i]);
		launch("cross_entropy", SIZES(BATCH, 1, 1), BUFFERS(given[count], label, error, parts), NUMBERS(CLASSES, BATCH));
		launch("total", SIZES(1, 1, 1), BUFFERS(parts, loss), NUMBERS(BATCH));
		cl_mem gradient = error;
		for (int i = count - 1; i >= 0; i--)
			gradient = back(&layers[i], given[i], gradient, i == 0);
		for (int i = 0; i < count; i++) {
			move(kernel, &layers[i].weight, rate);
			move(kernel, &layers[i].bias, rate);
		}
		get(loss, (float *)losses.data + step, 4);
	}
	npy_write(out, &losses);
	for (int i = 0; i < count && *learnt; i++) {
		save(&layers[i].weight, learnt);
		save(&layers[i].bias, learnt);
	}
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Trains a network for digits with the matrix products of CLBlast and a few kernels: SGD with momentum, one batch a step. It knows nothing of a
// recorder.
//
// train_clblast --network convolutions|perceptron --weights DIR --images I.npy --labels L.npy --rates R.npy --losses OUT.npy [--learnt DIR]
//   I: float32 steps x 32 x 8 x 8; L: int32 steps x 32; R: float32 steps x 1. OUT gets the loss of each step.
//   DIR has NAME.npy for each array of weights; the learnt ones are written to the other DIR.
#include "opencl_gpu.h"

#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

#define FOLDER "/opt/gpureplay/share/networks/"

enum { BATCH = 32, CLASSES = 10, MOST_LAYERS = 4 };

/* An array of weights with all that its training needs. */
struct weights {
	char name[32];
	size_t count;
	int rank;
	size_t shape[4];
	cl_mem value, velocity, gradient;
};

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

static struct gpu gpu;
static cl_program programs[2];

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	if (!otherwise) {
		fprintf(stderr, "train_clblast: %s is missing; see train_clblast.c\n", name);
		exit(2);
	}
	return otherwise;
}

static cl_program program_of(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, FOLDER "%s", name);
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);
	if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) {
		fprintf(stderr, "train_clblast: %s cannot be read\n", path);
		exit(2);
	}
	fclose(file);
	return build_program(&gpu, text, "", name);
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

/* Launches a kernel: buffers first, then integers. */
static void launch(const char *name, const size_t sizes[3], int buffers, const cl_mem *given, int integers,
		   const cl_int *numbers)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(programs[0], name, &error);
	if (error == CL_INVALID_KERNEL_NAME)
		kernel = clCreateKernel(programs[1], name, &error);
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

static void load(struct weights *weights, const char *folder)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.npy", folder, weights->name);
	struct npy value = npy_read_shape(path, 'f', weights->rank, weights->shape);
	weights->count = value.count;
	weights->value = buffer(value.count);
	weights->velocity = buffer(value.count);
	weights->gradient = buffer(value.count);
	put(weights->value, value.data, value.count);
	put(weights->velocity, calloc(value.count, 4), value.count);
}

static void save(const struct weights *weights, const char *folder)
{
	char path[4096];
	struct npy value = { .type = 'f', .rank = weights->rank, .count = weights->count };
	memcpy(value.shape, weights->shape, sizeof weights->shape);
	value.data = calloc(value.count, 4);
	get(weights->value, value.data, value.count);
	snprintf(path, sizeof path, "%s/%s.npy", folder, weights->name);
	npy_write(path, &value);
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
	layer->out = buffer(out);
	layer->by_out = buffer(out);
	layer->smaller = layer->halved ? buffer(out / 4) : layer->out;
	layer->by_columns = buffer(places(layer) * width(layer));
	layer->columns = layer->side ? buffer(places(layer) * width(layer)) : NULL;
	layer->by_in = layer->side ? buffer(places(layer) * inputs) : layer->by_columns;
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

static void move(cl_kernel kernel, const struct weights *weights, cl_mem rate)
{
	cl_mem given[] = { weights->value, weights->velocity, weights->gradient, rate };
	for (int a = 0; a < 4; a++)
		must(clSetKernelArg(kernel, a, sizeof given[a], &given[a]), "move");
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, 1, NULL, &weights->count, NULL, 0, NULL, NULL), "move");
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
	programs[0] = program_of("train_digits.cl");
	programs[1] = program_of("train_clblast.cl");
	struct layer *layers = network->layers;
	int count = network->count;
	for (int i = 0; i < count; i++)
		prepare(&layers[i], from);
	cl_mem image = buffer(BATCH * 64), label = buffer(BATCH), rate = buffer(1), loss = buffer(1);
	cl_mem error = buffer(BATCH * CLASSES), parts = buffer(BATCH);
	cl_int status;
	cl_kernel kernel = clCreateKernel(programs[0], "move", &status);
	must(status, "move");
	cl_float momentum = 0.9f;
	must(clSetKernelArg(kernel, 4, sizeof momentum, &momentum), "momentum");

	for (size_t step = 0; step < steps; step++) {
		put(image, (float *)images.data + step * BATCH * 64, BATCH * 64);
		put(label, (int *)labels.data + step * BATCH, BATCH);
		put(rate, (float *)rates.data + step, 1);
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
		get(loss, (float *)losses.data + step, 1);
	}
	npy_write(out, &losses);
	for (int i = 0; i < count && *learnt; i++) {
		save(&layers[i].weight, learnt);
		save(&layers[i].bias, learnt);
	}
	return 0;
}

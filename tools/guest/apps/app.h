/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs that go on from step to step share: options, kernels from a file, buffers, weights and their training. */
#ifndef APP_H
#define APP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "opencl_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

static struct gpu gpu;
static cl_program programs[2]; /* where launch() looks for kernels */

/* The word after an option's name; without it `otherwise`, or the end. */
static inline const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	if (!otherwise) {
		const char *self = program_invocation_short_name;
		fprintf(stderr, "%s: %s is missing; see %s.c\n", self, name, self);
		exit(2);
	}
	return otherwise;
}

static inline cl_program program_of(const char *name, const char *options)
{
	char path[256];
	snprintf(path, sizeof path, "/opt/gpureplay/share/networks/%s", name);
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);
	if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) {
		fprintf(stderr, "%s: %s cannot be read\n", program_invocation_short_name, path);
		exit(2);
	}
	fclose(file);
	cl_program program = build_program(&gpu, text, options, name);
	free(text);
	return program;
}

static inline cl_mem buffer(size_t bytes)
{
	cl_int error;
	cl_mem made = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, bytes, NULL, &error);
	must(error, "buffer");
	return made;
}

static inline void put(cl_mem to, const void *data, size_t bytes)
{
	must(clEnqueueWriteBuffer(gpu.queue, to, CL_TRUE, 0, bytes, data, 0, NULL, NULL), "write");
}

static inline void get(cl_mem from, void *data, size_t bytes)
{
	must(clEnqueueReadBuffer(gpu.queue, from, CL_TRUE, 0, bytes, data, 0, NULL, NULL), "read");
}

/* A buffer with this content, or zeros. */
static inline cl_mem filled(size_t bytes, const void *content)
{
	cl_mem made = buffer(bytes);
	void *zeros = content ? NULL : calloc(1, bytes);
	put(made, content ? content : zeros, bytes);
	free(zeros);
	return made;
}

/* The array NAME.npy of a folder. */
static inline cl_mem weights_of(const char *folder, const char *name, int rank, size_t rows, size_t columns)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.npy", folder, name);
	struct npy array = npy_read_shape(path, 'f', rank, (size_t[]){ rows, columns });
	cl_mem made = filled(array.count * 4, array.data);
	free(array.data);
	return made;
}

/* An array of weights with all that its training needs. */
struct weights {
	char name[32];
	int rank;
	size_t shape[4];
	size_t count;
	cl_mem value, velocity, gradient;
};

static inline void load(struct weights *weights, const char *folder)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.npy", folder, weights->name);
	struct npy value = npy_read_shape(path, 'f', weights->rank, weights->shape);
	weights->count = value.count;
	weights->value = buffer(value.count * 4);
	weights->velocity = buffer(value.count * 4);
	weights->gradient = buffer(value.count * 4);
	put(weights->value, value.data, value.count * 4);
	put(weights->velocity, calloc(value.count, 4), value.count * 4);
}

static inline void save(const struct weights *weights, const char *folder)
{
	char path[4096];
	struct npy value = { .type = 'f', .rank = weights->rank, .count = weights->count };
	memcpy(value.shape, weights->shape, sizeof weights->shape);
	value.data = calloc(value.count, 4);
	get(weights->value, value.data, value.count * 4);
	snprintf(path, sizeof path, "%s/%s.npy", folder, weights->name);
	npy_write(path, &value);
	free(value.data);
}

/* A step of SGD by the kernel `move`. */
static inline void move(cl_kernel kernel, const struct weights *weights, cl_mem rate)
{
	cl_mem given[] = { weights->value, weights->velocity, weights->gradient, rate };
	for (int a = 0; a < 4; a++)
		must(clSetKernelArg(kernel, a, sizeof given[a], &given[a]), "move");
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, 1, NULL, &weights->count, NULL, 0, NULL, NULL), "move");
}

/* The kernel `move`, with its momentum. */
static inline cl_kernel mover(void)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(programs[0], "move", &error);
	must(error, "move");
	cl_float momentum = 0.9f;
	must(clSetKernelArg(kernel, 4, sizeof momentum, &momentum), "momentum");
	return kernel;
}

/* Launches a kernel: buffers first, then integers. */
static inline void launch(const char *name, const size_t sizes[3], int buffers, const cl_mem *given, int integers,
			  const cl_int *numbers)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(programs[0], name, &error);
	if (error == CL_INVALID_KERNEL_NAME && programs[1])
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

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program of cases: PROGRAM CASE IN.bin OUT.bin, where both files hold N 32-bit floating-point numbers, and one case is run. */
#ifndef OPENCL_CASE_H
#define OPENCL_CASE_H

#include "opencl_gpu.h"

#include <stdio.h>
#include <string.h>

enum { N = 256, BYTES = N * sizeof(float) };

#define SCALE                                                                                           \
	"kernel void scale(global const float *src, global const float *factors, global float *dst) {\n" \
	"	int i = get_global_id(0);\n"                                                             \
	"	dst[i] = src[i] * factors[i];\n"                                                         \
	"}\n"

struct opencl_case {
	const char *name;
	void (*run)(void);
};

static struct gpu gpu;
static cl_program program;
static float in[N], out[N], factors[N];

static cl_kernel kernel(const char *name)
{
	cl_int error;
	cl_kernel made = clCreateKernel(program, name, &error);
	must(error, name);
	return made;
}

static cl_mem buffer(cl_mem_flags flags, void *values)
{
	cl_int error;
	cl_mem made = clCreateBuffer(gpu.context, flags, BYTES, values, &error);
	must(error, "buffer");
	return made;
}

static void argument(cl_kernel k, cl_uint index, cl_mem object)
{
	must(clSetKernelArg(k, index, sizeof object, &object), "argument");
}

static void launch(cl_command_queue queue, cl_kernel k, size_t items, cl_uint count, const cl_event *list, cl_event *event)
{
	must(clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, NULL, count, list, event), "launch");
}

static void write_to(cl_mem object, const float *values)
{
	must(clEnqueueWriteBuffer(gpu.queue, object, CL_TRUE, 0, BYTES, values, 0, NULL, NULL), "write");
}

static void read_from(cl_mem object, float *values)
{
	must(clEnqueueReadBuffer(gpu.queue, object, CL_TRUE, 0, BYTES, values, 0, NULL, NULL), "read");
}

static cl_mem fixed(void)
{
	return buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, factors);
}

/* src times the fixed factors, into dst. */
static void scaled(cl_mem src, cl_mem dst)
{
	cl_kernel scale = kernel("scale");
	argument(scale, 0, src);
	argument(scale, 1, fixed());
	argument(scale, 2, dst);
	launch(gpu.queue, scale, N, 0, NULL, NULL);
}

/* Runs the case that is named, by run() if there is one. The list ends without a name. */
static int run_case(int count, char **words, const char *source, const struct opencl_case *cases, void (*run)(void (*)(void)))
{
	FILE *file = count == 4 ? fopen(words[2], "rb") : NULL;
	if (!file || fread(in, sizeof *in, N, file) != N) {
		fprintf(stderr, "usage: %s CASE IN.bin OUT.bin\n", words[0]);
		return 2;
	}
	fclose(file);
	for (int i = 0; i < N; i++)
		factors[i] = 0.5f + (i * 29 % 64) / 32.0f;
	while (cases->name && strcmp(cases->name, words[1]))
		cases++;
	if (!cases->name) {
		fprintf(stderr, "%s: no case is called %s\n", words[0], words[1]);
		return 2;
	}
	gpu = open_gpu();
	program = build_program(&gpu, source, "", "the cases");
	if (run)
		run(cases->run);
	else
		cases->run();
	file = fopen(words[3], "wb");
	must(!file || fwrite(out, sizeof *out, N, file) != N || fclose(file), words[3]);
	return 0;
}

#endif

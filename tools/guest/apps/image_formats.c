// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads and writes OpenCL images of every format that the standard asks for, in every shape, and compares texels with a reference.
//
// image_formats [NAME...]      NAME: part of a case's name, for example 2d or snorm_int8
// Prints one line per shape and format and, last, "N passed, N failed". Exit code 0 if none failed, 1 otherwise.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_cases.h"

static const char *const suffix[] = { "f", "i", "ui" }, *const vector[] = { "float4", "int4", "uint4" };

static struct gpu gpu;

/* Kernels of one shape: `read` and `write` for the three kinds, `border` with a sampler beyond the edge. */
static cl_program build(const struct shape *shape)
{
	static char text[8192];
	size_t used = snprintf(text, sizeof text, "%s",
			       "#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable\n"
			       "constant sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"
			       "#define POSITION int4 p = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);\\\n"
			       "  size_t i = (p.z * get_global_size(1) + p.y) * get_global_size(0) + p.x;\n");
	for (int kind = 0; kind < 3; kind++) {
		const char *f = suffix[kind], *v = vector[kind], *image = shape->image, *at = shape->coordinates;
		used += snprintf(text + used, sizeof text - used,
				 "kernel void read%s(read_only %s image, global %s *out) {\n"
				 "  POSITION out[i] = read_image%s(image, %s); }\n"
				 "kernel void write%s(write_only %s image, global const %s *in) {\n"
				 "  POSITION write_image%s(image, %s, in[i]); }\n",
				 f, image, v, f, at, f, image, v, f, at);
		if (shape->type != CL_MEM_OBJECT_IMAGE1D_BUFFER)
			used += snprintf(text + used, sizeof text - used,
					 "kernel void border%s(read_only %s image, global %s *out) {\n"
					 "  POSITION p.x += get_global_size(0) - 1; out[i] = read_image%s(image, s, %s); }\n",
					 f, image, v, f, at);
	}
	return build_program(&gpu, text, "-cl-std=CL3.0", shape->name);
}

static void launch(cl_program program, const char *what, enum kind kind, const struct image *image, cl_mem buffer)
{
	char name[16];
	cl_int error;
	snprintf(name, sizeof name, "%s%s", what, suffix[kind]);
	cl_kernel kernel = clCreateKernel(program, name, &error);
	must(error, name);
	must(clSetKernelArg(kernel, 0, sizeof image->image, &image->image), "image argument");
	must(clSetKernelArg(kernel, 1, sizeof buffer, &buffer), "buffer argument");
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, 3, NULL, image->region, NULL, 0, NULL, NULL), name);
	clReleaseKernel(kernel);
}

/*
 * Texels go up, a kernel reads them; components that a format lacks are 0, alpha 1. Beyond the edge its own are 0. The
 * standard wants alpha 1 there if the format lacks it; Mesa gives the sampler 0, and what silicon makes of that is not public.
 */
static int reads(cl_program program, const struct image *image, const struct order *order, const struct type *type,
		 const char *name, int beyond)
{
	static uint8_t texels[MOST * TEXEL];
	static uint32_t words[MOST][4];
	size_t bytes = order->count * type->bits / 8;
	for (size_t i = 0; i < image->texels * order->count; i++) {
		uint32_t bits = some_bits(type, i * 31 + bytes);
		memcpy(texels + i * type->bits / 8, &bits, type->bits / 8);
	}
	cl_int error;
	cl_mem buffer = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, sizeof words, NULL, &error);
	must(error, "buffer");
	must(clEnqueueWriteImage(gpu.queue, image->image, CL_TRUE, image->origin, image->region, 0, 0, texels, 0, NULL, NULL),
	     "clEnqueueWriteImage");
	launch(program, beyond ? "border" : "read", type->kind, image, buffer);
	must(clEnqueueReadBuffer(gpu.queue, buffer, CL_TRUE, 0, sizeof words, words, 0, NULL, NULL), "clEnqueueReadBuffer");
	clReleaseMemObject(buffer);
	for (size_t i = 0; i < image->texels; i++) {
		size_t x = i % image->region[0], from = beyond ? i + image->region[0] - 1 : i;
		int inside = !beyond || !x;
		double want[4] = { 0, 0, 0, inside };
		for (int c = 0; inside && c < order->count; c++)
			want[order->component[c]] = decode(type, channel(type, texels + from * bytes, c));
		for (int c = 0; c < (inside ? 4 : order->count); c++) {
			double have = component(type->kind, words[i][c]);
			double limit = type->unit ? 1.5 / 16777216 : 0;
			if (!(fabs(have - want[c]) <= limit)) {
				printf("FAIL %s: %s texel %zu component %d: %.9g, expected %.9g\n", name,
				       beyond ? "beyond the edge," : "read", i, c, have, want[c]);
				return 0;
			}
		}
	}
	return 1;
}

/* A kernel writes components, texels come down. */
static int writes(cl_program program, const struct image *image, const struct order *order, const struct type *type,
		  const char *name)
{
	static uint8_t texels[MOST * TEXEL];
	static uint32_t words[MOST][4];
	size_t bytes = order->count * type->bits / 8;
	for (size_t i = 0; i < image->texels; i++)
		for (int c = 0; c < 4; c++)
			words[i][c] = some_component(type, i * 4 + c + bytes);
	memset(texels, 0xa5, sizeof texels);
	cl_int error;
	cl_mem buffer = clCreateBuffer(gpu.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof words, words, &error);
	must(error, "buffer");
	launch(program, "write", type->kind, image, buffer);
	must(clEnqueueReadImage(gpu.queue, image->image, CL_TRUE, image->origin, image->region, 0, 0, texels, 0, NULL, NULL),
	     "clEnqueueReadImage");
	clReleaseMemObject(buffer);
	for (size_t i = 0; i < image->texels; i++)
		for (int c = 0; c < order->count; c++) {
			uint32_t bits = channel(type, texels + i * bytes, c);
			double value = component(type->kind, words[i][order->component[c]]);
			if (!stored(type, bits, value)) {
				printf("FAIL %s: written texel %zu channel %d: %#x after %.9g\n", name, i, c, bits, value);
				return 0;
			}
		}
	return 1;
}

static int run(cl_program program, const struct shape *shape, const struct order *order, const struct type *type,
	       const char *name)
{
	struct image image;
	cl_int error = make_image(&gpu, &image, shape, order, type);
	int good = !error;
	if (error)
		printf("FAIL %s: clCreateImage: OpenCL error %d\n", name, error);
	good = good && reads(program, &image, order, type, name, 0);
	if (good && shape->type != CL_MEM_OBJECT_IMAGE1D_BUFFER)
		good = reads(program, &image, order, type, name, 1);
	good = good && writes(program, &image, order, type, name);
	release_image(&image);
	if (good)
		printf("ok   %s\n", name);
	return good;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu = open_gpu();
	unsigned passed = 0, failed = 0;
	for (size_t s = 0; s < SHAPES; s++) {
		cl_program program = NULL;
		for (size_t o = 0; o < ORDERS; o++)
			for (size_t t = 0; t < (orders[o].every_type ? TYPES : 1); t++) {
				char name[64];
				snprintf(name, sizeof name, "%s %s %s", shapes[s].name, orders[o].name, types[t].name);
				if (!wanted(name, argc, argv))
					continue;
				if (!program)
					program = build(shapes + s);
				*(run(program, shapes + s, orders + o, types + t, name) ? &passed : &failed) += 1;
			}
		if (program)
			clReleaseProgram(program);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}

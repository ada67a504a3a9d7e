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

#include "opencl_gpu.h"

/* Texels of the largest image, and bytes of the largest texel. */
#define MOST 128
#define TEXEL 16

enum kind { FLOATS, SIGNED, UNSIGNED };

/* A channel's type: how its bits become a component. */
struct type {
	const char *name;
	cl_channel_type type;
	enum kind kind;
	int bits;
	double unit; /* a normalised type's value of 1; 0 for the others */
};

static const struct type types[] = {
	{ "unorm_int8", CL_UNORM_INT8, FLOATS, 8, 255 },
	{ "unorm_int16", CL_UNORM_INT16, FLOATS, 16, 65535 },
	{ "snorm_int8", CL_SNORM_INT8, FLOATS, 8, -127 },
	{ "snorm_int16", CL_SNORM_INT16, FLOATS, 16, -32767 },
	{ "half_float", CL_HALF_FLOAT, FLOATS, 16, 0 },
	{ "float", CL_FLOAT, FLOATS, 32, 0 },
	{ "signed_int8", CL_SIGNED_INT8, SIGNED, 8, 0 },
	{ "signed_int16", CL_SIGNED_INT16, SIGNED, 16, 0 },
	{ "signed_int32", CL_SIGNED_INT32, SIGNED, 32, 0 },
	{ "unsigned_int8", CL_UNSIGNED_INT8, UNSIGNED, 8, 0 },
	{ "unsigned_int16", CL_UNSIGNED_INT16, UNSIGNED, 16, 0 },
	{ "unsigned_int32", CL_UNSIGNED_INT32, UNSIGNED, 32, 0 },
};

/* Which components a texel has, in the order of memory. */
struct order {
	const char *name;
	cl_channel_order order;
	int count, component[4];
	int every_type; /* 0: only unorm_int8 */
};

static const struct order orders[] = {
	{ "r", CL_R, 1, { 0 }, 1 },
	{ "rg", CL_RG, 2, { 0, 1 }, 1 },
	{ "rgba", CL_RGBA, 4, { 0, 1, 2, 3 }, 1 },
	{ "bgra", CL_BGRA, 4, { 2, 1, 0, 3 }, 0 },
};

/* A shape: its type for the compiler, how a kernel makes its coordinates of (x, y, z), and a size. */
struct shape {
	const char *name, *image, *coordinates;
	cl_mem_object_type type;
	int array;      /* the last extent counts layers */
	size_t size[3];
};

static const struct shape shapes[] = {
	{ "1d", "image1d_t", "p.x", CL_MEM_OBJECT_IMAGE1D, 0, { 37, 1, 1 } },
	{ "1d_buffer", "image1d_buffer_t", "p.x", CL_MEM_OBJECT_IMAGE1D_BUFFER, 0, { 37, 1, 1 } },
	{ "1d_array", "image1d_array_t", "p.xy", CL_MEM_OBJECT_IMAGE1D_ARRAY, 1, { 11, 3, 1 } },
	{ "2d", "image2d_t", "p.xy", CL_MEM_OBJECT_IMAGE2D, 0, { 13, 7, 1 } },
	{ "2d_array", "image2d_array_t", "p", CL_MEM_OBJECT_IMAGE2D_ARRAY, 1, { 7, 5, 3 } },
	{ "3d", "image3d_t", "p", CL_MEM_OBJECT_IMAGE3D, 0, { 7, 5, 3 } },
};

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

/* A number sequence without short periods; the same on every run. */
static uint32_t scramble(uint32_t n)
{
	n = (n ^ 61) ^ (n >> 16);
	n *= 9;
	n ^= n >> 4;
	n *= 0x27d4eb2d;
	return n ^ (n >> 15);
}

static double half_to_double(uint16_t bits)
{
	int exponent = bits >> 10 & 31, mantissa = bits & 1023;
	double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
	return bits >> 15 ? -value : value;
}

/* The value of a channel's bits. */
static double decode(const struct type *type, uint32_t bits)
{
	int32_t number = (int32_t)(bits << (32 - type->bits)) >> (32 - type->bits);
	float real;
	if (type->unit > 0)
		return bits / type->unit;
	if (type->unit < 0)
		return fmax(number / -type->unit, -1);
	switch (type->type) {
	case CL_HALF_FLOAT: return half_to_double(bits);
	case CL_FLOAT: memcpy(&real, &bits, 4); return real;
	default: return type->kind == SIGNED ? (double)number : (double)bits;
	}
}

static uint32_t channel(const struct type *type, const uint8_t *texel, int index)
{
	uint32_t bits = 0;
	memcpy(&bits, texel + index * type->bits / 8, type->bits / 8);
	return bits;
}

static double component(enum kind kind, uint32_t word)
{
	float real;
	memcpy(&real, &word, 4);
	return kind == FLOATS ? real : kind == SIGNED ? (double)(int32_t)word : (double)word;
}

/* Whether a channel holds what storing a component must leave there. */
static int stored(const struct type *type, uint32_t bits, double value)
{
	double lowest = type->kind == SIGNED ? -ldexp(1, type->bits - 1) : 0;
	double highest = ldexp(1, type->bits - (type->kind == SIGNED)) - 1;
	if (type->unit) {
		double unit = fabs(type->unit), limited = fmin(fmax(value, type->unit < 0 ? -1 : 0), 1);
		/* The standard allows 0.6 of a step; a device's lowest number may be stored as either of its two forms. */
		return fabs(decode(type, bits) - limited) * unit <= 0.6;
	}
	if (type->type == CL_HALF_FLOAT) {
		double step = ldexp(1, (int)fmax(floor(log2(fmax(fabs(value), 1e-30))), -14) - 10);
		return fabs(decode(type, bits) - value) <= step / 2;
	}
	if (type->kind == FLOATS)
		return decode(type, bits) == value;
	return decode(type, bits) == fmin(fmax(value, lowest), highest);
}

/* Bits of any value, but no infinity and none that is not a number. */
static uint32_t some_bits(const struct type *type, uint32_t seed)
{
	uint32_t bits = scramble(seed) & (uint32_t)((1ull << type->bits) - 1);
	if (seed % 11 == 3 && type->type != CL_HALF_FLOAT && type->type != CL_FLOAT)
		bits = seed & 1 ? 1u << (type->bits - 1) : (uint32_t)((1ull << type->bits) - 1);
	if (type->type == CL_HALF_FLOAT && (bits >> 10 & 31) == 31)
		bits ^= 0x4000;
	/* Numbers too small for a normalised form may be read as zero. */
	if (type->type == CL_FLOAT)
		bits = (bits & 0x807fffff) | (64 + (bits >> 23) % 128) << 23;
	return bits;
}

/* A component to store: in range, at its ends and beyond. */
static uint32_t some_component(const struct type *type, uint32_t seed)
{
	uint32_t random = scramble(seed * 5 + 1);
	if (type->kind != FLOATS)
		return seed % 3 ? random >> random % 32 : (uint32_t)-(int32_t)(random >> random % 32);
	float real = ((random >> 8) / 16777216.0f * 2 - 1) * (type->unit ? 1.25f : 900);
	if (seed % 13 == 4)
		real = type->unit ? (seed & 1 ? 1 : -1) : 0;
	uint32_t word;
	memcpy(&word, &real, 4);
	return word;
}

struct image {
	cl_mem image, memory; /* the buffer under an image1d_buffer_t */
	size_t texels, region[3], origin[3];
};

static int make(struct image *made, const struct shape *shape, const struct order *order, const struct type *type)
{
	cl_image_format format = { order->order, type->type };
	cl_image_desc desc = { .image_type = shape->type, .image_width = shape->size[0] };
	cl_int error = 0;
	*made = (struct image){ .texels = 1 };
	for (int i = 0; i < 3; i++)
		made->texels *= made->region[i] = shape->size[i];
	if (shape->type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
		made->memory = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, MOST * TEXEL, NULL, &error);
		must(error, "buffer");
		desc.buffer = made->memory;
	}
	if (shape->array)
		desc.image_array_size = shape->size[shape->size[2] > 1 ? 2 : 1];
	if (shape->size[1] > 1 && shape->type != CL_MEM_OBJECT_IMAGE1D_ARRAY)
		desc.image_height = shape->size[1];
	if (shape->type == CL_MEM_OBJECT_IMAGE3D)
		desc.image_depth = shape->size[2];
	made->image = clCreateImage(gpu.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error);
	return error;
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
	cl_int error = make(&image, shape, order, type);
	int good = !error;
	if (error)
		printf("FAIL %s: clCreateImage: OpenCL error %d\n", name, error);
	good = good && reads(program, &image, order, type, name, 0);
	if (good && shape->type != CL_MEM_OBJECT_IMAGE1D_BUFFER)
		good = reads(program, &image, order, type, name, 1);
	good = good && writes(program, &image, order, type, name);
	if (image.image)
		clReleaseMemObject(image.image);
	if (image.memory)
		clReleaseMemObject(image.memory);
	if (good)
		printf("ok   %s\n", name);
	return good;
}

static int wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return 1;
	return argc == 1;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu = open_gpu();
	unsigned passed = 0, failed = 0;
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		cl_program program = NULL;
		for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
			for (size_t t = 0; t < (orders[o].every_type ? sizeof types / sizeof *types : 1); t++) {
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

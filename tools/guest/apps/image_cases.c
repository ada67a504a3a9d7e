// SPDX-License-Identifier: MIT OR Apache-2.0
// OpenCL images of every format that the standard asks for, in every shape, and what their bits mean.
#include "image_cases.h"

#include <math.h>
#include <string.h>

const struct type types[TYPES] = {
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

const struct order orders[ORDERS] = {
	{ "r", CL_R, 1, { 0 }, 1 },
	{ "rg", CL_RG, 2, { 0, 1 }, 1 },
	{ "rgba", CL_RGBA, 4, { 0, 1, 2, 3 }, 1 },
	{ "bgra", CL_BGRA, 4, { 2, 1, 0, 3 }, 0 },
};

const struct shape shapes[SHAPES] = {
	{ "1d", "image1d_t", "p.x", CL_MEM_OBJECT_IMAGE1D, 0, { 37, 1, 1 } },
	{ "1d_buffer", "image1d_buffer_t", "p.x", CL_MEM_OBJECT_IMAGE1D_BUFFER, 0, { 37, 1, 1 } },
	{ "1d_array", "image1d_array_t", "p.xy", CL_MEM_OBJECT_IMAGE1D_ARRAY, 1, { 11, 3, 1 } },
	{ "2d", "image2d_t", "p.xy", CL_MEM_OBJECT_IMAGE2D, 0, { 13, 7, 1 } },
	{ "2d_array", "image2d_array_t", "p", CL_MEM_OBJECT_IMAGE2D_ARRAY, 1, { 7, 5, 3 } },
	{ "3d", "image3d_t", "p", CL_MEM_OBJECT_IMAGE3D, 0, { 7, 5, 3 } },
};

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

double decode(const struct type *type, uint32_t bits)
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

uint32_t channel(const struct type *type, const uint8_t *texel, int index)
{
	uint32_t bits = 0;
	memcpy(&bits, texel + index * type->bits / 8, type->bits / 8);
	return bits;
}

double component(enum kind kind, uint32_t word)
{
	float real;
	memcpy(&real, &word, 4);
	return kind == FLOATS ? real : kind == SIGNED ? (double)(int32_t)word : (double)word;
}

int stored(const struct type *type, uint32_t bits, double value)
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

uint32_t some_bits(const struct type *type, uint32_t seed)
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

uint32_t some_component(const struct type *type, uint32_t seed)
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

int make_image(const struct gpu *gpu, struct image *made, const struct shape *shape, const struct order *order,
	       const struct type *type)
{
	cl_image_format format = { order->order, type->type };
	cl_image_desc desc = { .image_type = shape->type, .image_width = shape->size[0] };
	cl_int error = 0;
	*made = (struct image){ .texels = 1 };
	for (int i = 0; i < 3; i++)
		made->texels *= made->region[i] = shape->size[i];
	if (shape->type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
		made->memory = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, MOST * TEXEL, NULL, &error);
		must(error, "buffer");
		desc.buffer = made->memory;
	}
	if (shape->array)
		desc.image_array_size = shape->size[shape->size[2] > 1 ? 2 : 1];
	if (shape->size[1] > 1 && shape->type != CL_MEM_OBJECT_IMAGE1D_ARRAY)
		desc.image_height = shape->size[1];
	if (shape->type == CL_MEM_OBJECT_IMAGE3D)
		desc.image_depth = shape->size[2];
	made->image = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error);
	return error;
}

void release_image(struct image *image)
{
	if (image->image)
		clReleaseMemObject(image->image);
	if (image->memory)
		clReleaseMemObject(image->memory);
}

int wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return 1;
	return argc == 1;
}

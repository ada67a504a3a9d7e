// SPDX-License-Identifier: MIT OR Apache-2.0
// Fills part of OpenCL images of every format that the standard asks for, in every shape: what was filled must hold the colour, what
// was not must hold what was there before.
//
// image_fill [NAME...]      NAME: part of a case's name, for example 2d or snorm_int8
// Prints one line per shape and format and, last, "N passed, N failed". Exit code 0 if none failed, 1 otherwise.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_cases.h"

/* Where a region starts in an extent, and how far it goes: all of it, the middle, the end. */
enum part { WHOLE, MIDDLE, END, PARTS };

static const char *const part_names[] = { "whole", "middle", "end" };

/* Many tiles of the GPU, and no whole number of them. */
static const struct shape large[] = {
	{ "large", "image2d_t", "p.xy", CL_MEM_OBJECT_IMAGE2D, 0, { 301, 203, 1 } },
	{ "large_3d", "image3d_t", "p", CL_MEM_OBJECT_IMAGE3D, 0, { 75, 33, 9 } },
};

static struct gpu gpu;

static void choose(enum part part, const struct image *image, size_t origin[3], size_t region[3])
{
	for (int i = 0; i < 3; i++) {
		size_t extent = image->region[i];
		origin[i] = part == WHOLE ? 0 : part == MIDDLE ? extent / 3 : extent - (extent + 2) / 3;
		region[i] = part == WHOLE ? extent : part == MIDDLE ? (extent + 2) / 3 : extent - origin[i];
	}
}

static int inside(size_t at[3], const size_t origin[3], const size_t region[3])
{
	for (int i = 0; i < 3; i++)
		if (at[i] < origin[i] || at[i] >= origin[i] + region[i])
			return 0;
	return 1;
}

/* Whether texels mean the same: a device's lowest number may be stored as either of its two forms. */
static int same(const struct order *order, const struct type *type, const uint8_t *a, const uint8_t *b)
{
	for (int c = 0; c < order->count; c++)
		if (decode(type, channel(type, a, c)) != decode(type, channel(type, b, c)))
			return 0;
	return 1;
}

/* Whether a channel holds a component. Halves may be rounded to nearest or towards zero. */
static int holds(const struct type *type, uint32_t bits, double value)
{
	if (type->type != CL_HALF_FLOAT)
		return stored(type, bits, value);
	double have = decode(type, bits), step = ldexp(1, (int)floor(log2(fmax(fabs(value), ldexp(1, -14)))) - 10);
	return fabs(have - value) < step;
}

static int fills(const struct image *image, const struct order *order, const struct type *type, enum part part, const char *name)
{
	size_t bytes = order->count * type->bits / 8, origin[3], region[3];
	uint8_t *before = calloc(image->texels, TEXEL), *after = calloc(image->texels, TEXEL);
	int good = 1;
	must(before && after ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY, "memory");
	uint32_t colour[4];
	for (int c = 0; c < 4; c++)
		colour[c] = some_component(type, part * 4 + c + bytes * 16);
	for (size_t i = 0; i < image->texels * order->count; i++) {
		uint32_t bits = some_bits(type, i * 31 + bytes + part);
		memcpy(before + i * type->bits / 8, &bits, type->bits / 8);
	}
	choose(part, image, origin, region);
	must(clEnqueueWriteImage(gpu.queue, image->image, CL_TRUE, image->origin, image->region, 0, 0, before, 0, NULL, NULL),
	     "clEnqueueWriteImage");
	must(clEnqueueFillImage(gpu.queue, image->image, colour, origin, region, 0, NULL, NULL), "clEnqueueFillImage");
	must(clEnqueueReadImage(gpu.queue, image->image, CL_TRUE, image->origin, image->region, 0, 0, after, 0, NULL, NULL),
	     "clEnqueueReadImage");
	for (size_t i = 0; good && i < image->texels; i++) {
		size_t at[3] = { i % image->region[0], i / image->region[0] % image->region[1],
				 i / image->region[0] / image->region[1] };
		int filled = inside(at, origin, region);
		if (!filled && !same(order, type, before + i * bytes, after + i * bytes)) {
			printf("FAIL %s: %s: texel %zu,%zu,%zu was not to be filled\n", name, part_names[part], at[0], at[1], at[2]);
			good = 0;
		}
		for (int c = 0; filled && good && c < order->count; c++) {
			uint32_t bits = channel(type, after + i * bytes, c);
			double value = component(type->kind, colour[order->component[c]]);
			if (!holds(type, bits, value)) {
				printf("FAIL %s: %s: texel %zu,%zu,%zu channel %d: %#x after %.9g\n", name, part_names[part], at[0],
				       at[1], at[2], c, bits, value);
				good = 0;
			}
		}
	}
	free(before);
	free(after);
	return good;
}

static int run(const struct shape *shape, const struct order *order, const struct type *type, const char *name)
{
	struct image image;
	cl_int error = make_image(&gpu, &image, shape, order, type);
	int good = !error;
	if (error)
		printf("FAIL %s: clCreateImage: OpenCL error %d\n", name, error);
	for (int part = 0; good && part < PARTS; part++)
		good = fills(&image, order, type, part, name);
	release_image(&image);
	if (good)
		printf("ok   %s\n", name);
	return good;
}

/* Every format of some shapes. */
static void all(const struct shape *shapes, int count, int argc, char **argv, unsigned *passed, unsigned *failed)
{
	for (const struct shape *shape = shapes; shape < shapes + count; shape++)
		for (const struct order *order = orders; order < orders + ORDERS; order++)
			for (const struct type *type = types; type < types + (order->every_type ? TYPES : 1); type++) {
				char name[64];
				snprintf(name, sizeof name, "%s %s %s", shape->name, order->name, type->name);
				if (wanted(name, argc, argv))
					*(run(shape, order, type, name) ? passed : failed) += 1;
			}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu = open_gpu();
	unsigned passed = 0, failed = 0;
	all(shapes, SHAPES, argc, argv, &passed, &failed);
	all(large, 2, argc, argv, &passed, &failed);
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}

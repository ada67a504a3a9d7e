/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* OpenCL images of every format that the standard asks for, in every shape, and what their bits mean. */
#ifndef IMAGE_CASES_H
#define IMAGE_CASES_H

#include <stddef.h>
#include <stdint.h>

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

/* Twelve types, four orders, six shapes. */
#define TYPES 12
#define ORDERS 4
#define SHAPES 6
extern const struct type types[TYPES];

/* Which components a texel has, in the order of memory. */
struct order {
	const char *name;
	cl_channel_order order;
	int count, component[4];
	int every_type; /* 0: only unorm_int8 */
};

extern const struct order orders[ORDERS];

/* A shape: its type for the compiler, how a kernel makes its coordinates of (x, y, z), and a size. */
struct shape {
	const char *name, *image, *coordinates;
	cl_mem_object_type type;
	int array;      /* the last extent counts layers */
	size_t size[3];
};

extern const struct shape shapes[SHAPES];

struct image {
	cl_mem image, memory; /* the buffer under an image1d_buffer_t */
	size_t texels, region[3], origin[3];
};

/* Makes an image; its error. */
int make_image(const struct gpu *gpu, struct image *made, const struct shape *shape, const struct order *order,
	       const struct type *type);

void release_image(struct image *image);

/* The value of a channel's bits. */
double decode(const struct type *type, uint32_t bits);

/* The bits of a texel's channel. */
uint32_t channel(const struct type *type, const uint8_t *texel, int index);

/* The value of a component as kernels see it. */
double component(enum kind kind, uint32_t word);

/* Whether a channel holds what storing a component must leave there. */
int stored(const struct type *type, uint32_t bits, double value);

/* Bits of any value, but no infinity and none that is not a number. */
uint32_t some_bits(const struct type *type, uint32_t seed);

/* A component to store: in range, at its ends and beyond. */
uint32_t some_component(const struct type *type, uint32_t seed);

/* Whether a case is asked for: its name contains one of the arguments, or there are none. */
int wanted(const char *name, int argc, char **argv);

#endif

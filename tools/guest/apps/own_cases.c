// SPDX-License-Identifier: MIT OR Apache-2.0
// The project's own kernels (kernels/*.cl) and what each must compute, in plain C.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_test.h"

#define F32(n) ((float *)launch->buffer[n])
#define I32(n) ((int32_t *)launch->buffer[n])
#define U32(n) ((uint32_t *)launch->buffer[n])
#define I64(n) ((int64_t *)launch->buffer[n])
#define U8(n) ((uint8_t *)launch->buffer[n])
#define I16(n) ((int16_t *)launch->buffer[n])
#define INT_VALUE(n) ((int32_t)launch->argument[n].value)
#define EACH(i) for (size_t i = 0; i < launch->global[0]; i++)

static void scale_add(struct launch *launch)
{
	EACH(i)
		F32(1)[i] = fmaf(launch->argument[2].value, F32(0)[i], F32(1)[i]);
}

static void scale_add_vector(struct launch *launch)
{
	for (size_t i = 0; i < 4 * launch->global[0]; i++)
		F32(1)[i] = fmaf(launch->argument[2].value, F32(0)[i], F32(1)[i]);
}

static void bytes(struct launch *launch)
{
	EACH(i) {
		int sum = U8(0)[i] + 7;
		U8(1)[i] = (sum > 255 ? 255 : sum) ^ (U8(0)[i] >> 3);
	}
}

static void shorts(struct launch *launch)
{
	EACH(i)
		I16(1)[i] = (int16_t)(I16(0)[i] * 11 - (I16(0)[i] >> 5));
}

static void longs(struct launch *launch)
{
	int64_t factor = launch->argument[2].value;
	EACH(i) {
		int64_t v = I64(0)[i];
		I64(1)[i] = (int64_t)((uint64_t)v * (uint64_t)factor) ^ (v >> 9) ^ (v / (factor + 2)) ^ (v % 1000003);
	}
}

static void divide(struct launch *launch)
{
	int d = INT_VALUE(2);
	EACH(i) {
		int32_t v = I32(0)[i];
		I32(1)[i] = (int32_t)((uint32_t)(v / d) * 3u + (uint32_t)(v % d) + (uint32_t)v / 13u);
	}
}

static void bit_operations(struct launch *launch)
{
	EACH(i) {
		int32_t s = I32(0)[i];
		uint32_t u = s, r = __builtin_popcount(u);
		r += (uint32_t)(u ? __builtin_clz(u) : 32) << 6;
		r += u << 9 | u >> 23;
		r += (uint32_t)((uint64_t)u * 0x9e3779b9u >> 32);
		r += u << (i & 15);
		r += u >> (i & 7);
		r += u < 4000 ? u : 4000;
		r += s > 77 ? (uint32_t)s - 77u : 77u - (uint32_t)s;
		r += (uint32_t)(((uint64_t)u + 3) >> 1);
		r += u > 1000000000u ? u - 1000000000u : 0;
		r += (uint32_t)(s >> (i & 11));
		r += (uint32_t)(s > -9 ? s : -9);
		r += (uint32_t)((s & 0xffff) * 5 - 4);
		U32(1)[i] = r;
	}
}

static void indices(struct launch *launch)
{
	const size_t *g = launch->global, *l = launch->local;
	for (size_t z = 0; z < g[2]; z++)
		for (size_t y = 0; y < g[1]; y++)
			for (size_t x = 0; x < g[0]; x++)
				U32(0)[x + g[0] * (y + g[1] * z)] =
					x + 100 * y + 10000 * z + 1000003 * (x % l[0]) + y % l[1] * 7 + z % l[2] * 13 +
					17 * (x / l[0]) + 19 * (y / l[1]) + 23 * (z / l[2]) + g[1] / l[1] * 29 + l[0] * 31;
}

static void loop_with_exits(struct launch *launch)
{
	EACH(i) {
		int32_t sum = 0, turns = I32(0)[i] & 63;
		for (int j = 0; j < turns; j++) {
			if ((I32(0)[j] ^ j) & 1)
				sum += 3 * j;
			else if (sum > 900)
				break;
			else
				sum ^= I32(0)[j] & 255;
		}
		I32(1)[i] = sum;
	}
}

static void branches(struct launch *launch)
{
	EACH(i) {
		uint32_t v = U32(0)[i], r;
		switch (v & 7) {
		case 0: r = v * 3; break;
		case 1: r = -(uint32_t)i; break;
		case 3:
			r = 11;
			for (size_t k = 0; k < (i & 15); k++)
				r = r * 5 + U32(0)[k];
			break;
		case 6: r = 41; break;
		case 7: r = 40; break;
		default: r = -1u;
		}
		U32(1)[i] = r;
	}
}

static void scratch_memory(struct launch *launch)
{
	EACH(i) {
		uint32_t sum = 0;
		for (uint32_t j = 0; j < (uint32_t)INT_VALUE(2); j++) {
			uint32_t at = (U32(0)[i] + j * 11u) % 96u;
			sum = sum * 31 + U32(0)[at] * (at + 1) + (uint32_t)i;
		}
		U32(1)[i] = sum;
	}
}

static void early_return(struct launch *launch)
{
	EACH(i)
		if ((int)i < INT_VALUE(2) && I32(0)[i])
			I32(1)[i] = 1000 / I32(0)[i];
}

static void group_sum(struct launch *launch)
{
	size_t size = launch->local[0];
	for (size_t group = 0; group < launch->global[0] / size; group++) {
		uint32_t sum = 0;
		for (size_t i = 0; i < size; i++)
			sum += U32(0)[group * size + i];
		U32(1)[group] = sum;
	}
}

static void atomics(struct launch *launch)
{
	int32_t *y = I32(1);
	EACH(i) {
		int32_t v = I32(0)[i];
		y[0] = (int32_t)((uint32_t)y[0] + (uint32_t)v);
		y[1] = v < y[1] ? v : y[1];
		y[2] = v > y[2] ? v : y[2];
		y[3] |= v & 0xff00;
		y[4] ^= v;
		y[5] &= v | 0x0f0f0f0f;
		y[6]++;
		y[7]--;
		y[8 + (v & 7)] -= 3;
	}
}

static void histogram(struct launch *launch)
{
	for (size_t i = 0; i < 8 * launch->global[0]; i++)
		I32(1)[U8(0)[i]]++;
}

static void convolution(struct launch *launch)
{
	int width = INT_VALUE(3), height = INT_VALUE(4), channels = INT_VALUE(5);
	for (int o = 0; o < (int)launch->global[2]; o++)
		for (int y = 0; y < height; y++)
			for (int x = 0; x < width; x++) {
				double sum = 0;
				for (int c = 0; c < channels; c++)
					for (int t = 0; t < 9; t++) {
						int xx = x + t % 3 - 1, yy = y + t / 3 - 1;
						if (xx >= 0 && yy >= 0 && xx < width && yy < height)
							sum += (double)F32(0)[(c * height + yy) * width + xx] *
							       F32(1)[(o * channels + c) * 9 + t];
					}
				F32(2)[(o * height + y) * width + x] = sum > 0 ? sum : 0;
			}
}

static void product(float *c, const float *a, const float *b, int rows, int depth, int columns)
{
	for (int y = 0; y < rows; y++)
		for (int x = 0; x < columns; x++) {
			double sum = 0;
			for (int k = 0; k < depth; k++)
				sum += (double)a[y * depth + k] * b[k * columns + x];
			c[y * columns + x] = sum;
		}
}

static void matrix_product(struct launch *launch)
{
	product(F32(2), F32(0), F32(1), launch->global[1], INT_VALUE(3), INT_VALUE(4));
}

static void tiled_product(struct launch *launch)
{
	product(F32(2), F32(0), F32(1), INT_VALUE(3), INT_VALUE(3), INT_VALUE(3));
}

static void max_pool(struct launch *launch)
{
	int width = INT_VALUE(2);
	for (int y = 0; y < (int)launch->global[1]; y++)
		for (int x = 0; x < (int)launch->global[0]; x++) {
			const float *in = F32(0) + 2 * y * width + 2 * x;
			F32(1)[y * (width / 2) + x] = fmaxf(fmaxf(in[0], in[1]), fmaxf(in[width], in[width + 1]));
		}
}

static void soft_max(struct launch *launch)
{
	int count = INT_VALUE(2);
	EACH(r) {
		const float *row = F32(0) + r * count;
		double sum = 0;
		for (int i = 0; i < count; i++)
			sum += exp(row[i]);
		for (int i = 0; i < count; i++)
			F32(1)[r * count + i] = exp(row[i]) / sum;
	}
}

static void activations(struct launch *launch)
{
	for (size_t i = 0; i < 4 * launch->global[0]; i++) {
		double x = F32(0)[i];
		F32(1)[i] = x / (1 + exp(-x)) + (x > 0 ? x : 0.05 * x) + tanh(x) + fmin(fmax(x, 0), 3);
	}
}

static void byte_product(struct launch *launch)
{
	int depth = INT_VALUE(3), columns = launch->global[0];
	for (int y = 0; y < (int)launch->global[1]; y++)
		for (int x = 0; x < columns; x++) {
			int32_t sum = 0;
			for (int k = 0; k < depth; k++)
				sum += U8(0)[y * depth + k] * (int8_t)U8(1)[k * columns + x];
			I32(2)[y * columns + x] = sum;
		}
}

static void batch_norm(struct launch *launch)
{
	EACH(i) {
		size_t channel = i / INT_VALUE(4);
		F32(1)[i] = (F32(0)[i] - F32(2)[channel]) / sqrt(F32(3)[channel] + 1e-3);
	}
}

#define BASIC(name) "basic.cl", #name, name
#define NN(name) "nn.cl", #name, name
#define SIZE(...) { __VA_ARGS__ }

const struct kernel_case own_cases[] = {
	{ BASIC(scale_add), { { FILL_FLOAT, 4000, 0 }, { FILL_FLOAT, 4000, 0 }, { VALUE_FLOAT, 0, 2.75 } },
	  SIZE(1000, 1, 1), SIZE(50, 1, 1), .tolerance = 0 },
	{ BASIC(scale_add_vector), { { FILL_FLOAT, 4096, 0 }, { FILL_FLOAT, 4096, 0 }, { VALUE_FLOAT, 0, -1.5 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1), .tolerance = 0 },
	{ BASIC(bytes), { { FILL_BYTES, 512, 0 }, { FILL_SENTINEL, 512, 0 } }, SIZE(512, 1, 1), SIZE(32, 1, 1) },
	{ BASIC(shorts), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, SIZE(512, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(longs), { { FILL_LONG, 2048, 0 }, { FILL_SENTINEL, 2048, 0 }, { VALUE_LONG, 0, 1234567 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(divide), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 }, { VALUE_INT, 0, -37 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(bit_operations), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(indices), { { FILL_SENTINEL, 24 * 6 * 4 * 4, 0 } }, SIZE(24, 6, 4), SIZE(8, 3, 2) },
	{ BASIC(loop_with_exits), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(branches), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(scratch_memory), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 }, { VALUE_INT, 0, 40 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(early_return), { { FILL_SMALL, 1024, 0 }, { FILL_SENTINEL, 1024, 0 }, { VALUE_INT, 0, 201 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(group_sum), { { FILL_INT, 2048, 0 }, { FILL_SENTINEL, 32, 0 }, { LOCAL_BYTES, 256, 0 } },
	  SIZE(512, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(atomics), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 64, 0 } }, SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ BASIC(histogram), { { FILL_BYTES, 2048, 0 }, { FILL_ZERO, 1024, 0 } }, SIZE(256, 1, 1), SIZE(64, 1, 1) },
	{ NN(convolution),
	  { { FILL_FLOAT, 4 * 3 * 12 * 16, 0 }, { FILL_FLOAT, 4 * 4 * 3 * 9, 0 }, { FILL_SENTINEL, 4 * 4 * 12 * 16, 0 },
	    { VALUE_INT, 0, 16 }, { VALUE_INT, 0, 12 }, { VALUE_INT, 0, 3 } },
	  SIZE(16, 12, 4), SIZE(8, 4, 1), .tolerance = 1e-5 },
	{ NN(matrix_product),
	  { { FILL_FLOAT, 4 * 24 * 20, 0 }, { FILL_FLOAT, 4 * 20 * 32, 0 }, { FILL_SENTINEL, 4 * 24 * 32, 0 },
	    { VALUE_INT, 0, 20 }, { VALUE_INT, 0, 32 } },
	  SIZE(8, 24, 1), SIZE(8, 4, 1), .tolerance = 1e-5 },
	{ NN(tiled_product),
	  { { FILL_FLOAT, 4 * 32 * 32, 0 }, { FILL_FLOAT, 4 * 32 * 32, 0 }, { FILL_SENTINEL, 4 * 32 * 32, 0 },
	    { VALUE_INT, 0, 32 } },
	  SIZE(32, 32, 1), SIZE(8, 8, 1), .tolerance = 1e-5 },
	{ NN(max_pool), { { FILL_FLOAT, 4 * 16 * 24, 0 }, { FILL_SENTINEL, 4 * 8 * 12, 0 }, { VALUE_INT, 0, 24 } },
	  SIZE(12, 8, 1), SIZE(4, 4, 1), .tolerance = 0 },
	{ NN(soft_max), { { FILL_FLOAT, 4 * 32 * 10, 0 }, { FILL_SENTINEL, 4 * 32 * 10, 0 }, { VALUE_INT, 0, 10 } },
	  SIZE(32, 1, 1), SIZE(16, 1, 1), .tolerance = 1e-5 },
	{ NN(activations), { { FILL_FLOAT, 4096, 0 }, { FILL_SENTINEL, 4096, 0 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1), .tolerance = 1e-5 },
	{ NN(byte_product),
	  { { FILL_BYTES, 16 * 40, 0 }, { FILL_BYTES, 40 * 32, 0 }, { FILL_SENTINEL, 4 * 16 * 32, 0 }, { VALUE_INT, 0, 40 } },
	  SIZE(32, 16, 1), SIZE(8, 8, 1) },
	{ NN(batch_norm),
	  { { FILL_FLOAT, 4 * 4 * 64, 0 }, { FILL_SENTINEL, 4 * 4 * 64, 0 }, { FILL_FLOAT, 16, 0 }, { FILL_POSITIVE, 16, 0 },
	    { VALUE_INT, 0, 64 } },
	  SIZE(256, 1, 1), SIZE(64, 1, 1), .tolerance = 1e-5 },
	{ .file = NULL },
};

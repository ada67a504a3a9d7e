// SPDX-License-Identifier: MIT OR Apache-2.0
// Cases for the sample kernels beside the instruction reference, which are not part of this repository: what each
// computes, in plain C. Kernels whose result depends on the order of work-items are left out.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernel_test.h"

#define F32(n) ((float *)launch->buffer[n])
#define I32(n) ((int32_t *)launch->buffer[n])
#define U32(n) ((uint32_t *)launch->buffer[n])
#define I64(n) ((int64_t *)launch->buffer[n])
#define U8(n) ((uint8_t *)launch->buffer[n])
#define I16(n) ((int16_t *)launch->buffer[n])
#define INT_VALUE(n) ((int32_t)launch->argument[n].value)
#define EACH(i) for (size_t i = 0; i < launch->global[0]; i++)

static void vecadd(struct launch *launch)
{
	EACH(i)
		F32(2)[i] = F32(0)[i] + F32(1)[i];
}

static void saxpy4(struct launch *launch)
{
	for (size_t i = 0; i < 4 * launch->global[0]; i++)
		F32(1)[i] = (float)launch->argument[2].value * (double)F32(0)[i] + F32(1)[i];
}

static void copy_char(struct launch *launch)
{
	EACH(i)
		U8(1)[i] = U8(0)[i] + 3;
}

static void copy_short(struct launch *launch)
{
	EACH(i)
		I16(1)[i] = (int16_t)(I16(0)[i] * 5 - 1);
}

static void long_ops(struct launch *launch)
{
	int64_t s = launch->argument[2].value;
	EACH(i) {
		int64_t v = I64(0)[i];
		I64(1)[i] = (v * s + (v >> 3)) ^ (v / (s + 1));
	}
}

static void idiv(struct launch *launch)
{
	int32_t s = INT_VALUE(2);
	EACH(i) {
		int32_t v = I32(0)[i];
		uint32_t u = v;
		I32(1)[i] = v / s + v % s + (int32_t)(u / 7) + (int32_t)((int64_t)v * s >> 32) + (int32_t)(u << 5 | u >> 27);
	}
}

static void ibits(struct launch *launch)
{
	EACH(i) {
		int32_t s = I32(0)[i];
		uint32_t x = s, r = __builtin_popcount(x) + (x ? __builtin_clz(x) : 32);
		r += s > INT32_MAX - 17 ? INT32_MAX : s + 17;
		r += x > 99 ? x - 99 : 0;
		r += (uint32_t)(((uint64_t)x + 5) >> 1);
		r += (uint32_t)(((int64_t)s - 7 + 1) >> 1);
		r += s < 0 ? -x : x;
		r += (x >> (i & 31)) + (x << (i & 7)) + (uint32_t)(s >> (i & 15));
		r += x < 100 ? x : 100;
		r += s > -5 ? s : -5;
		r += s * 3 + 4;
		r += (x & 0xffff) << 16 | 3;
		U32(1)[i] = r;
	}
}

static void ids(struct launch *launch)
{
	const size_t *g = launch->global, *l = launch->local;
	for (size_t z = 0; z < g[2]; z++)
		for (size_t y = 0; y < g[1]; y++)
			for (size_t x = 0; x < g[0]; x++)
				U32(0)[x + 64 * y + 256 * z] =
					x + 100 * y + 10000 * z + 1000 * (x % l[0] + 7 * (y % l[1]) + 13 * (z % l[2])) +
					77 * (3 * (x / l[0]) + 5 * (y / l[1]) + 11 * (z / l[2])) + g[0] / l[0] + l[1] + 3;
}

static void div_loop(struct launch *launch)
{
	EACH(i) {
		int32_t n = I32(0)[i] & 31, s = 0;
		for (int32_t j = 0; j < n && s <= 1000; j++) {
			if (j % 2)
				s += I32(0)[j];
			else if (s > 50)
				s -= j;
			else
				s ^= j;
		}
		I32(1)[i] = s;
	}
}

static void sw(struct launch *launch)
{
	EACH(i) {
		int32_t kind = I32(0)[i] & 7;
		I32(1)[i] = kind == 0 ? I32(0)[i + 1] : kind == 1 ? I32(0)[i + 2] * 3 : kind == 2 ? (int32_t)i : -1;
	}
}

static void scratch(struct launch *launch)
{
	EACH(i) {
		int32_t s = 0;
		for (int32_t j = 0; j < INT_VALUE(2); j++) {
			int32_t at = (I32(0)[i] + j * 7) & 127;
			s += I32(0)[at] * at;
		}
		I32(1)[i] = s;
	}
}

static void early(struct launch *launch)
{
	EACH(i)
		if ((int32_t)i < INT_VALUE(2) && I32(0)[i])
			I32(1)[i] = 100 / I32(0)[i];
}

static void conv3x3(struct launch *launch)
{
	int width = INT_VALUE(3), height = INT_VALUE(4), channels = INT_VALUE(5);
	for (int z = 0; z < (int)launch->global[2]; z++)
		for (int at = 0; at < width * height; at++) {
			double sum = 0;
			for (int c = 0; c < channels; c++)
				for (int j = -1; j <= 1; j++)
					for (int i = -1; i <= 1; i++) {
						int x = at % width + i, y = at / width + j;
						if (x >= 0 && x < width && y >= 0 && y < height)
							sum += (double)F32(0)[(c * height + y) * width + x] *
							       F32(1)[((z * channels + c) * 3 + j + 1) * 3 + i + 1];
					}
			F32(2)[z * width * height + at] = fmax(sum, 0);
		}
}

static void gemm4(struct launch *launch)
{
	int depth = INT_VALUE(3), columns = INT_VALUE(4);
	for (size_t y = 0; y < 4 * launch->global[1]; y++)
		for (size_t x = 0; x < 4 * launch->global[0]; x++) {
			double sum = 0;
			for (int k = 0; k < depth; k++)
				sum += (double)F32(0)[k * 64 + y] * F32(1)[k * columns + x];
			F32(2)[y * columns + x] = sum;
		}
}

static void maxpool(struct launch *launch)
{
	int width = INT_VALUE(2);
	for (int y = 0; y < (int)launch->global[1]; y++)
		for (int x = 0; x < (int)launch->global[0]; x++) {
			float best = -INFINITY;
			for (int t = 0; t < 9; t++)
				best = fmaxf(best, F32(0)[(y * 2 + t / 3) * width + x * 2 + t % 3]);
			F32(1)[y * width / 2 + x] = best;
		}
}

static void softmax(struct launch *launch)
{
	int n = INT_VALUE(2);
	EACH(r) {
		double sum = 0;
		for (int i = 0; i < n; i++)
			sum += exp(F32(0)[r * n + i]);
		for (int i = 0; i < n; i++)
			F32(1)[r * n + i] = exp(F32(0)[r * n + i]) / sum;
	}
}

static void act(struct launch *launch)
{
	for (size_t i = 0; i < 4 * launch->global[0]; i++) {
		double x = F32(0)[i];
		F32(1)[i] = 1 / (1 + exp(-x)) + tanh(x) + fmin(fmax(x, 0), 6) + (x > 0 ? x : 0.1 * x);
	}
}

static void qgemm(struct launch *launch)
{
	int depth = INT_VALUE(3);
	for (size_t y = 0; y < launch->global[1]; y++)
		for (size_t x = 0; x < launch->global[0]; x++) {
			int32_t sum = 0;
			for (int k = 0; k < depth; k++)
				sum += U8(0)[y * depth + k] * (int8_t)U8(1)[k * 64 + x];
			I32(2)[y * 64 + x] = sum;
		}
}

static void qgemm4(struct launch *launch)
{
	EACH(x) {
		int32_t sum = 0;
		for (int k = 0; k < INT_VALUE(3); k++)
			for (int c = 0; c < 4; c++)
				sum += U8(0)[4 * k + c] * U8(1)[4 * (k * 64 + x) + c];
		I32(2)[x] = sum;
	}
}

static void reduce(struct launch *launch)
{
	size_t size = launch->local[0];
	for (size_t group = 0; group < launch->global[0] / size; group++) {
		double sum = 0;
		for (size_t i = 0; i < size; i++)
			sum += F32(0)[group * size + i];
		F32(1)[group] = sum;
	}
}

static void gemm_tiled(struct launch *launch)
{
	int n = INT_VALUE(3);
	for (int y = 0; y < n; y++)
		for (int x = 0; x < n; x++) {
			double sum = 0;
			for (int k = 0; k < n; k++)
				sum += (double)F32(0)[y * n + k] * F32(1)[k * n + x];
			F32(2)[y * n + x] = sum;
		}
}

static void atom_noret(struct launch *launch)
{
	EACH(i) {
		I32(0)[0] += 1;
		I32(0)[1] += i;
		I32(0)[2] |= 1;
	}
}

static void hist(struct launch *launch)
{
	for (size_t i = 0; i < 16 * launch->global[0]; i++)
		I32(1)[U8(0)[i]]++;
}

static void atom_f(struct launch *launch)
{
	EACH(i)
		F32(0)[0] += (float)launch->argument[1].value;
}

#define CASE(in, name) #in ".cl", #name, name
#define SIZE(...) { __VA_ARGS__ }
#define LINE SIZE(256, 1, 1), SIZE(64, 1, 1)

const struct kernel_case shared_cases[] = {
	{ CASE(basic, vecadd), { { FILL_FLOAT, 1024, 0 }, { FILL_FLOAT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, LINE },
	{ CASE(basic, saxpy4), { { FILL_FLOAT, 4096, 0 }, { FILL_FLOAT, 4096, 0 }, { VALUE_FLOAT, 0, 2.5 } }, LINE,
	  .tolerance = 1e-6 },
	{ CASE(basic, copy_char), { { FILL_BYTES, 256, 0 }, { FILL_SENTINEL, 256, 0 } }, LINE },
	{ CASE(basic, copy_short), { { FILL_INT, 512, 0 }, { FILL_SENTINEL, 512, 0 } }, LINE },
	{ CASE(basic, long_ops), { { FILL_LONG, 2048, 0 }, { FILL_SENTINEL, 2048, 0 }, { VALUE_LONG, 0, 98765 } }, LINE },
	{ CASE(basic, idiv), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 }, { VALUE_INT, 0, 29 } }, LINE },
	{ CASE(basic, ibits), { { FILL_SMALL, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, LINE },
	{ CASE(basic, ids), { { FILL_SENTINEL, 2048, 0 } }, SIZE(64, 4, 2), SIZE(8, 2, 2) },
	{ CASE(basic, div_loop), { { FILL_SMALL, 1024, 0 }, { FILL_SENTINEL, 1024, 0 } }, LINE },
	{ CASE(basic, sw), { { FILL_NOT_FIVE, 1040, 0 }, { FILL_SENTINEL, 1024, 0 } }, LINE },
	{ CASE(basic, scratch), { { FILL_INT, 1024, 0 }, { FILL_SENTINEL, 1024, 0 }, { VALUE_INT, 0, 50 } }, LINE },
	{ CASE(basic, early), { { FILL_SMALL, 1024, 0 }, { FILL_SENTINEL, 1024, 0 }, { VALUE_INT, 0, 200 } }, LINE },
	{ CASE(nn, conv3x3),
	  { { FILL_FLOAT, 4 * 4 * 8 * 16, 0 }, { FILL_FLOAT, 4 * 4 * 4 * 9, 0 }, { FILL_SENTINEL, 4 * 4 * 8 * 16, 0 },
	    { VALUE_INT, 0, 16 }, { VALUE_INT, 0, 8 }, { VALUE_INT, 0, 4 } },
	  SIZE(16, 8, 4), SIZE(8, 8, 1), .tolerance = 1e-5 },
	{ CASE(nn, gemm4),
	  { { FILL_FLOAT, 4 * 24 * 64, 0 }, { FILL_FLOAT, 4 * 24 * 32, 0 }, { FILL_SENTINEL, 4 * 64 * 32, 0 },
	    { VALUE_INT, 0, 24 }, { VALUE_INT, 0, 32 } },
	  SIZE(8, 16, 1), SIZE(8, 8, 1), .tolerance = 1e-5 },
	{ CASE(nn, maxpool), { { FILL_FLOAT, 4 * 34 * 33, 0 }, { FILL_SENTINEL, 4 * 16 * 16, 0 }, { VALUE_INT, 0, 32 } },
	  SIZE(16, 16, 1), SIZE(8, 8, 1) },
	{ CASE(nn, softmax), { { FILL_FLOAT, 4 * 32 * 10, 0 }, { FILL_SENTINEL, 4 * 32 * 10, 0 }, { VALUE_INT, 0, 10 } },
	  SIZE(32, 1, 1), SIZE(16, 1, 1), .tolerance = 1e-5 },
	{ CASE(nn, act), { { FILL_FLOAT, 4096, 0 }, { FILL_SENTINEL, 4096, 0 } }, LINE, .tolerance = 1e-5 },
	{ CASE(nn, qgemm),
	  { { FILL_BYTES, 8 * 32, 0 }, { FILL_BYTES, 32 * 64, 0 }, { FILL_SENTINEL, 4 * 8 * 64, 0 }, { VALUE_INT, 0, 32 } },
	  SIZE(64, 8, 1), SIZE(16, 4, 1) },
	{ CASE(nn, qgemm4),
	  { { FILL_BYTES, 4 * 32, 0 }, { FILL_BYTES, 4 * 32 * 64, 0 }, { FILL_SENTINEL, 4 * 64, 0 }, { VALUE_INT, 0, 32 } },
	  SIZE(64, 1, 1), SIZE(16, 1, 1) },
	{ CASE(sync, reduce), { { FILL_FLOAT, 1024, 0 }, { FILL_SENTINEL, 16, 0 }, { LOCAL_BYTES, 256, 0 } }, LINE,
	  .tolerance = 1e-5 },
	{ CASE(sync, gemm_tiled),
	  { { FILL_FLOAT, 4096, 0 }, { FILL_FLOAT, 4096, 0 }, { FILL_SENTINEL, 4096, 0 }, { VALUE_INT, 0, 32 } },
	  SIZE(32, 32, 1), SIZE(8, 8, 1), .tolerance = 1e-5 },
	{ CASE(sync, atom_noret), { { FILL_SENTINEL, 64, 0 } }, LINE },
	{ CASE(sync, hist), { { FILL_BYTES, 4096, 0 }, { FILL_ZERO, 1024, 0 } }, LINE },
	{ CASE(sync, atom_f), { { FILL_ZERO, 16, 0 }, { VALUE_FLOAT, 0, 1 } }, LINE, .tolerance = 1e-6 },
	{ .file = NULL },
};

// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs OpenCL kernels on the GPU and compares every buffer with a reference computed on the CPU.
//
// kernels [--dir FOLDER] [NAME...]
//     --dir      where the .cl files are [/opt/gpureplay/share/kernels]
//     NAME       only these kernels
// Prints one line per kernel and, last, "N passed, N failed". Exit code 0 if none failed, 1 otherwise.
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_test.h"
#include "opencl_gpu.h"

static struct gpu gpu;

/* The program of a source file; the last one is kept because cases come file by file. */
static cl_program program_of(const char *dir, const char *file)
{
	static cl_program program;
	static char current[256];
	if (program && !strcmp(current, file))
		return program;

	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, file);
	FILE *stream = fopen(path, "rb");
	if (!stream) {
		fprintf(stderr, "kernels: cannot open %s\n", path);
		exit(2);
	}
	static char text[1 << 20];
	size_t length = fread(text, 1, sizeof text - 1, stream);
	fclose(stream);
	text[length] = 0;

	program = build_program(&gpu, text, "", file);
	snprintf(current, sizeof current, "%s", file);
	return program;
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

static void fill(void *buffer, const struct argument *argument, unsigned seed)
{
	uint32_t *words = buffer;
	for (size_t i = 0; i < argument->bytes / 4; i++) {
		uint32_t random = scramble((uint32_t)i * 977 + seed * 7919 + 1);
		float unit = (random >> 8) / 16777216.0f;
		float real = 0;
		switch (argument->fill) {
		case FILL_FLOAT: real = unit * 8 - 4; memcpy(words + i, &real, 4); break;
		case FILL_POSITIVE: real = unit * 4 + 0.25f; memcpy(words + i, &real, 4); break;
		case FILL_INT: words[i] = random ? random : 1; break;
		case FILL_LONG: words[i] = random; break;
		case FILL_SMALL: words[i] = i % 13 == 5 ? 0 : (uint32_t)((int)(random % 201) - 100); break;
		case FILL_BYTES: words[i] = random; break;
		case FILL_ZERO: words[i] = 0; break;
		default: words[i] = 0x5a5a0000u + ((uint32_t)i & 0xffff); break;
		}
	}
}

/* Index of the first element that is wrong, or -1. */
static long first_difference(const struct kernel_case *test, const void *have, const void *want, size_t bytes)
{
	if (test->tolerance == 0) {
		const unsigned char *a = have, *b = want;
		for (size_t i = 0; i < bytes; i++)
			if (a[i] != b[i])
				return i / 4;
		return -1;
	}
	const float *a = have, *b = want;
	for (size_t i = 0; i < bytes / 4; i++) {
		/* Sums cancel: an error is measured against the terms' size, about 1, where the sum is small. */
		double limit = test->tolerance * fmax(fabs(b[i]), 1.0);
		if (memcmp(a + i, b + i, 4) && !(fabs((double)a[i] - b[i]) <= limit))
			return i;
	}
	return -1;
}

static int is_buffer(const struct argument *argument)
{
	return argument->fill > FILL_NONE && argument->fill <= FILL_SENTINEL;
}

static void set_argument(cl_kernel kernel, cl_uint index, const struct argument *argument, cl_mem buffer)
{
	cl_int number = argument->value;
	cl_float real = argument->value;
	cl_long wide = argument->value;
	cl_int error = 0;
	switch (argument->fill) {
	case VALUE_INT: error = clSetKernelArg(kernel, index, sizeof number, &number); break;
	case VALUE_FLOAT: error = clSetKernelArg(kernel, index, sizeof real, &real); break;
	case VALUE_LONG: error = clSetKernelArg(kernel, index, sizeof wide, &wide); break;
	case LOCAL_BYTES: error = clSetKernelArg(kernel, index, argument->bytes, NULL); break;
	default: error = clSetKernelArg(kernel, index, sizeof buffer, &buffer);
	}
	must(error, "kernel argument");
}

/* Runs one case. Returns whether all buffers are right. */
static int run(const struct kernel_case *test, const char *dir)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(program_of(dir, test->file), test->kernel, &error);
	must(error, test->kernel);
	struct launch launch = { .argument = test->argument };
	memcpy(launch.global, test->global, sizeof launch.global);
	memcpy(launch.local, test->local, sizeof launch.local);
	cl_mem buffer[MAX_ARGUMENTS] = { 0 };
	cl_uint count = 0;
	for (; count < MAX_ARGUMENTS && test->argument[count].fill != FILL_NONE; count++) {
		const struct argument *argument = test->argument + count;
		if (is_buffer(argument)) {
			launch.buffer[count] = malloc(argument->bytes);
			fill(launch.buffer[count], argument, count);
			buffer[count] = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, argument->bytes,
						       launch.buffer[count], &error);
			must(error, "buffer");
		}
		set_argument(kernel, count, argument, buffer[count]);
	}
	test->reference(&launch);
	error = clEnqueueNDRangeKernel(gpu.queue, kernel, 3, NULL, test->global, test->local, 0, NULL, NULL);
	if (!error)
		error = clFinish(gpu.queue);

	int good = !error;
	if (error)
		printf("FAIL %s: OpenCL error %d\n", test->kernel, error);
	for (cl_uint i = 0; i < count; i++) {
		if (!buffer[i])
			continue;
		size_t bytes = test->argument[i].bytes;
		uint32_t *have = malloc(bytes);
		error = clEnqueueReadBuffer(gpu.queue, buffer[i], CL_TRUE, 0, bytes, have, 0, NULL, NULL);
		must(error, "read");
		long at = first_difference(test, have, launch.buffer[i], bytes);
		if (good && at >= 0) {
			uint32_t *want = launch.buffer[i];
			float a, b;
			memcpy(&a, have + at, 4);
			memcpy(&b, want + at, 4);
			printf("FAIL %s: argument %u, word %ld: %08x (%g), expected %08x (%g)\n", test->kernel, i, at,
			       have[at], a, want[at], b);
			good = 0;
		}
		free(have);
		free(launch.buffer[i]);
		clReleaseMemObject(buffer[i]);
	}
	clReleaseKernel(kernel);
	if (good)
		printf("ok   %s\n", test->kernel);
	return good;
}

int main(int argc, char **argv)
{
	const char *dir = "/opt/gpureplay/share/kernels";
	int at = 1;
	for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
		if (!strcmp(argv[at], "--dir") && at + 1 < argc) {
			dir = argv[++at];
		} else {
			fprintf(stderr, "usage: kernels [--dir FOLDER] [NAME...]\n");
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu = open_gpu();
	unsigned passed = 0, failed = 0;
	for (const struct kernel_case *test = own_cases; test->file; test++) {
		int wanted = at == argc;
		for (int i = at; i < argc; i++)
			wanted |= !strcmp(argv[i], test->kernel);
		if (wanted)
			*(run(test, dir) ? &passed : &failed) += 1;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Two kernels of equal code, one after the other, by the names that they are given:
//   twins FIRST SECOND IN.bin OUT.bin        both files hold 256 32-bit floating-point numbers; out = (in^2 + 1)^2 + 1
#include "opencl_gpu.h"

#include <stdio.h>

enum { N = 256, BYTES = N * sizeof(float) };

static struct gpu gpu;

static cl_mem buffer(void)
{
	cl_int error;
	cl_mem made = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
	must(error, "buffer");
	return made;
}

static void launch(cl_program program, const char *name, cl_mem src, cl_mem dst)
{
	size_t items = N;
	cl_int error;
	cl_kernel kernel = clCreateKernel(program, name, &error);
	must(error, name);
	must(clSetKernelArg(kernel, 0, sizeof src, &src), "src");
	must(clSetKernelArg(kernel, 1, sizeof dst, &dst), "dst");
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), name);
}

int main(int count, char **words)
{
	const char *body = "(global const float *src, global float *dst) {\n"
			   "	int i = get_global_id(0);\n"
			   "	dst[i] = src[i] * src[i] + 1;\n"
			   "}\n";
	float values[N];
	char source[1024];
	FILE *file = count == 5 ? fopen(words[3], "rb") : NULL;
	if (!file || fread(values, sizeof *values, N, file) != N) {
		fprintf(stderr, "usage: twins FIRST SECOND IN.bin OUT.bin\n");
		return 2;
	}
	fclose(file);
	snprintf(source, sizeof source, "kernel void %s%skernel void %s%s", words[1], body, words[2], body);
	gpu = open_gpu();
	cl_program program = build_program(&gpu, source, "", "twins");
	cl_mem src = buffer(), middle = buffer(), dst = buffer();
	must(clEnqueueWriteBuffer(gpu.queue, src, CL_TRUE, 0, BYTES, values, 0, NULL, NULL), "write");
	launch(program, words[1], src, middle);
	launch(program, words[2], middle, dst);
	must(clEnqueueReadBuffer(gpu.queue, dst, CL_TRUE, 0, BYTES, values, 0, NULL, NULL), "read");
	file = fopen(words[4], "wb");
	must(!file || fwrite(values, sizeof *values, N, file) != N || fclose(file), words[4]);
	return 0;
}

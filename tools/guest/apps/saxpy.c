// SPDX-License-Identifier: MIT OR Apache-2.0
// out = a * x + y on the first OpenCL GPU: the smallest app that is worth recording. It knows nothing of a recorder.
//
// saxpy --x x.npy --y y.npy --a 2.5 --out out.npy        (x and y: float32, one dimension, equal lengths)
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

static const char source[] = "kernel void saxpy(global const float *x, global const float *y, global float *out,"
			     "                  float a)"
			     "{ size_t i = get_global_id(0); out[i] = fma(a, x[i], y[i]); }";

static void check(cl_int error, const char *what)
{
	if (error) {
		fprintf(stderr, "saxpy: %s: OpenCL error %d\n", what, error);
		exit(1);
	}
}

static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	fprintf(stderr, "saxpy: %s is missing\nusage: saxpy --x x.npy --y y.npy --a 2.5 --out out.npy\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *out = option(argc, argv, "--out");
	cl_float a = strtof(option(argc, argv, "--a"), NULL);
	size_t length = 0;
	struct npy x = npy_read_shape(option(argc, argv, "--x"), 'f', 1, &length);
	struct npy y = npy_read_shape(option(argc, argv, "--y"), 'f', 1, &length);
	size_t bytes = length * sizeof(float);

	cl_platform_id platforms[8];
	cl_uint count = 0;
	cl_device_id device = NULL;
	cl_int error;
	check(clGetPlatformIDs(8, platforms, &count), "platforms");
	for (cl_uint i = 0; i < count && i < 8 && !device; i++)
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_GPU, 1, &device, NULL))
			device = NULL;
	check(device ? 0 : CL_DEVICE_NOT_FOUND, "no OpenCL GPU");
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "context");
	cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	check(error, "queue");
	const char *text = source;
	cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
	check(error, "program");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
	cl_kernel kernel = clCreateKernel(program, "saxpy", &error);
	check(error, "kernel");

	cl_mem_flags copied = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
	cl_mem buffer_x = clCreateBuffer(context, copied, bytes, x.data, &error);
	check(error, "buffer x");
	cl_mem buffer_y = clCreateBuffer(context, copied, bytes, y.data, &error);
	check(error, "buffer y");
	cl_mem buffer_out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, NULL, &error);
	check(error, "buffer out");
	check(clSetKernelArg(kernel, 0, sizeof buffer_x, &buffer_x), "argument x");
	check(clSetKernelArg(kernel, 1, sizeof buffer_y, &buffer_y), "argument y");
	check(clSetKernelArg(kernel, 2, sizeof buffer_out, &buffer_out), "argument out");
	check(clSetKernelArg(kernel, 3, sizeof a, &a), "argument a");
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &length, NULL, 0, NULL, NULL), "launch");
	check(clEnqueueReadBuffer(queue, buffer_out, CL_TRUE, 0, bytes, x.data, 0, NULL, NULL), "read");
	npy_write(out, &x);
	return 0;
}

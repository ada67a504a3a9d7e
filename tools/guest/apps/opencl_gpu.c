// SPDX-License-Identifier: MIT OR Apache-2.0
// The first OpenCL GPU, opened for the test programs.
#define _GNU_SOURCE
#include "opencl_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void must(cl_int error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: %s: OpenCL error %d\n", program_invocation_short_name, what, error);
		exit(2);
	}
}

struct gpu open_gpu(void)
{
	struct gpu gpu = { 0 };
	cl_platform_id platforms[8];
	cl_uint count = 0;
	cl_int error = clGetPlatformIDs(8, platforms, &count);
	for (cl_uint i = 0; !error && i < count && i < 8 && !gpu.device; i++)
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_GPU, 1, &gpu.device, NULL))
			gpu.device = NULL;
	must(gpu.device ? 0 : error ? error : CL_DEVICE_NOT_FOUND, "no OpenCL GPU");
	gpu.context = clCreateContext(NULL, 1, &gpu.device, NULL, NULL, &error);
	must(error, "context");
	gpu.queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, NULL, &error);
	must(error, "queue");
	return gpu;
}

cl_program build_program(const struct gpu *gpu, const char *source, const char *options, const char *name)
{
	cl_int error;
	cl_program program = clCreateProgramWithSource(gpu->context, 1, &source, NULL, &error);
	must(error, name);
	error = clBuildProgram(program, 1, &gpu->device, options, NULL, NULL);
	if (error) {
		static char log[16384];
		clGetProgramBuildInfo(program, gpu->device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
		fprintf(stderr, "%s\n", log);
	}
	must(error, name);
	return program;
}

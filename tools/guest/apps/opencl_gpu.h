/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The first OpenCL GPU, opened for the test programs. */
#ifndef OPENCL_GPU_H
#define OPENCL_GPU_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

struct gpu {
	cl_device_id device;
	cl_context context;
	cl_command_queue queue; /* in order */
};

/* Unless error is 0: says what failed and exits with code 2. */
void must(cl_int error, const char *what);

/* Opens the first GPU of the first platform that has one. */
struct gpu open_gpu(void);

/* Builds a program; with an error in it, prints the compiler's log. name is for messages. */
cl_program build_program(const struct gpu *gpu, const char *source, const char *options, const char *name);

#endif

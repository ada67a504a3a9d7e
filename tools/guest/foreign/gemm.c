// SPDX-License-Identifier: MIT OR Apache-2.0
// A caller of CLBlast: out = a x b of 32-bit floating-point matrices in raw files.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <clblast_c.h>

#include <stdio.h>
#include <stdlib.h>

static void must(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "gemm: %s: error %d\n", what, error);
		exit(2);
	}
}

static float *read_file(const char *name, size_t elements)
{
	float *values = malloc(elements * sizeof *values);
	FILE *file = fopen(name, "rb");
	must(!values || !file || fread(values, sizeof *values, elements, file) != elements, name);
	fclose(file);
	return values;
}

int main(int count, char **words)
{
	if (count != 7) {
		fprintf(stderr, "usage: gemm M N K A.bin B.bin OUT.bin\n");
		return 2;
	}
	size_t m = strtoul(words[1], NULL, 10), n = strtoul(words[2], NULL, 10), k = strtoul(words[3], NULL, 10);
	float *a = read_file(words[4], m * k), *b = read_file(words[5], k * n), *out = calloc(m * n, sizeof *out);
	cl_platform_id platform;
	cl_device_id device;
	cl_int error;
	must(clGetPlatformIDs(1, &platform, NULL), "platform");
	must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), "device");
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	must(error, "context");
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
	must(error, "queue");
	cl_mem left = clCreateBuffer(context, CL_MEM_READ_WRITE, m * k * sizeof *a, NULL, &error);
	must(error, "a");
	cl_mem right = clCreateBuffer(context, CL_MEM_READ_WRITE, k * n * sizeof *b, NULL, &error);
	must(error, "b");
	cl_mem product = clCreateBuffer(context, CL_MEM_READ_WRITE, m * n * sizeof *out, NULL, &error);
	must(error, "out");
	must(clEnqueueWriteBuffer(queue, right, CL_TRUE, 0, k * n * sizeof *b, b, 0, NULL, NULL), "write b");
	must(clEnqueueWriteBuffer(queue, left, CL_TRUE, 0, m * k * sizeof *a, a, 0, NULL, NULL), "write a");
	cl_event event = NULL;
	must(CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, m, n, k, 1.0f, left, 0, k, right, 0, n,
			  0.0f, product, 0, n, &queue, &event),
	     "CLBlastSgemm");
	must(clWaitForEvents(1, &event), "product");
	must(clEnqueueReadBuffer(queue, product, CL_TRUE, 0, m * n * sizeof *out, out, 0, NULL, NULL), "read");
	FILE *file = fopen(words[6], "wb");
	must(!file || fwrite(out, sizeof *out, m * n, file) != m * n || fclose(file), words[6]);
	return 0;
}

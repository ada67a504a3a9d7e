// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs the kernels of kernels.cl on an OpenCL device and checks their results: the other side of `cargo xtask bench model`.
//
// opencl KERNELS.cl [small] [RUNS]
//     small    sizes for recording: what the compiler makes of the kernels does not depend on them
// Prints a line for each kernel: name, shortest time in seconds, processor time of that run, largest relative error.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void check(cl_int error, const char *what)
{
	if (error) {
		fprintf(stderr, "opencl: %s: OpenCL error %d\n", what, error);
		exit(1);
	}
}

static void open_device(const char *path)
{
	cl_platform_id platforms[8];
	cl_device_id device = NULL;
	cl_uint count = 0;
	cl_int error;
	check(clGetPlatformIDs(8, platforms, &count), "platforms");
	for (cl_uint i = 0; i < count && i < 8 && !device; i++)
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL))
			device = NULL;
	check(device ? 0 : CL_DEVICE_NOT_FOUND, "no device");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	check(error, "context");
	queue = clCreateCommandQueue(context, device, 0, &error);
	check(error, "queue");
	FILE *file = fopen(path, "rb");
	static char text[1 << 16];
	if (!file || !fread(text, 1, sizeof text - 1, file)) {
		fprintf(stderr, "opencl: cannot read %s\n", path);
		exit(2);
	}
	fclose(file);
	const char *source = text;
	program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
	check(error, "program");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
}

/* The benchmark's data: the same in mali/shader/examples/bench.rs. */
static float value(uint32_t i)
{
	return (i * 2654435761u >> 16) / 65536.0f - 0.5f;
}

static float *values(size_t count)
{
	float *data = malloc(count * sizeof *data);
	for (size_t i = 0; data && i < count; i++)
		data[i] = value(i);
	if (!data)
		exit(1);
	return data;
}

static double clock_of(clockid_t id)
{
	struct timespec time;
	clock_gettime(id, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

struct run {
	const char *name;
	size_t inputs[2], output; /* elements of the buffers */
	int numbers[4], count;
	cl_uint dimensions;
	size_t global[3], local[3];
};

/* Runs a kernel and returns its output. */
static float *execute(const struct run *run, int runs, double *seconds, double *busy)
{
	cl_int error;
	cl_kernel kernel = clCreateKernel(program, run->name, &error);
	check(error, run->name);
	cl_uint argument = 0;
	for (int i = 0; i < 2; i++) {
		if (!run->inputs[i])
			continue;
		float *data = values(run->inputs[i]);
		cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
		cl_mem buffer = clCreateBuffer(context, flags, run->inputs[i] * 4, data, &error);
		check(error, "buffer");
		free(data);
		check(clSetKernelArg(kernel, argument++, sizeof buffer, &buffer), "argument");
	}
	cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, run->output * 4, NULL, &error);
	check(error, "buffer");
	check(clSetKernelArg(kernel, argument++, sizeof out, &out), "argument");
	for (int i = 0; i < run->count; i++)
		check(clSetKernelArg(kernel, argument++, sizeof(cl_int), &run->numbers[i]), "argument");
	*seconds = INFINITY;
	for (int i = 0; i < runs; i++) {
		double start = clock_of(CLOCK_MONOTONIC), work = clock_of(CLOCK_PROCESS_CPUTIME_ID);
		check(clEnqueueNDRangeKernel(queue, kernel, run->dimensions, NULL, run->global, run->local, 0, NULL, NULL),
		      "launch");
		check(clFinish(queue), "finish");
		double time = clock_of(CLOCK_MONOTONIC) - start;
		work = clock_of(CLOCK_PROCESS_CPUTIME_ID) - work;
		if (time < *seconds) {
			*seconds = time;
			*busy = work;
		}
	}
	float *result = malloc(run->output * 4);
	check(result ? clEnqueueReadBuffer(queue, out, CL_TRUE, 0, run->output * 4, result, 0, NULL, NULL) : -6, "read");
	return result;
}

static double worst(double worst, float have, double want)
{
	double error = fabs(have - want) / fmax(fabs(want), 1.0);
	return error <= worst ? worst : error;
}

static double check_gemm(const float *out, int n)
{
	double error = 0;
	double *line = malloc(n * sizeof *line);
	for (int y = 0; line && y < n; y++) {
		memset(line, 0, n * sizeof *line);
		for (int k = 0; k < n; k++)
			for (int x = 0; x < n; x++)
				line[x] += (double)value(y * n + k) * value(k * n + x);
		for (int x = 0; x < n; x++)
			error = worst(error, out[y * n + x], line[x]);
	}
	return line ? error : INFINITY;
}

static double check_convolution(const float *out, int channels, int outputs, int width, int height)
{
	double error = 0;
	for (int o = 0; o < outputs; o += 7)
		for (int y = 0; y < height; y++)
			for (int x = 0; x < width; x++) {
				double sum = 0;
				for (int c = 0; c < channels; c++)
					for (int t = 0; t < 9; t++)
						sum += (double)value((c * (height + 2) + y + t / 3) * (width + 4) + x + t % 3) *
						       value((c * 9 + t) * outputs + o);
				error = worst(error, out[(o * height + y) * width + x], sum);
			}
	return error;
}

static double check_softmax(const float *out, int rows, int columns)
{
	double error = 0;
	for (int row = 0; row < rows; row++) {
		double sum = 0;
		for (int i = 0; i < columns; i++)
			sum += exp(value(row * columns + i));
		for (int i = 0; i < columns; i++)
			/* Values are about 1 / columns. */
			error = worst(error, out[row * columns + i] * columns, exp(value(row * columns + i)) / sum * columns);
	}
	return error;
}

static double check_add(const float *out, size_t count)
{
	double error = 0;
	for (size_t i = 0; i < count; i++)
		error = worst(error, out[i], value(i) + value(i));
	return error;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: opencl KERNELS.cl [small] [RUNS]\n");
		return 2;
	}
	int small = argc > 2 && !strcmp(argv[2], "small");
	int runs = argc > 2 + small ? atoi(argv[2 + small]) : 1;
	open_device(argv[1]);

	double seconds, busy = 0;
	size_t n = small ? 32 : 512;
	struct run gemm = {"gemm", {n * n, n * n}, n * n, {n}, 1, 2, {n / 4, n / 4}, {8, 8}};
	float *out = execute(&gemm, runs, &seconds, &busy);
	printf("gemm %.9f %.9f %.3g\n", seconds, busy, check_gemm(out, n));

	size_t channels = small ? 16 : 64, width = small ? 8 : 56;
	struct run convolution = {
		"convolution", {channels * (width + 2) * (width + 4), channels * channels * 9}, channels * width * width,
		{channels, channels, width, width}, 4, 3, {width / 4, width, channels / 4}, {2, 8, 4}};
	out = execute(&convolution, runs, &seconds, &busy);
	printf("convolution %.9f %.9f %.3g\n", seconds, busy, check_convolution(out, channels, channels, width, width));

	size_t rows = small ? 2 : 4096, columns = small ? 128 : 1024;
	struct run softmax = {"softmax", {rows * columns, 0}, rows * columns, {columns}, 1, 1, {rows * 64}, {64}};
	out = execute(&softmax, runs, &seconds, &busy);
	printf("softmax %.9f %.9f %.3g\n", seconds, busy, check_softmax(out, rows, columns));

	size_t count = small ? 1024 : 16 << 20;
	struct run add = {"add", {count, count}, count, {0}, 0, 1, {count}, {64}};
	out = execute(&add, runs, &seconds, &busy);
	printf("add %.9f %.9f %.3g\n", seconds, busy, check_add(out, count));
	return 0;
}

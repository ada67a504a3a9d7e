// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints from an OpenCL kernel, catches what the runtime writes to standard output, and compares it with the host's printf, line by line.
//
// kernel_printf
// Prints a line for each that is missing or too much and, last, "N passed, N failed". Exit code 0 if none failed, 1 otherwise.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl_gpu.h"

/* More than one work group; every third thread prints a second line. */
#define THREADS 70
#define GROUP 10
#define SECOND (THREADS / 3)
#define LINES (THREADS + SECOND)
#define LENGTH 256

static const char source[] =
	"kernel void print(global const int *whole, global const float *real)\n"
	"{\n"
	"	int i = get_global_id(0), n = whole[i];\n"
	"	float x = real[i];\n"
	"	printf(\"thread %d: %i %u %#x %c %s %ld %hhu %5.2f %e %g %%\\n\", i, n, n, n, 'a' + i % 26, \"word\",\n"
	"	       (long)n * n, (uchar)n, x, x, x * 1e6f);\n"
	"	if (i % 3 == 2)\n"
	"		printf(\"vectors %d: %v4hld %v2hlf %v8hx\\n\", i, (int4)(n, n + 1, n - 1, -n), (float2)(x, -x),\n"
	"		       (ushort8)(n, 1, 2, 3, 4, 5, 6, 7));\n"
	"}\n";

/* What the host's printf makes of the same values. */
static void expected(char lines[LINES][LENGTH], const cl_int *whole, const cl_float *real)
{
	char(*line)[LENGTH] = lines;
	for (int i = 0; i < THREADS; i++) {
		int n = whole[i];
		float x = real[i];
		snprintf(*line++, LENGTH, "thread %d: %i %u %#x %c %s %ld %hhu %5.2f %e %g %%\n", i, n, n, n, 'a' + i % 26,
			 "word", (long)n * n, (unsigned char)n, x, x, x * 1e6f);
		if (i % 3 == 2)
			snprintf(*line++, LENGTH, "vectors %d: %d,%d,%d,%d %f,%f %hx,1,2,3,4,5,6,7\n", i, n, n + 1, n - 1, -n, x, -x,
				 (unsigned short)n);
	}
}

/* Runs the kernel with standard output in a file, and returns that. */
static FILE *run(cl_int *whole, cl_float *real)
{
	struct gpu gpu = open_gpu();
	cl_int error;
	cl_kernel kernel = clCreateKernel(build_program(&gpu, source, "", "print"), "print", &error);
	must(error, "kernel");
	void *values[] = { whole, real };
	for (cl_uint i = 0; i < 2; i++) {
		cl_mem buffer = clCreateBuffer(gpu.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, THREADS * 4, values[i], &error);
		must(error, "buffer");
		must(clSetKernelArg(kernel, i, sizeof buffer, &buffer), "argument");
	}

	FILE *caught = tmpfile();
	int before = dup(STDOUT_FILENO);
	if (!caught || before < 0 || fflush(stdout) || dup2(fileno(caught), STDOUT_FILENO) < 0) {
		perror("kernel_printf");
		exit(2);
	}
	size_t global = THREADS, local = GROUP;
	error = clEnqueueNDRangeKernel(gpu.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
	if (!error)
		error = clFinish(gpu.queue);
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	must(error, "run");
	rewind(caught);
	return caught;
}

int main(void)
{
	cl_int whole[THREADS];
	cl_float real[THREADS];
	for (int i = 0; i < THREADS; i++) {
		whole[i] = (i - 20) * 257;
		real[i] = (i - 33) * 1.375f;
	}
	static char lines[LINES][LENGTH];
	expected(lines, whole, real);

	/* Threads print in any order, each line once. */
	FILE *caught = run(whole, real);
	static int seen[LINES];
	unsigned failed = 0;
	char have[LENGTH];
	while (fgets(have, sizeof have, caught)) {
		int at = 0;
		while (at < LINES && (seen[at] || strcmp(have, lines[at])))
			at++;
		if (at < LINES) {
			seen[at] = 1;
		} else {
			printf("FAIL too much: %s", have);
			failed++;
		}
	}
	unsigned passed = 0;
	for (int i = 0; i < LINES; i++) {
		passed += seen[i];
		if (!seen[i]) {
			printf("FAIL missing: %s", lines[i]);
			failed++;
		}
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}

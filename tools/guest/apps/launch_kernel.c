// SPDX-License-Identifier: MIT OR Apache-2.0
// Builds a kernel of a file and launches it once with arguments from the command line: so that it can be compiled, or recorded.
#define _GNU_SOURCE
#include "opencl_gpu.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: launch_kernel FILE.cl [--kernel NAME] [--options TEXT] [--global XxYxZ] [--local XxYxZ] [ARGUMENT...]\n"
	"arguments, in the kernel's order:\n"
	"  in:FILE            a buffer with the file's bytes; of a .npy file, its elements\n"
	"  out:BYTES:FILE     a buffer of zeros, written to the file after the launch\n"
	"  inout:FILE:FILE    a buffer with the first file's bytes, written to the second after the launch\n"
	"  local:BYTES        storage of a work group\n"
	"  i32:N f32:X        a scalar\n"
	"Without any argument the kernel gets buffers of zeros, 4096 bytes of storage, and zeros.\n";

/* Bytes of each buffer and of each local argument if none are given. */
enum { MADE_UP = 1 << 20, MADE_UP_LOCAL = 4096, MOST_ARGUMENTS = 32 };

static void fail(const char *what, const char *which)
{
	fprintf(stderr, "launch_kernel: %s: %s\n%s", what, which, usage);
	exit(2);
}

static char *read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END))
		fail("cannot be read", path);
	long size = ftell(file);
	rewind(file);
	char *data = size < 0 ? NULL : calloc(1, (size_t)size + 1);
	if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
		fail("cannot be read", path);
	fclose(file);
	/* The header of a .npy file: magic number, version, length, text. */
	size_t header = size < 10 || memcmp(data, "\x93NUMPY\1", 7) ? 0 : 10 + (unsigned char)data[8] + 256 * (unsigned char)data[9];
	if (header > (size_t)size)
		fail("is cut off", path);
	*bytes = (size_t)size - header;
	memmove(data, data + header, *bytes);
	data[*bytes] = 0;
	return data;
}

/* Sizes such as 16x8; how many there are. */
static cl_uint sizes(const char *text, size_t to[3])
{
	cl_uint count = 0;
	for (const char *at = text;; at++) {
		char *end;
		unsigned long size = strtoul(at, &end, 10);
		if (!isdigit((unsigned char)*at) || size == 0 || count == 3)
			fail("expected one to three sizes such as 16x8", text);
		to[count++] = size;
		if (*end == 0)
			return count;
		if (*end != 'x')
			fail("expected one to three sizes such as 16x8", text);
		at = end;
	}
}

/* The name of the only kernel of a program. */
static char *only_kernel(cl_program program)
{
	size_t bytes = 0;
	must(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &bytes), "kernel names");
	char *names = calloc(1, bytes + 1);
	must(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, bytes, names, NULL), "kernel names");
	if (!*names || strchr(names, ';'))
		fail("name one of the kernels with --kernel", names);
	return names;
}

struct output {
	cl_mem buffer;
	size_t bytes;
	const char *path;
};

static struct output outputs[MOST_ARGUMENTS];
static size_t output_count;

static cl_mem buffer(const struct gpu *gpu, size_t bytes, void *data)
{
	cl_int error;
	cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
	cl_mem made = clCreateBuffer(gpu->context, flags, bytes, data, &error);
	must(error, "buffer");
	return made;
}

/* Sets the argument of a number from its text, KIND:VALUE. */
static void argument(const struct gpu *gpu, cl_kernel kernel, cl_uint at, char *text)
{
	char *value = strchr(text, ':');
	if (!value)
		fail("expected KIND:VALUE", text);
	*value++ = 0;
	if (!strcmp(text, "i32")) {
		cl_int number = (cl_int)strtol(value, NULL, 0);
		must(clSetKernelArg(kernel, at, sizeof number, &number), value);
	} else if (!strcmp(text, "f32")) {
		cl_float number = strtof(value, NULL);
		must(clSetKernelArg(kernel, at, sizeof number, &number), value);
	} else if (!strcmp(text, "local")) {
		must(clSetKernelArg(kernel, at, strtoul(value, NULL, 0), NULL), value);
	} else {
		struct output *output = &outputs[output_count];
		char *data = NULL, *path = strchr(value, ':');
		if (path)
			*path++ = 0;
		if (!strcmp(text, "out") && path) {
			output->bytes = strtoul(value, NULL, 0);
			data = calloc(1, output->bytes);
		} else if (!strcmp(text, "inout") ? path != NULL : !strcmp(text, "in") && !path) {
			data = read_file(value, &output->bytes);
		}
		if (!data || !output->bytes)
			fail("no such argument, or one without bytes", text);
		output->buffer = buffer(gpu, output->bytes, data);
		output->path = path;
		must(clSetKernelArg(kernel, at, sizeof output->buffer, &output->buffer), text);
		output_count += path != NULL;
		free(data);
	}
}

/* Sets all arguments to something that the kernel takes. */
static void make_up(const struct gpu *gpu, cl_kernel kernel)
{
	static char zeros[MADE_UP];
	cl_uint count = 0;
	must(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL), "number of arguments");
	if (count > MOST_ARGUMENTS)
		fail("the kernel has too many arguments", "32 are the most");
	for (cl_uint at = 0; at < count; at++) {
		cl_kernel_arg_address_qualifier space = 0;
		must(clGetKernelArgInfo(kernel, at, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL), "argument");
		if (space == CL_KERNEL_ARG_ADDRESS_LOCAL) {
			must(clSetKernelArg(kernel, at, MADE_UP_LOCAL, NULL), "local argument");
		} else if (space == CL_KERNEL_ARG_ADDRESS_PRIVATE) {
			cl_int error = CL_INVALID_ARG_SIZE;
			for (size_t bytes = 1; error && bytes <= 256; bytes++)
				error = clSetKernelArg(kernel, at, bytes, zeros);
			must(error, "argument: no scalar or vector; give all arguments");
		} else {
			struct output *output = &outputs[output_count++];
			output->bytes = MADE_UP;
			output->buffer = buffer(gpu, MADE_UP, zeros);
			must(clSetKernelArg(kernel, at, sizeof output->buffer, &output->buffer), "argument: no buffer; give all arguments");
		}
	}
}

int main(int argc, char **argv)
{
	const char *file = NULL, *name = NULL, *options = "", *arguments[MOST_ARGUMENTS];
	size_t global[3] = { 1, 1, 1 }, local[3] = { 1, 1, 1 }, bytes;
	cl_uint dimensions = 1, grouped = 0, count = 0;
	for (int i = 1; i < argc; i++) {
		char *next = i + 1 < argc ? argv[i + 1] : NULL;
		if (strncmp(argv[i], "--", 2)) {
			if (!file)
				file = argv[i];
			else if (count < MOST_ARGUMENTS)
				arguments[count++] = argv[i];
			else
				fail("too many arguments", argv[i]);
			continue;
		}
		if (!next)
			fail("a value is missing", argv[i]);
		if (!strcmp(argv[i], "--kernel"))
			name = next;
		else if (!strcmp(argv[i], "--options"))
			options = next;
		else if (!strcmp(argv[i], "--global"))
			dimensions = sizes(next, global);
		else if (!strcmp(argv[i], "--local"))
			grouped = sizes(next, local);
		else
			fail("no such option", argv[i]);
		i++;
	}
	if (!file)
		fail("missing", "FILE.cl");

	struct gpu gpu = open_gpu();
	char *all_options = NULL;
	if (asprintf(&all_options, "-cl-kernel-arg-info %s", options) < 0)
		return 2;
	cl_program program = build_program(&gpu, read_file(file, &bytes), all_options, file);
	cl_int error;
	cl_kernel kernel = clCreateKernel(program, name ? name : only_kernel(program), &error);
	must(error, "kernel");
	for (cl_uint at = 0; at < count; at++)
		argument(&gpu, kernel, at, strdup(arguments[at]));
	if (!count)
		make_up(&gpu, kernel);
	dimensions = grouped > dimensions ? grouped : dimensions;
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, dimensions, NULL, global, grouped ? local : NULL, 0, NULL, NULL), "launch");
	must(clFinish(gpu.queue), "finish");
	for (size_t at = 0; at < output_count; at++) {
		struct output *output = &outputs[at];
		char *data = malloc(output->bytes);
		must(clEnqueueReadBuffer(gpu.queue, output->buffer, CL_TRUE, 0, output->bytes, data, 0, NULL, NULL), "read");
		FILE *to = output->path ? fopen(output->path, "wb") : NULL;
		if (output->path && (!to || fwrite(data, 1, output->bytes, to) != output->bytes || fclose(to)))
			fail("cannot be written", output->path);
		free(data);
	}
	return 0;
}

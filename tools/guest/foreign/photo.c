// SPDX-License-Identifier: MIT OR Apache-2.0
// Decodes a picture with libpng, normalises it on the CPU, and gives it to a convolution on the GPU.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <png.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 64, COLOURS = 3, FILTERS = 8, HALF = SIDE / 2, WEIGHTS = FILTERS * 9 * COLOURS };

static const char *source =
	"kernel void filter(global const float *picture, global const float *weights, global float *maps) {\n"
	"	int x = get_global_id(0), y = get_global_id(1), map = get_global_id(2), side = 2 * get_global_size(0);\n"
	"	float sum = 0;\n"
	"	for (int i = 0; i < 9; i++) {\n"
	"		int px = 2 * x + i % 3 - 1, py = 2 * y + i / 3 - 1;\n"
	"		if (px >= 0 && py >= 0 && px < side && py < side)\n"
	"			for (int c = 0; c < 3; c++)\n"
	"				sum += picture[(py * side + px) * 3 + c] * weights[(map * 9 + i) * 3 + c];\n"
	"	}\n"
	"	maps[(map * get_global_size(1) + y) * get_global_size(0) + x] = fmax(sum, 0.0f);\n"
	"}\n";

static void must(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "photo: %s: error %d\n", what, error);
		exit(2);
	}
}

int main(int count, char **words)
{
	static const float mean[COLOURS] = { 0.485f, 0.456f, 0.406f }, deviation[COLOURS] = { 0.229f, 0.224f, 0.225f };
	static unsigned char bytes[SIDE * SIDE * COLOURS];
	static float picture[SIDE * SIDE * COLOURS], weights[WEIGHTS], maps[HALF * HALF * FILTERS];
	png_image image = { .version = PNG_IMAGE_VERSION };
	must(count != 3, "usage: photo PICTURE.png OUT.bin");
	must(!png_image_begin_read_from_file(&image, words[1]), words[1]);
	image.format = PNG_FORMAT_RGB;
	must(image.width != SIDE || image.height != SIDE, "the picture's size");
	must(!png_image_finish_read(&image, NULL, bytes, 0, NULL), words[1]);
	for (int i = 0; i < SIDE * SIDE * COLOURS; i++)
		picture[i] = (bytes[i] / 255.0f - mean[i % COLOURS]) / deviation[i % COLOURS];
	for (int i = 0; i < WEIGHTS; i++)
		weights[i] = ((i * 37 + 11) % 64 - 31.5f) / 128.0f;

	cl_platform_id platform;
	cl_device_id device;
	cl_int error;
	must(clGetPlatformIDs(1, &platform, NULL), "platform");
	must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), "device");
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	must(error, "context");
	cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
	must(error, "queue");
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
	must(error, "program");
	must(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
	cl_kernel kernel = clCreateKernel(program, "filter", &error);
	must(error, "kernel");
	cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof picture, NULL, &error);
	must(error, "picture");
	cl_mem fixed = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof weights, weights, &error);
	must(error, "weights");
	cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof maps, NULL, &error);
	must(error, "maps");

	/* The picture goes through a mapping, as a decoder without a copy would do it. */
	float *mapped = clEnqueueMapBuffer(queue, in, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, sizeof picture, 0, NULL, NULL, &error);
	must(error, "map");
	for (int i = 0; i < SIDE * SIDE * COLOURS; i++)
		mapped[i] = picture[i];
	must(clEnqueueUnmapMemObject(queue, in, mapped, 0, NULL, NULL), "unmap");
	must(clSetKernelArg(kernel, 0, sizeof in, &in) | clSetKernelArg(kernel, 1, sizeof fixed, &fixed) |
		     clSetKernelArg(kernel, 2, sizeof out, &out), "arguments");
	size_t global[3] = { HALF, HALF, FILTERS };
	must(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, NULL, 0, NULL, NULL), "launch");
	must(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof maps, maps, 0, NULL, NULL), "read");
	FILE *file = fopen(words[2], "wb");
	must(!file || fwrite(maps, sizeof maps, 1, file) != 1 || fclose(file), words[2]);
	return 0;
}

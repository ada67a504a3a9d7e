// SPDX-License-Identifier: MIT OR Apache-2.0
// The app of docs/start.md: sharpens a picture and bends its tones. It knows nothing of a recorder.
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 64, PIXELS = SIDE * SIDE };

static const char *source =
	"kernel void sharpen(global const float *picture, global float *edges) {\n"
	"	int x = get_global_id(0), y = get_global_id(1), side = get_global_size(0);\n"
	"	float here = picture[y * side + x], sum = 5 * here;\n"
	"	sum -= x > 0 ? picture[y * side + x - 1] : here;\n"
	"	sum -= x + 1 < side ? picture[y * side + x + 1] : here;\n"
	"	sum -= y > 0 ? picture[(y - 1) * side + x] : here;\n"
	"	sum -= y + 1 < side ? picture[(y + 1) * side + x] : here;\n"
	"	edges[y * side + x] = sum;\n"
	"}\n"
	"kernel void bend(global const float *edges, global const float *curve, global float *tones) {\n"
	"	int i = get_global_id(0);\n"
	"	float v = edges[i];\n"
	"	tones[i] = curve[0] + v * (curve[1] + v * curve[2]);\n"
	"}\n";

int main(int count, char **files)
{
	unsigned char bytes[PIXELS];
	float picture[PIXELS], tones[PIXELS], curve[3] = {0.0625f, 0.75f, 0.1875f};
	FILE *in = count == 3 ? fopen(files[1], "rb") : NULL;
	if (!in || fscanf(in, "P5 64 64 255%*c") != 0 || fread(bytes, 1, PIXELS, in) != PIXELS) {
		fprintf(stderr, "usage: sharpen PICTURE.pgm OUT.bin (64 x 64 pixels)\n");
		return 2;
	}
	for (int i = 0; i < PIXELS; i++)
		picture[i] = (bytes[i] - 128) / 128.0f;

	cl_platform_id platform;
	cl_device_id device;
	cl_int e = clGetPlatformIDs(1, &platform, NULL);
	e |= clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
	e |= clBuildProgram(program, 1, &device, "", NULL, NULL);
	cl_mem a = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof(picture), NULL, NULL);
	cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(picture), NULL, NULL);
	cl_mem c = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof(curve), NULL, NULL);
	cl_mem d = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(tones), NULL, NULL);
	cl_kernel sharpen = clCreateKernel(program, "sharpen", NULL), bend = clCreateKernel(program, "bend", NULL);
	size_t plane[2] = {SIDE, SIDE}, line = PIXELS;
	e |= clEnqueueWriteBuffer(queue, c, CL_TRUE, 0, sizeof(curve), curve, 0, NULL, NULL);
	e |= clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, sizeof(picture), picture, 0, NULL, NULL);
	e |= clSetKernelArg(sharpen, 0, sizeof(a), &a) | clSetKernelArg(sharpen, 1, sizeof(b), &b);
	e |= clEnqueueNDRangeKernel(queue, sharpen, 2, NULL, plane, NULL, 0, NULL, NULL);
	e |= clSetKernelArg(bend, 0, sizeof(b), &b) | clSetKernelArg(bend, 1, sizeof(c), &c);
	e |= clSetKernelArg(bend, 2, sizeof(d), &d);
	e |= clEnqueueNDRangeKernel(queue, bend, 1, NULL, &line, NULL, 0, NULL, NULL);
	e |= clEnqueueReadBuffer(queue, d, CL_TRUE, 0, sizeof(tones), tones, 0, NULL, NULL);
	FILE *out = fopen(files[2], "wb");
	return e || !out || fwrite(tones, sizeof(tones), 1, out) != 1 || fclose(out);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads OpenCL images through every kind of sampler, inside and far outside, and compares with the standard's formulas (OpenCL C 3.0,
// "Image Addressing and Filtering").
//
// image_samplers
// Prints one line per sampler and shape and, last, "N passed, N failed". Exit code 0 if none failed, 1 otherwise.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_gpu.h"

#define PLACES 256
/* Filters blend with weights of eight bits: per axis, half a step of a weight between texels that differ by 2. */
#define STEP (2.0 / 256)

struct shape {
	const char *name, *image, *coordinates;
	cl_mem_object_type type;
	int axes;
	int size[3];
};

static const struct shape shapes[] = {
	{ "1d", "image1d_t", "p.x", CL_MEM_OBJECT_IMAGE1D, 1, { 13, 1, 1 } },
	{ "2d", "image2d_t", "p.xy", CL_MEM_OBJECT_IMAGE2D, 2, { 9, 6, 1 } },
	{ "3d", "image3d_t", "p", CL_MEM_OBJECT_IMAGE3D, 3, { 7, 5, 4 } },
};

struct mode {
	const char *name;
	cl_addressing_mode mode;
	int only_normalized;
};

static const struct mode modes[] = {
	{ "none", CL_ADDRESS_NONE, 0 },
	{ "clamp to edge", CL_ADDRESS_CLAMP_TO_EDGE, 0 },
	{ "clamp", CL_ADDRESS_CLAMP, 0 },
	{ "repeat", CL_ADDRESS_REPEAT, 1 },
	{ "mirrored repeat", CL_ADDRESS_MIRRORED_REPEAT, 1 },
};

static struct gpu gpu;

/* A number in [0, 1) of a sequence without short periods. */
static double some(uint32_t n)
{
	n = (n ^ 61) ^ (n >> 16);
	n *= 9;
	n ^= n >> 4;
	n *= 0x27d4eb2d;
	n ^= n >> 15;
	return (n >> 8) / 16777216.0;
}

/* The two texels of an axis that a filter blends, -1 for the border, and the weight of the second. */
struct axis {
	int texel[2];
	double weight;
};

static int limited(int i, int size, cl_addressing_mode mode)
{
	if (mode == CL_ADDRESS_CLAMP)
		return i < 0 || i >= size ? -1 : i;
	return i < 0 ? 0 : i >= size ? size - 1 : i;
}

static struct axis along(double place, int size, cl_addressing_mode mode, int normalized, int linear)
{
	double u = normalized ? place * size : place;
	if (mode == CL_ADDRESS_REPEAT)
		u = (place - floor(place)) * size;
	else if (mode == CL_ADDRESS_MIRRORED_REPEAT)
		u = fabs(place - 2 * rint(0.5 * place)) * size;
	double first = floor(linear ? u - 0.5 : u);
	struct axis axis = { .weight = linear ? u - 0.5 - first : 0 };
	for (int i = 0; i < 2; i++)
		axis.texel[i] = mode == CL_ADDRESS_REPEAT ? ((int)first + i + size) % size : limited((int)first + i, size, mode);
	return axis;
}

/* What a sampler must give at a place. */
static void expected(double out[4], const float (*texels)[4], const struct shape *shape, const float *place,
		     const struct mode *mode, int normalized, int linear)
{
	struct axis axis[3] = { 0 };
	for (int a = 0; a < shape->axes; a++)
		axis[a] = along(place[a], shape->size[a], mode->mode, normalized, linear);
	memset(out, 0, 4 * sizeof *out);
	for (int corner = 0; corner < 8; corner++) {
		double weight = 1;
		int at = 0, border = 0;
		for (int a = 2; a >= 0; a--) {
			int second = corner >> a & 1, texel = axis[a].texel[second];
			weight *= second ? axis[a].weight : 1 - axis[a].weight;
			border |= texel < 0;
			at = at * shape->size[a] + texel;
		}
		for (int c = 0; c < 4 && weight > 0 && !border; c++)
			out[c] += weight * texels[at][c];
	}
}

static int check(const struct shape *shape, cl_kernel kernel, const float (*texels)[4], const struct mode *mode,
		 int normalized, int linear)
{
	static float places[PLACES][4], have[PLACES][4];
	for (int i = 0; i < PLACES; i++)
		for (int a = 0; a < shape->axes; a++) {
			/* Inside, up to two sizes outside unless that is undefined, and away from where rounding decides. */
			uint32_t seed = (i * 3 + a) * 2;
			double turns = mode->mode == CL_ADDRESS_NONE ? some(seed) : some(seed) * 5 - 2;
			double texel = floor(turns * shape->size[a]) + 0.1 + 0.8 * some(seed + 1);
			if (mode->mode == CL_ADDRESS_NONE && linear)
				texel = fmin(fmax(texel, 0.6), shape->size[a] - 0.6);
			places[i][a] = normalized ? texel / shape->size[a] : texel;
		}
	cl_int error;
	cl_sampler_properties properties[] = { CL_SAMPLER_NORMALIZED_COORDS, normalized, CL_SAMPLER_ADDRESSING_MODE, mode->mode,
					       CL_SAMPLER_FILTER_MODE, linear ? CL_FILTER_LINEAR : CL_FILTER_NEAREST, 0 };
	cl_sampler sampler = clCreateSamplerWithProperties(gpu.context, properties, &error);
	must(error, "sampler");
	cl_mem in = clCreateBuffer(gpu.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof places, places, &error);
	must(error, "places");
	cl_mem out = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, sizeof have, NULL, &error);
	must(error, "results");
	must(clSetKernelArg(kernel, 1, sizeof sampler, &sampler), "sampler argument");
	must(clSetKernelArg(kernel, 2, sizeof in, &in), "argument");
	must(clSetKernelArg(kernel, 3, sizeof out, &out), "argument");
	size_t global = PLACES;
	must(clEnqueueNDRangeKernel(gpu.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL), "run");
	must(clEnqueueReadBuffer(gpu.queue, out, CL_TRUE, 0, sizeof have, have, 0, NULL, NULL), "read");
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	clReleaseSampler(sampler);

	char name[96];
	snprintf(name, sizeof name, "%s %s, %s, %s", shape->name, mode->name, linear ? "linear" : "nearest",
		 normalized ? "normalized" : "texels");
	for (int i = 0; i < PLACES; i++) {
		double want[4];
		expected(want, texels, shape, places[i], mode, normalized, linear);
		for (int c = 0; c < 4; c++)
			if (!(fabs(have[i][c] - want[c]) <= (linear ? shape->axes * STEP : 0))) {
				printf("FAIL %s: (%g, %g, %g) component %d: %.9g, expected %.9g\n", name, places[i][0], places[i][1],
				       places[i][2], c, have[i][c], want[c]);
				return 0;
			}
	}
	printf("ok   %s\n", name);
	return 1;
}

static cl_mem image_of(const struct shape *shape, float (*texels)[4])
{
	size_t origin[3] = { 0 }, region[3];
	int count = 1;
	for (int a = 0; a < 3; a++) {
		region[a] = shape->size[a];
		count *= shape->size[a];
	}
	for (int i = 0; i < count; i++)
		for (int c = 0; c < 4; c++)
			texels[i][c] = some(77 * i + c) * 2 - 1;
	cl_image_format format = { CL_RGBA, CL_FLOAT };
	cl_image_desc desc = { .image_type = shape->type, .image_width = region[0] };
	desc.image_height = shape->axes > 1 ? region[1] : 0;
	desc.image_depth = shape->axes > 2 ? region[2] : 0;
	cl_int error;
	cl_mem image = clCreateImage(gpu.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error);
	must(error, "clCreateImage");
	must(clEnqueueWriteImage(gpu.queue, image, CL_TRUE, origin, region, 0, 0, texels, 0, NULL, NULL), "clEnqueueWriteImage");
	return image;
}

int main(void)
{
	gpu = open_gpu();
	unsigned passed = 0, failed = 0;
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		const struct shape *shape = shapes + s;
		char text[512];
		snprintf(text, sizeof text,
			 "kernel void look(read_only %s image, sampler_t s, global const float4 *places, global float4 *out) {\n"
			 "  size_t i = get_global_id(0); float4 p = places[i]; out[i] = read_imagef(image, s, %s); }\n",
			 shape->image, shape->coordinates);
		cl_int error;
		cl_kernel kernel = clCreateKernel(build_program(&gpu, text, "-cl-std=CL3.0", shape->name), "look", &error);
		must(error, "kernel");
		static float texels[256][4];
		cl_mem image = image_of(shape, texels);
		must(clSetKernelArg(kernel, 0, sizeof image, &image), "image argument");
		for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
			for (int normalized = modes[m].only_normalized; normalized < 2; normalized++)
				for (int linear = 0; linear < 2; linear++)
					*(check(shape, kernel, texels, modes + m, normalized, linear) ? &passed : &failed) += 1;
		clReleaseMemObject(image);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}

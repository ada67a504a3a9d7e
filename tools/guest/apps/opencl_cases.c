// SPDX-License-Identifier: MIT OR Apache-2.0
// What apps do with OpenCL that makes recording hard, one case in a run:
//   opencl_cases CASE IN.bin OUT.bin        both files hold 256 32-bit floating-point numbers
// Exit code 3: the runtime does not have what the case needs.
#define _GNU_SOURCE
#include "opencl_case.h"

#include <pthread.h>
#include <stdlib.h>

enum { ABSENT = 3 };

static const char *source =
	SCALE
	"kernel void add(global const float *term, global float *sum) { int i = get_global_id(0); sum[i] += term[i]; }\n"
	"kernel void power(global const float *base, int times, global float *dst) {\n"
	"	int i = get_global_id(0);\n"
	"	float value = 1;\n"
	"	for (int n = 0; n < times; n++) value *= base[i];\n"
	"	dst[i] = value;\n"
	"}\n"
	"kernel void texels(read_only image2d_t image, global float *dst) {\n"
	"	const sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
	"	int i = get_global_id(0);\n"
	"	dst[i] = 2 * read_imagef(image, nearest, (int2)(i % 16, i / 16)).x;\n"
	"}\n"
	"kernel void paint(global const float *src, write_only image2d_t image) {\n"
	"	int i = get_global_id(0);\n"
	"	write_imagef(image, (int2)(i % 16, i / 16), (float4)(src[i] + 1));\n"
	"}\n"
	"kernel void sampled(read_only image2d_t image, sampler_t sampler, global float *dst) {\n"
	"	int i = get_global_id(0);\n"
	"	dst[i] = 2 * read_imagef(image, sampler, (int2)(i % 16, i / 16)).x;\n"
	"}\n"
	"kernel void speak(global const float *src, global float *dst) {\n"
	"	int i = get_global_id(0);\n"
	"	dst[i] = src[i] + 1;\n"
	"	if (i == 0) printf(\"first %f\\n\", src[i]);\n"
	"}\n";

/* The input is read back, before it is used and afterwards. */
static void read_back(void)
{
	float copy[N];
	cl_mem src = buffer(CL_MEM_READ_WRITE, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	read_from(src, copy);
	scaled(src, dst);
	read_from(src, copy);
	must(memcmp(copy, in, BYTES), "the input changed");
	read_from(dst, out);
}

/* One buffer is written twice, with a launch in between that has used the first content. */
static void written_twice(void)
{
	float other[N];
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	scaled(src, dst);
	for (int i = 0; i < N; i++)
		other[i] = in[N - 1 - i];
	write_to(src, other);
	cl_kernel add = kernel("add");
	argument(add, 0, src);
	argument(add, 1, dst);
	launch(gpu.queue, add, N, 0, NULL, NULL);
	read_from(dst, out);
}

/* How often a kernel multiplies depends on the input. */
static void by_number(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	cl_int times = 1 + abs((int)(in[0] * 64)) % 7;
	write_to(src, in);
	cl_kernel power = kernel("power");
	argument(power, 0, src);
	must(clSetKernelArg(power, 1, sizeof times, &times), "times");
	argument(power, 2, dst);
	launch(gpu.queue, power, N, 0, NULL, NULL);
	read_from(dst, out);
}

/* How many items a launch has depends on the input. */
static void by_size(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	write_to(dst, in);
	cl_kernel add = kernel("add");
	argument(add, 0, src);
	argument(add, 1, dst);
	launch(gpu.queue, add, 32 + 32 * (abs((int)(in[0] * 64)) % 7), 0, NULL, NULL);
	read_from(dst, out);
}

/* Which kernel runs depends on the input. */
static void by_kernel(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	write_to(dst, in);
	cl_kernel chosen = kernel(abs((int)(in[0] * 64)) % 2 ? "add" : "speak");
	argument(chosen, 0, src);
	argument(chosen, 1, dst);
	launch(gpu.queue, chosen, N, 0, NULL, NULL);
	read_from(dst, out);
}

static const size_t origin[3] = { 0 }, region[3] = { 16, 16, 1 };

static cl_mem new_image(void)
{
	cl_image_format format = { CL_R, CL_FLOAT };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16 };
	cl_int error;
	cl_mem made = clCreateImage(gpu.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error);
	must(error, "image");
	return made;
}

/* The texels of an image, doubled. */
static void doubled(cl_mem picture)
{
	cl_mem dst = buffer(CL_MEM_READ_WRITE, NULL);
	cl_kernel texels = kernel("texels");
	argument(texels, 0, picture);
	argument(texels, 1, dst);
	launch(gpu.queue, texels, N, 0, NULL, NULL);
	read_from(dst, out);
}

static void image(void)
{
	cl_mem picture = new_image();
	must(clEnqueueWriteImage(gpu.queue, picture, CL_TRUE, origin, region, 0, 0, in, 0, NULL, NULL), "write image");
	doubled(picture);
}

/* The input and one more into an image. */
static cl_mem painted(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), picture = new_image();
	write_to(src, in);
	cl_kernel paint = kernel("paint");
	argument(paint, 0, src);
	argument(paint, 1, picture);
	launch(gpu.queue, paint, N, 0, NULL, NULL);
	return picture;
}

/* A kernel reads an image that a kernel wrote, with a sampler that is an argument. */
static void sampler(void)
{
	cl_sampler_properties list[] = { CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, CL_SAMPLER_ADDRESSING_MODE,
		CL_ADDRESS_CLAMP_TO_EDGE, CL_SAMPLER_FILTER_MODE, CL_FILTER_NEAREST, 0 };
	cl_int error;
	cl_sampler nearest = clCreateSamplerWithProperties(gpu.context, list, &error);
	must(error, "sampler");
	cl_mem picture = painted(), dst = buffer(CL_MEM_READ_WRITE, NULL);
	cl_kernel sampled = kernel("sampled");
	argument(sampled, 0, picture);
	must(clSetKernelArg(sampled, 1, sizeof nearest, &nearest), "sampler");
	argument(sampled, 2, dst);
	launch(gpu.queue, sampled, N, 0, NULL, NULL);
	read_from(dst, out);
}

/* The output is an image. */
static void image_read(void)
{
	cl_mem picture = painted();
	must(clEnqueueReadImage(gpu.queue, picture, CL_TRUE, origin, region, 0, 0, out, 0, NULL, NULL), "read image");
}

/* An image that a kernel wrote is copied to another one, which a kernel reads. */
static void copied_image(void)
{
	cl_mem picture = painted(), other = new_image();
	must(clEnqueueCopyImage(gpu.queue, picture, other, origin, origin, region, 0, NULL, NULL), "copy image");
	doubled(other);
}

/* The same by a buffer. */
static void copied_both_ways(void)
{
	cl_mem picture = painted(), other = new_image(), between = buffer(CL_MEM_READ_WRITE, NULL);
	must(clEnqueueCopyImageToBuffer(gpu.queue, picture, between, origin, region, 0, 0, NULL, NULL), "to the buffer");
	must(clEnqueueCopyBufferToImage(gpu.queue, between, other, 0, origin, region, 0, NULL, NULL), "to the image");
	doubled(other);
}

static void copy(cl_mem from, cl_mem to)
{
	must(clEnqueueCopyBuffer(gpu.queue, from, to, 0, 0, BYTES, 0, NULL, NULL), "copy");
}

/* What a kernel computed is copied to another object, which the next kernel reads. */
static void copied(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), middle = buffer(CL_MEM_READ_WRITE, NULL);
	cl_mem other = buffer(CL_MEM_READ_WRITE, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	scaled(src, middle);
	copy(middle, other);
	scaled(other, dst);
	read_from(dst, out);
}

/* The same, row by row with gaps. */
static void copied_rectangle(void)
{
	cl_int error;
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), middle = buffer(CL_MEM_READ_WRITE, NULL);
	cl_mem other = buffer(CL_MEM_READ_WRITE, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	cl_mem wide = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, 2 * BYTES, NULL, &error);
	must(error, "wide buffer");
	size_t rows[3] = { 64, 16, 1 };
	write_to(src, in);
	scaled(src, middle);
	must(clEnqueueCopyBufferRect(gpu.queue, middle, wide, origin, origin, rows, 64, 0, 128, 0, 0, NULL, NULL), "spread");
	must(clEnqueueCopyBufferRect(gpu.queue, wide, other, origin, origin, rows, 128, 0, 64, 0, 0, NULL, NULL), "gather");
	scaled(other, dst);
	read_from(dst, out);
}

/* The input comes to its kernel by a copy. */
static void copied_input(void)
{
	cl_mem first = buffer(CL_MEM_READ_ONLY, NULL), src = buffer(CL_MEM_READ_ONLY, NULL);
	cl_mem dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(first, in);
	copy(first, src);
	/* The first object is used for something else before any kernel runs. */
	write_to(first, factors);
	scaled(src, dst);
	read_from(dst, out);
}

/* Kernels read both the input and a copy of it. */
static void copied_too(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), other = buffer(CL_MEM_READ_ONLY, NULL);
	cl_mem dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	copy(src, other);
	scaled(src, dst);
	cl_kernel add = kernel("add");
	argument(add, 0, other);
	argument(add, 1, dst);
	launch(gpu.queue, add, N, 0, NULL, NULL);
	read_from(dst, out);
}

/* The app reads a copy of the result. */
static void copied_result(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	cl_mem other = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	scaled(src, dst);
	copy(dst, other);
	read_from(other, out);
}

/* A part of the result is filled before the app reads all of it. */
static void filled_result(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	float nothing = 0;
	write_to(src, in);
	scaled(src, dst);
	must(clEnqueueFillBuffer(gpu.queue, dst, &nothing, sizeof nothing, 0, BYTES / 2, 0, NULL, NULL), "fill");
	read_from(dst, out);
}

static void shared_memory(void)
{
	cl_device_svm_capabilities has = 0;
	if (clGetDeviceInfo(gpu.device, CL_DEVICE_SVM_CAPABILITIES, sizeof has, &has, NULL) || !has)
		exit(ABSENT);
	float *src = clSVMAlloc(gpu.context, CL_MEM_READ_WRITE, BYTES, 0);
	float *dst = clSVMAlloc(gpu.context, CL_MEM_READ_WRITE, BYTES, 0);
	if (!src || !dst)
		exit(ABSENT);
	must(clEnqueueSVMMemcpy(gpu.queue, CL_TRUE, src, in, BYTES, 0, NULL, NULL), "copy in");
	cl_kernel scale = kernel("scale");
	must(clSetKernelArgSVMPointer(scale, 0, src), "argument");
	argument(scale, 1, fixed());
	must(clSetKernelArgSVMPointer(scale, 2, dst), "argument");
	launch(gpu.queue, scale, N, 0, NULL, NULL);
	must(clEnqueueSVMMemcpy(gpu.queue, CL_TRUE, out, dst, BYTES, 0, NULL, NULL), "copy out");
}

static void user_pointers(void)
{
	static float from[N] __attribute__((aligned(4096))), to[N] __attribute__((aligned(4096)));
	memcpy(from, in, BYTES);
	cl_mem src = buffer(CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, from);
	cl_mem dst = buffer(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, to);
	scaled(src, dst);
	cl_int error;
	float *mapped = clEnqueueMapBuffer(gpu.queue, dst, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error);
	must(error, "map");
	memcpy(out, mapped, BYTES);
	must(clEnqueueUnmapMemObject(gpu.queue, dst, mapped, 0, NULL, NULL), "unmap");
}

static void sub_buffers(void)
{
	cl_int error;
	cl_mem whole = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, 2 * 4096, NULL, &error);
	must(error, "buffer");
	cl_buffer_region first = { 0, BYTES }, second = { 4096, BYTES };
	cl_mem src = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &first, &error);
	must(error, "first part");
	cl_mem dst = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &second, &error);
	must(error, "second part");
	write_to(src, in);
	scaled(src, dst);
	read_from(dst, out);
}

static void print(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	cl_kernel speak = kernel("speak");
	argument(speak, 0, src);
	argument(speak, 1, dst);
	launch(gpu.queue, speak, N, 0, NULL, NULL);
	read_from(dst, out);
}

static void out_of_order(void)
{
	cl_int error;
	cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 };
	cl_command_queue queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, list, &error);
	if (error)
		exit(ABSENT);
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), middle = buffer(CL_MEM_READ_WRITE, NULL);
	cl_event written, made, added;
	must(clEnqueueWriteBuffer(queue, src, CL_FALSE, 0, BYTES, in, 0, NULL, &written), "write");
	cl_kernel scale = kernel("scale"), add = kernel("add");
	argument(scale, 0, src);
	argument(scale, 1, fixed());
	argument(scale, 2, middle);
	launch(queue, scale, N, 1, &written, &made);
	argument(add, 0, src);
	argument(add, 1, middle);
	launch(queue, add, N, 1, &made, &added);
	must(clEnqueueReadBuffer(queue, middle, CL_TRUE, 0, BYTES, out, 1, &added, NULL), "read");
}

static void two_queues(void)
{
	cl_int error;
	cl_command_queue other = clCreateCommandQueueWithProperties(gpu.context, gpu.device, NULL, &error);
	must(error, "second queue");
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), middle = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, in);
	cl_event made;
	cl_kernel scale = kernel("scale"), add = kernel("add");
	argument(scale, 0, src);
	argument(scale, 1, fixed());
	argument(scale, 2, middle);
	launch(gpu.queue, scale, N, 0, NULL, &made);
	must(clFlush(gpu.queue), "flush");
	argument(add, 0, src);
	argument(add, 1, middle);
	launch(other, add, N, 1, &made, NULL);
	must(clEnqueueReadBuffer(other, middle, CL_TRUE, 0, BYTES, out, 0, NULL, NULL), "read");
}

/* The second context computes on with what the first one gave to the host. */
static void two_contexts(void)
{
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	float middle[N];
	write_to(src, in);
	scaled(src, dst);
	read_from(dst, middle);
	gpu = open_gpu();
	program = build_program(&gpu, source, "", "the cases");
	src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	write_to(src, middle);
	scaled(src, dst);
	read_from(dst, out);
}

static void *half(void *place)
{
	float *values = place;
	cl_int error;
	cl_command_queue queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, NULL, &error);
	must(error, "queue of a thread");
	cl_mem src = buffer(CL_MEM_READ_ONLY, NULL), dst = buffer(CL_MEM_READ_WRITE, NULL);
	must(clEnqueueWriteBuffer(queue, src, CL_TRUE, 0, BYTES, in, 0, NULL, NULL), "write");
	cl_kernel power = kernel("power");
	cl_int times = values == out ? 2 : 3;
	argument(power, 0, src);
	must(clSetKernelArg(power, 1, sizeof times, &times), "times");
	argument(power, 2, dst);
	launch(queue, power, N, 0, NULL, NULL);
	must(clEnqueueReadBuffer(queue, dst, CL_TRUE, 0, BYTES, values, 0, NULL, NULL), "read");
	return NULL;
}

static void two_threads(void)
{
	static float cubes[N];
	pthread_t other;
	must(pthread_create(&other, NULL, half, cubes), "thread");
	half(out);
	must(pthread_join(other, NULL), "join");
	for (int i = 0; i < N; i++)
		out[i] += cubes[i];
}

static const struct opencl_case cases[] = {
	{ "read-back", read_back }, { "written-twice", written_twice }, { "by-number", by_number },
	{ "by-size", by_size }, { "by-kernel", by_kernel }, { "image", image },
	{ "shared-memory", shared_memory }, { "user-pointers", user_pointers }, { "sub-buffers", sub_buffers },
	{ "print", print }, { "out-of-order", out_of_order }, { "two-queues", two_queues },
	{ "two-contexts", two_contexts }, { "two-threads", two_threads }, { "sampler", sampler },
	{ "image-read", image_read }, { "copied-image", copied_image }, { "copied-both-ways", copied_both_ways },
	{ "copied", copied }, { "copied-rectangle", copied_rectangle }, { "copied-input", copied_input },
	{ "copied-too", copied_too }, { "copied-result", copied_result }, { "filled-result", filled_result },
	{ NULL, NULL },
};

int main(int count, char **words)
{
	return run_case(count, words, source, cases, NULL);
}

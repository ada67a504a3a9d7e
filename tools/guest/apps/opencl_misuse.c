// SPDX-License-Identifier: MIT OR Apache-2.0
// What no app should do with OpenCL, one case in a run, and ordinary work beside it:
//   opencl_misuse CASE IN.bin OUT.bin        both files hold 256 32-bit floating-point numbers
// What each wrong call answers is printed, so that two runs can be compared.
#define _GNU_SOURCE
#include "opencl_case.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LONG = 100000 };

static cl_mem src, dst;

#define SAY(call) printf("> %s %d\n", #call, (int)(call))

/* No handle where one must be. */
static void no_handles(void)
{
	static char place[64];
	size_t one = 1, three[3] = { 1, 1, 1 };
	cl_int error = 77;
	cl_event event = NULL;
	cl_kernel scale = kernel("scale");
	SAY(clSetKernelArg(NULL, 0, sizeof src, &src));
	SAY(clEnqueueNDRangeKernel(NULL, scale, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(gpu.queue, NULL, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(gpu.queue, scale, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer(gpu.queue, NULL, CL_TRUE, 0, 4, place, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer(gpu.queue, src, CL_TRUE, 0, 4, NULL, 0, NULL, NULL));
	SAY(clEnqueueWriteBuffer(gpu.queue, src, CL_FALSE, 0, 4, NULL, 0, NULL, NULL));
	SAY(clEnqueueWriteBuffer(NULL, src, CL_FALSE, 0, 4, place, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer(gpu.queue, src, CL_FALSE, 0, 4, place, 1, NULL, NULL));
	SAY(clEnqueueReadBuffer(gpu.queue, src, CL_FALSE, 0, 4, place, 0, &event, NULL));
	SAY(clEnqueueReadBuffer(gpu.queue, src, CL_FALSE, 0, 4, place, 1, &event, NULL));
	SAY(clEnqueueCopyBuffer(gpu.queue, src, NULL, 0, 0, 4, 0, NULL, NULL));
	SAY(clEnqueueFillBuffer(gpu.queue, NULL, place, 4, 0, 4, 0, NULL, NULL));
	SAY(clEnqueueFillBuffer(gpu.queue, src, NULL, 4, 0, 4, 0, NULL, NULL));
	SAY(clEnqueueReadBufferRect(gpu.queue, src, CL_TRUE, NULL, three, three, 0, 0, 0, 0, place, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(gpu.queue, src, dst, three, three, NULL, 0, 0, 0, 0, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, NULL, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, NULL, place, 0, NULL, NULL));
	SAY(!clEnqueueMapBuffer(gpu.queue, NULL, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &error));
	SAY(error);
	SAY(!clCreateKernel(NULL, "scale", &error));
	SAY(error);
	SAY(!clCreateKernel(program, NULL, &error));
	SAY(error);
	SAY(!clCreateKernel(program, "none", NULL));
	SAY(!clCreateBuffer(NULL, 0, 4, NULL, &error));
	SAY(error);
	SAY(!clCreateBuffer(gpu.context, CL_MEM_COPY_HOST_PTR, 4, NULL, NULL));
	SAY(!clCreateSubBuffer(src, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &error));
	SAY(error);
	SAY(!clCreateCommandQueueWithProperties(NULL, gpu.device, NULL, &error));
	SAY(error);
	SAY(!clCreateSamplerWithProperties(NULL, NULL, &error));
	SAY(error);
	SAY(clWaitForEvents(0, NULL));
	SAY(clWaitForEvents(1, &event));
	SAY(clSetEventCallback(NULL, CL_COMPLETE, NULL, NULL));
	SAY(clGetEventInfo(NULL, CL_EVENT_COMMAND_EXECUTION_STATUS, 4, place, NULL));
	SAY(clReleaseKernel(NULL));
	SAY(clReleaseMemObject(NULL));
	SAY(clReleaseEvent(NULL));
	SAY(clFinish(NULL));
}

/* Numbers that no object has room for. */
static void sizes(void)
{
	static char place[BYTES];
	static const size_t far[] = { BYTES, BYTES + 1, (size_t)1 << 32, SIZE_MAX / 2 };
	size_t three[3] = { 4, 1, 1 }, zero[3] = { 0 }, most[3] = { SIZE_MAX, SIZE_MAX, SIZE_MAX }, one = 1, odd = 7;
	cl_int error;
	cl_kernel scale = kernel("scale");
	for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
		cl_buffer_region region = { far[i], far[i] };
		size_t origin[3] = { far[i], far[i], far[i] };
		SAY(clEnqueueReadBuffer(gpu.queue, src, CL_TRUE, far[i], 4, place, 0, NULL, NULL));
		SAY(clEnqueueReadBuffer(gpu.queue, src, CL_FALSE, 4, far[i], place, 0, NULL, NULL));
		SAY(clEnqueueWriteBuffer(gpu.queue, src, CL_FALSE, far[i], far[i], place, 0, NULL, NULL));
		SAY(clEnqueueCopyBuffer(gpu.queue, src, dst, far[i], 4, 4, 0, NULL, NULL));
		SAY(clEnqueueCopyBuffer(gpu.queue, src, dst, 0, 4, far[i], 0, NULL, NULL));
		SAY(clEnqueueFillBuffer(gpu.queue, src, place, 4, far[i], 4, 0, NULL, NULL));
		SAY(clEnqueueFillBuffer(gpu.queue, src, place, far[i], 0, BYTES, 0, NULL, NULL));
		SAY(!clEnqueueMapBuffer(gpu.queue, src, CL_TRUE, CL_MAP_WRITE, far[i], 4, 0, NULL, NULL, &error));
		SAY(!clEnqueueMapBuffer(gpu.queue, src, CL_TRUE, CL_MAP_WRITE, 4, far[i], 0, NULL, NULL, NULL));
		SAY(!clCreateSubBuffer(src, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
		SAY(error);
		SAY(clEnqueueReadBufferRect(gpu.queue, src, CL_TRUE, origin, zero, three, 0, 0, 0, 0, place, 0, NULL, NULL));
		SAY(clSetKernelArg(scale, (cl_uint)far[i], sizeof src, &src));
		SAY(clSetKernelArg(scale, 0, far[i], place));
	}
	SAY(clEnqueueWriteBufferRect(gpu.queue, src, CL_TRUE, zero, zero, most, 0, 0, 0, 0, place, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(gpu.queue, src, dst, zero, zero, zero, 0, 0, 0, 0, 0, NULL, NULL));
	SAY(clEnqueueCopyBufferRect(gpu.queue, src, dst, zero, zero, three, 3, 1, SIZE_MAX, 2, 0, NULL, NULL));
	SAY(clEnqueueCopyBuffer(gpu.queue, src, src, 0, 4, 8, 0, NULL, NULL));
	for (cl_uint index = 0; index < 3; index++)
		argument(scale, index, index == 2 ? dst : src);
	SAY(clEnqueueNDRangeKernel(gpu.queue, scale, 0, NULL, most, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(gpu.queue, scale, 4, NULL, most, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(gpu.queue, scale, UINT32_MAX, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(gpu.queue, scale, 1, NULL, &odd, &most[0], 0, NULL, NULL));
	SAY(!clCreateBuffer(gpu.context, 0, 0, NULL, &error));
	SAY(error);
	SAY(!clCreateBuffer(gpu.context, 0, SIZE_MAX, NULL, &error));
	SAY(error);
	SAY(!clCreateBuffer(gpu.context, UINT64_MAX, 4, place, &error));
	SAY(error);
	SAY(!clCreateBuffer(gpu.context, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 4, place, &error));
	SAY(error);
	SAY(!clCreateBuffer(gpu.context, CL_MEM_COPY_HOST_PTR, SIZE_MAX, place, &error));
	SAY(error);
}

/* A size that wraps behind the offset: the runtime takes the command, and all that comes after it fails. */
static void wraps(void)
{
	static char place[64];
	SAY(clEnqueueWriteBuffer(gpu.queue, src, CL_FALSE, 4, SIZE_MAX - 3, place, 0, NULL, NULL));
}

/* Handles of other kinds. */
static void other_kinds(void)
{
	static char place[64];
	size_t one = 1;
	void *scale = kernel("scale");
	SAY(clSetKernelArg((cl_kernel)src, 0, sizeof src, &src));
	SAY(clSetKernelArg(scale, 0, sizeof scale, &scale));
	SAY(clSetKernelArg(scale, 0, sizeof gpu.queue, &gpu.queue));
	SAY(clEnqueueNDRangeKernel(gpu.queue, (cl_kernel)src, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel((cl_command_queue)gpu.context, scale, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer(gpu.queue, (cl_mem)gpu.queue, CL_TRUE, 0, 4, place, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer((cl_command_queue)src, src, CL_FALSE, 0, 4, place, 0, NULL, NULL));
	SAY(clReleaseKernel((cl_kernel)src));
	SAY(clReleaseMemObject((cl_mem)scale));
	SAY(clReleaseEvent((cl_event)src));
	SAY(clGetEventInfo((cl_event)src, CL_EVENT_COMMAND_EXECUTION_STATUS, 4, place, NULL));
	SAY(clFinish((cl_command_queue)src));
	SAY(!clCreateKernel((cl_program)src, "scale", NULL));
	SAY(!clEnqueueMapBuffer(gpu.queue, (cl_mem)scale, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, NULL));
}

/* Handles that are used after their last release. */
static void freed(void)
{
	static char place[64];
	size_t one = 1;
	cl_int error;
	cl_kernel scale = kernel("scale");
	cl_mem object = buffer(CL_MEM_READ_WRITE, NULL);
	cl_event user = clCreateUserEvent(gpu.context, &error);
	must(error, "user event");
	must(clReleaseKernel(scale), "release");
	must(clReleaseMemObject(object), "release");
	must(clReleaseEvent(user), "release");
	SAY(clSetKernelArg(scale, 0, sizeof object, &object));
	SAY(clEnqueueNDRangeKernel(gpu.queue, scale, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clReleaseKernel(scale));
	SAY(clEnqueueReadBuffer(gpu.queue, object, CL_TRUE, 0, 4, place, 0, NULL, NULL));
	SAY(clEnqueueWriteBuffer(gpu.queue, object, CL_FALSE, 0, 4, place, 0, NULL, NULL));
	SAY(!clEnqueueMapBuffer(gpu.queue, object, CL_TRUE, CL_MAP_WRITE, 0, 4, 0, NULL, NULL, NULL));
	SAY(clReleaseMemObject(object));
	SAY(clEnqueueReadBuffer(gpu.queue, src, CL_FALSE, 0, 4, place, 1, &user, NULL));
	SAY(clGetEventInfo(user, CL_EVENT_COMMAND_EXECUTION_STATUS, 4, place, NULL));
	SAY(clWaitForEvents(1, &user));
	SAY(clReleaseEvent(user));
}

static cl_event read_later(void *to)
{
	cl_event event;
	must(clEnqueueReadBuffer(gpu.queue, src, CL_FALSE, 0, BYTES, to, 0, NULL, &event), "read");
	return event;
}

/* Called at the end of a read: gives its memory away, and calls OpenCL. */
static volatile int called;
static void CL_CALLBACK ended(cl_event event, cl_int status, void *memory)
{
	cl_uint references;
	munmap(memory, BYTES);
	clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL);
	clReleaseMemObject(buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, factors));
	clReleaseKernel(kernel("scale"));
	called = 1 + (status != CL_COMPLETE);
}

static void CL_CALLBACK destroyed(cl_mem object, void *data)
{
	(void)object;
	clReleaseMemObject(buffer(CL_MEM_READ_WRITE, NULL));
	++*(int *)data;
}

static void callbacks(void)
{
	static int gone;
	void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cl_event event = read_later(memory);
	SAY(clSetEventCallback(event, CL_COMPLETE, ended, memory));
	SAY(clSetEventCallback(event, 77, ended, memory));
	SAY(clSetEventCallback(event, CL_COMPLETE, NULL, memory));
	SAY(clReleaseEvent(event));
	SAY(clFinish(gpu.queue));
	while (!called)
		;
	SAY(called);
	for (int i = 0; i < 50; i++) {
		cl_mem object = buffer(CL_MEM_READ_WRITE, NULL);
		must(clSetMemObjectDestructorCallback(object, destroyed, &gone), "callback");
		must(clReleaseMemObject(object), "release");
	}
	SAY(gone);
}

/* Threads make, set, launch and release, each with references to the same objects. */
static void *releases(void *shared)
{
	cl_kernel scale = shared;
	for (int i = 0; i < 300; i++) {
		cl_kernel own = kernel("scale");
		cl_mem object = buffer(CL_MEM_READ_WRITE, NULL);
		argument(own, 0, object);
		clReleaseMemObject(object);
		clReleaseKernel(own);
		clRetainKernel(scale);
		clSetKernelArg(scale, 0, sizeof src, &src);
		clReleaseKernel(scale);
		cl_event event = clCreateUserEvent(gpu.context, NULL);
		clSetUserEventStatus(event, i % 2 ? CL_COMPLETE : -5);
		clReleaseEvent(event);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[4];
	cl_kernel scale = kernel("scale");
	for (int i = 0; i < 4; i++)
		must(pthread_create(&all[i], NULL, releases, scale), "thread");
	for (int i = 0; i < 4; i++)
		must(pthread_join(all[i], NULL), "join");
	SAY(clReleaseKernel(scale));
}

/* Events that are given up before their commands end, that fail, or that nobody waits for. */
static void events(void)
{
	static float to[64][N];
	cl_int error;
	for (int i = 0; i < 64; i++)
		must(clReleaseEvent(read_later(to[i])), "release");
	SAY(clFinish(gpu.queue));
	cl_command_queue queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, NULL, &error);
	must(error, "queue");
	cl_event user = clCreateUserEvent(gpu.context, &error), read;
	must(error, "user event");
	SAY(clEnqueueReadBuffer(queue, src, CL_FALSE, 0, BYTES, to[0], 1, &user, &read));
	SAY(clSetUserEventStatus(user, 7));
	SAY(clSetUserEventStatus(user, -5));
	SAY(clSetUserEventStatus(user, CL_COMPLETE));
	SAY(clWaitForEvents(1, &read));
	SAY(clSetUserEventStatus(read, CL_COMPLETE));
	SAY(clReleaseEvent(read));
	SAY(clReleaseEvent(user));
	SAY(clReleaseCommandQueue(queue));
}

/* A queue that shall time its commands, with one that waits for the app. */
static void timed(void)
{
	const cl_queue_properties wanted[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0 };
	static float to[N];
	cl_ulong time;
	cl_int error;
	cl_command_queue queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, wanted, &error);
	if (error)
		return;
	cl_event user = clCreateUserEvent(gpu.context, &error), read;
	must(error, "user event");
	must(clEnqueueReadBuffer(queue, src, CL_FALSE, 0, BYTES, to, 1, &user, &read), "read");
	clGetEventProfilingInfo(read, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL);
	must(clSetUserEventStatus(user, CL_COMPLETE), "status");
	must(clWaitForEvents(1, &read), "wait");
	must(clReleaseEvent(read), "release");
	must(clReleaseEvent(user), "release");
	must(clReleaseCommandQueue(queue), "release");
}

/* Names of 100 kB. */
static void long_names(void)
{
	static char name[LONG + 1], text[3 * LONG];
	size_t items = N;
	cl_int error;
	memset(name, 'k', LONG);
	snprintf(text, sizeof text, "kernel void %s(global const float *%s_, global float *dst) { int i = get_global_id(0); dst[i] = %s_[i]; }\n",
		 name, name + LONG / 2, name + LONG / 2);
	cl_program built = build_program(&gpu, text, "", "long names");
	cl_kernel copy = clCreateKernel(built, name, &error);
	must(error, "a kernel with a long name");
	cl_mem first = buffer(CL_MEM_READ_WRITE, NULL);
	argument(copy, 0, first);
	argument(copy, 1, src);
	must(clEnqueueWriteBuffer(gpu.queue, first, CL_TRUE, 0, BYTES, factors, 0, NULL, NULL), "write");
	must(clEnqueueNDRangeKernel(gpu.queue, copy, 1, NULL, &items, NULL, 0, NULL, NULL), "launch");
	SAY(clFinish(gpu.queue));
}

/* Programs that are none. */
static void rubbish(void)
{
	static unsigned char bytes[4096];
	const unsigned char *binary = bytes;
	static const char *const texts[] = { "", "\xff\xfe\x80", "kernel void scale(", "typedef global float *a; typedef a a;\nkernel void scale(a b) { b[0] = 1; }",
					     "#if defined(\n#if 0\n#else\nkernel void scale(global x y){}" };
	cl_int error, status;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 167 >> 3);
	static const size_t lengths[] = { 0, 1, 3, 4, 20, 100, sizeof bytes };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		cl_program made = clCreateProgramWithBinary(gpu.context, 1, &gpu.device, &lengths[i], &binary, &status, &error);
		SAY(error);
		if (made) {
			SAY(clBuildProgram(made, 1, &gpu.device, "", NULL, NULL) != CL_SUCCESS);
			SAY(!clCreateKernel(made, "scale", NULL));
			SAY(clReleaseProgram(made));
		}
	}
	SAY(!clCreateProgramWithBinary(gpu.context, 1, &gpu.device, lengths, NULL, &status, &error));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		cl_program made = clCreateProgramWithSource(gpu.context, 1, (const char **)&texts[i], NULL, &error);
		SAY(error);
		if (!made)
			continue;
		error = clBuildProgram(made, 1, &gpu.device, "-cl-kernel-arg-info -DA=", NULL, NULL);
		cl_kernel named = error ? NULL : clCreateKernel(made, "scale", NULL);
		SAY(!named);
		if (named)
			SAY(clReleaseKernel(named));
		SAY(clBuildProgram(made, 1, &gpu.device, "-D", NULL, NULL) != CL_SUCCESS);
		SAY(clReleaseProgram(made));
	}
}

static void *map(cl_mem object, cl_bool blocking, cl_map_flags flags, size_t offset, size_t size)
{
	cl_int error;
	void *memory = clEnqueueMapBuffer(gpu.queue, object, blocking, flags, offset, size, 0, NULL, NULL, &error);
	must(error, "map");
	return memory;
}

/* Maps that are not unmapped, or twice, or elsewhere. */
static void maps(void)
{
	char *first = map(src, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES);
	char *second = map(src, CL_FALSE, CL_MAP_READ, 16, 64);
	first[0] = 1;
	SAY(clEnqueueUnmapMemObject(gpu.queue, dst, first, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, first + 1, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, in, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, (void *)8, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, second, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, first, 0, NULL, NULL));
	SAY(clFinish(gpu.queue));
	SAY(clEnqueueUnmapMemObject(gpu.queue, src, first, 0, NULL, NULL));
	for (int i = 0; i < 100; i++) {
		cl_mem object = buffer(CL_MEM_READ_WRITE, NULL);
		map(object, i % 2, i % 3 ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, 0, BYTES);
		must(clReleaseMemObject(object), "release");
	}
	map(dst, CL_TRUE, CL_MAP_WRITE, 0, 64);
	SAY(clFinish(gpu.queue));
}

/* Many reads that nobody waits for. */
static void unawaited(void)
{
	static float to[N];
	for (int i = 0; i < 6000; i++)
		must(clEnqueueReadBuffer(gpu.queue, dst, CL_FALSE, 0, 16, to, 0, NULL, NULL), "read");
	SAY(clFlush(gpu.queue));
}

static const struct opencl_case cases[] = {
	{ "no-handles", no_handles }, { "sizes", sizes }, { "wraps", wraps },
	{ "other-kinds", other_kinds }, { "freed", freed },
	{ "callbacks", callbacks },
	{ "threads", threads }, { "events", events }, { "timed", timed }, { "long-names", long_names },
	{ "rubbish", rubbish }, { "maps", maps }, { "unawaited", unawaited },
	{ NULL, NULL },
};

/* A case, and the ordinary work after it. */
static void with_work(void (*misuse)(void))
{
	src = buffer(CL_MEM_READ_WRITE, NULL);
	dst = buffer(CL_MEM_READ_WRITE, NULL);
	misuse();
	write_to(src, in);
	scaled(src, dst);
	read_from(dst, out);
}

int main(int count, char **words)
{
	return run_case(count, words, SCALE, cases, with_work);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// An OpenCL layer that keeps what a program reads: the bytes of its last read or mapping for reading, in the file that WITNESS names.
// It knows nothing of the project's own layer, and stands beside it or alone.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <stdio.h>
#include <stdlib.h>

static const struct _cl_icd_dispatch *below;
static struct _cl_icd_dispatch own;

static void keep(const void *bytes, size_t size)
{
	const char *name = getenv("WITNESS");
	FILE *file = name ? fopen(name, "wb") : NULL;
	if (!file)
		return;
	if (fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				      void *to, cl_uint count, const cl_event *list, cl_event *event)
{
	cl_int error = below->clEnqueueReadBuffer(queue, buffer, blocking, offset, size, to, count, list, event);
	if (!error && !blocking)
		error = below->clFinish(queue);
	if (!error)
		keep(to, size);
	return error;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
				    size_t offset, size_t size, cl_uint count, const cl_event *list, cl_event *event,
				    cl_int *error)
{
	void *bytes = below->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, count, list, event, error);
	if (bytes && (flags & CL_MAP_READ)) {
		if (!blocking)
			below->clFinish(queue);
		keep(bytes, size);
	}
	return bytes;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *needed)
{
	if (what != CL_LAYER_API_VERSION)
		return CL_INVALID_VALUE;
	if (value && size < sizeof(cl_layer_api_version))
		return CL_INVALID_VALUE;
	if (value)
		*(cl_layer_api_version *)value = CL_LAYER_API_VERSION_100;
	if (needed)
		*needed = sizeof(cl_layer_api_version);
	return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch *target, cl_uint *own_count,
					    const struct _cl_icd_dispatch **table)
{
	if (count < sizeof(own) / sizeof(own.clGetPlatformIDs))
		return CL_INVALID_VALUE;
	below = target;
	own = *target;
	own.clEnqueueReadBuffer = read_buffer;
	own.clEnqueueMapBuffer = map_buffer;
	*own_count = sizeof(own) / sizeof(own.clGetPlatformIDs);
	*table = &own;
	return CL_SUCCESS;
}

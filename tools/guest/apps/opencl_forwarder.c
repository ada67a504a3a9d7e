// SPDX-License-Identifier: MIT OR Apache-2.0
// libOpenCL.so for Arm Compute Library on runtimes that are not Arm's.
//
// The library opens "libOpenCL.so" at run time, looks up each function in it, and refuses every device that lacks
// cl_arm_non_uniform_work_group_size. This file stands under that name in front of the ICD loader: as a library it
// depends on libOpenCL.so.1, through which all other functions are found; these it answers itself:
//
//  - clGetDeviceInfo adds the extension's name (OpenCL 3.0 runtimes have the feature under another name).
//  - clBuildProgram removes the extension's build option, which other compilers do not know.
//  - clEnqueueNDRangeKernel lets the runtime choose the work-group size if the wanted one does not divide the global
//    size and the runtime cannot run the rest.
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char extension[] = "cl_arm_non_uniform_work_group_size";
static const char build_option[] = "-cl-arm-non-uniform-work-group-size";

/* The ICD loader's own function of this name. */
static void *forward(const char *name)
{
	static void *loader;
	if (!loader)
		loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	void *function = loader ? dlsym(loader, name) : NULL;
	if (!function) {
		fprintf(stderr, "OpenCL forwarder: libOpenCL.so.1 has no %s\n", name);
		abort();
	}
	return function;
}
#define REAL(name) ((__typeof__(&name))forward(#name))

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size,
						void *value, size_t *needed)
{
	if (what != CL_DEVICE_EXTENSIONS)
		return REAL(clGetDeviceInfo)(device, what, size, value, needed);

	size_t length = 0;
	cl_int error = REAL(clGetDeviceInfo)(device, what, 0, NULL, &length);
	if (error)
		return error;
	char *text = calloc(1, length + 1 + sizeof extension);
	if (!text)
		return CL_OUT_OF_HOST_MEMORY;
	error = REAL(clGetDeviceInfo)(device, what, length, text, NULL);
	if (!error && !strstr(text, extension)) {
		strcat(text, " ");
		strcat(text, extension);
	}
	length = strlen(text) + 1;
	if (!error && needed)
		*needed = length;
	if (!error && value) {
		if (size < length)
			error = CL_INVALID_VALUE;
		else
			memcpy(value, text, length);
	}
	free(text);
	return error;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
					       const char *options,
					       void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	char *kept = options ? strdup(options) : NULL;
	for (char *at; kept && (at = strstr(kept, build_option));)
		memset(at, ' ', sizeof build_option - 1);
	cl_int error = REAL(clBuildProgram)(program, count, devices, kept, notify, data);
	free(kept);
	return error;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
						       const size_t *offset, const size_t *global, const size_t *local,
						       cl_uint waits, const cl_event *wait_list, cl_event *event)
{
	for (cl_uint i = 0; local && i < dimensions; i++)
		if (!local[i] || global[i] % local[i])
			local = NULL;
	return REAL(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

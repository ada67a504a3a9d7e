// SPDX-License-Identifier: MIT OR Apache-2.0
// Loaded before an app (LD_PRELOAD), it has the driver know only the first buffer of each job. The GPU computes as before, as all buffers
// stay mapped; but what the driver tells a recorder about a job's buffers is not true any more.
#define _GNU_SOURCE
#include <drm/panfrost_drm.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/ioctl.h>

int ioctl(int file, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	va_list list;
	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (!next)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	if (request == DRM_IOCTL_PANFROST_SUBMIT) {
		struct drm_panfrost_submit submit = *(struct drm_panfrost_submit *)argument;
		if (submit.bo_handle_count > 1)
			submit.bo_handle_count = 1;
		return next(file, request, &submit);
	}
	return next(file, request, argument);
}

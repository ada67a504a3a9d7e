// SPDX-License-Identifier: MIT OR Apache-2.0
// Loaded before an app (LD_PRELOAD), it has 320 MiB of GPU memory mapped before the app's first job: more pages than the recorder's lists
// begin with.
#define _GNU_SOURCE
#include <drm/panfrost_drm.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

int ioctl(int file, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	static int hoarded;
	va_list list;
	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (!next)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	if (request == DRM_IOCTL_PANFROST_SUBMIT && !hoarded++) {
		struct drm_panfrost_create_bo create = {.size = 320 << 20, .flags = PANFROST_BO_NOEXEC};
		if (next(file, DRM_IOCTL_PANFROST_CREATE_BO, &create)) {
			perror("hoarder");
			_Exit(1);
		}
	}
	return next(file, request, argument);
}

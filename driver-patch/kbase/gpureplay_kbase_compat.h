/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included in front of every source file of Arm's driver: names that the
 * kernel has changed since a release was written. driver.sh looks into source
 * and kernel and defines what is needed; without that this file is empty.
 */
#if !defined(_GPUREPLAY_KBASE_COMPAT_H) && !defined(__ASSEMBLY__) && defined(MODULE)
#define _GPUREPLAY_KBASE_COMPAT_H

#ifdef GPUREPLAY_KBASE_BEFORE_5_8	/* the source; the kernel may be newer */
#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 8, 0)
#define mmap_sem mmap_lock
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 9, 0)
/* The first argument, a task, went. */
#define get_user_pages_remote(task, ...) get_user_pages_remote(__VA_ARGS__)
#endif
#endif

#ifdef GPUREPLAY_KERNEL_HAS_CLOSE_FD	/* instead of ksys_close() */
#include <linux/fdtable.h>
#define ksys_close close_fd
#endif

#endif /* _GPUREPLAY_KBASE_COMPAT_H */

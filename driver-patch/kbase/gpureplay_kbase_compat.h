/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included in front of every source file of a release of Arm's driver that is
 * older than the kernel: names that this kernel has changed since. Kbuild's
 * version number is good enough here, because a vendor's kernel with a driver
 * of its own age needs none of it.
 */
#if !defined(_GPUREPLAY_KBASE_COMPAT_H) && !defined(__ASSEMBLY__) && defined(MODULE)
#define _GPUREPLAY_KBASE_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 8, 0)
/* The lock of an address space was renamed. */
#define mmap_sem mmap_lock
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 9, 0)
/* The first argument, a task, went. */
#define get_user_pages_remote(task, ...) get_user_pages_remote(__VA_ARGS__)
#endif

#endif /* _GPUREPLAY_KBASE_COMPAT_H */

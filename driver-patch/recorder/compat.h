/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names that older kernels lack. Kbuild looks into the kernel's headers and
 * defines GPUREPLAY_HAS_* for what is there: vendors' kernels mix releases, so
 * the version number would not tell.
 */
#ifndef _GPUREPLAY_COMPAT_H
#define _GPUREPLAY_COMPAT_H

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pfn.h>
#include <linux/preempt.h>
#include <linux/timer.h>

#ifndef GPUREPLAY_HAS_IN_HARDIRQ	/* before 5.11 */
#define in_hardirq in_irq
#endif

#ifndef GPUREPLAY_HAS_KMAP_LOCAL_PAGE	/* before 5.11; no high memory on arm64 */
#define kmap_local_page page_address
#define kunmap_local(address) ((void)(address))
#endif

/*
 * Whether the kernel maps this address as memory. Since 5.14 pfn_valid() is
 * true on arm64 for memory that a device tree reserves without mapping it.
 */
static inline bool page_is_memory(phys_addr_t phys)
{
#ifdef GPUREPLAY_HAS_PFN_IS_MAP_MEMORY
	if (!pfn_is_map_memory(PHYS_PFN(phys)))
		return false;
#endif
	return pfn_valid(PHYS_PFN(phys));
}

#ifndef GPUREPLAY_HAS_TIMER_DELETE_SYNC	/* before 6.2 */
#define timer_delete_sync del_timer_sync
#endif

#endif /* _GPUREPLAY_COMPAT_H */

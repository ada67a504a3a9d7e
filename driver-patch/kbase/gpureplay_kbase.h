/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included in front of every source file of Arm's driver, after
 * gpureplay_mmio.h: how that driver keeps its GPU powered.
 */
#if !defined(_GPUREPLAY_KBASE_H) && !defined(__ASSEMBLY__) && defined(MODULE)
#define _GPUREPLAY_KBASE_H

struct kbase_device;

void kbase_pm_context_active(struct kbase_device *kbdev);
void kbase_pm_context_idle(struct kbase_device *kbdev);

static inline void gpureplay_kbase_hold(void *kbdev)
{
	kbase_pm_context_active(kbdev);
}

static inline void gpureplay_kbase_release(void *kbdev)
{
	kbase_pm_context_idle(kbdev);
}

#endif /* _GPUREPLAY_KBASE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Names that older kernels lack; Kbuild looks into the kernel's headers and defines NANO_HAS_*. */
#ifndef NANO_COMPAT_H
#define NANO_COMPAT_H

#include <linux/mm.h>
#include <linux/thermal.h>

#ifndef NANO_HAS_VM_FLAGS_SET		/* before 6.3 */
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifdef NANO_HAS_REMOVE_NEW		/* 6.3 to 6.12: .remove may return a number */
#define nano_remove_member remove_new
#else
#define nano_remove_member remove
#endif

static inline struct thermal_cooling_device *
nano_register_cooling(struct device *dev, void *data, const struct thermal_cooling_device_ops *ops)
{
#ifdef NANO_HAS_CDEV_ID			/* the device's own node, by number */
	return devm_thermal_of_cooling_device_register(dev, 0, "gpureplay-nano", data, ops);
#else
	return devm_thermal_of_cooling_device_register(dev, dev->of_node, "gpureplay-nano", data,
						       ops);
#endif
}

#endif

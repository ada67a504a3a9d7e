/* SPDX-License-Identifier: GPL-2.0 */
/* Of the recorder, which is loaded before: as gpureplay_hooks.h there. */
#ifndef GPUREPLAY_BINARY_H
#define GPUREPLAY_BINARY_H

#include <linux/mm.h>

extern const struct vm_operations_struct gpureplay_vm_operations;
void gpureplay_wrap_mappings(const struct vm_operations_struct *operations);

#endif

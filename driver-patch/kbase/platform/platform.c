// SPDX-License-Identifier: GPL-2.0
/* What Arm's driver, or a vendor's changes to it, take from the platform's folder by name. */
#include <linux/module.h>

struct dma_buf;
struct kbase_platform_config;
bool dmabuf_uvm_realloc(struct dma_buf *buffer);
struct kbase_platform_config *kbase_get_platform_config(void);
int kbase_platform_early_init(void);

/* Without a device tree it would have resources. */
struct kbase_platform_config *kbase_get_platform_config(void)
{
	static long none;

	return (struct kbase_platform_config *)&none;
}

int kbase_platform_early_init(void)
{
	return 0;
}

/* Amlogic's kernel may move a buffer; this one has none that moves. */
bool dmabuf_uvm_realloc(struct dma_buf *buffer)
{
	return false;
}

/* Amlogic's driver counts faults here. */
int meson_gpu_fault;
int meson_gpu_data_invalid_count;

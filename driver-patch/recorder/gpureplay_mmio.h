/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included in front of every source file of an unmodified driver (compiler
 * option -include): its register accesses and its polling loops go through
 * the recorder. Accesses that bypass the driver's own helpers, as vendors'
 * platform code does, are seen too.
 */
#if !defined(_GPUREPLAY_MMIO_H) && !defined(__ASSEMBLY__) && defined(MODULE)
#define _GPUREPLAY_MMIO_H

#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/types.h>

#include "gpureplay_hooks.h"

static inline void gpureplay_writel(u32 value, void __iomem *address)
{
	if (gpureplay_is_recording())
		gpureplay_log_write(address, value, 4);
	else
		writel(value, address);
}

static inline void gpureplay_writel_relaxed(u32 value,
					    void __iomem *address)
{
	if (gpureplay_is_recording())
		gpureplay_log_write(address, value, 4);
	else
		writel_relaxed(value, address);
}

static inline u32 gpureplay_readl(const void __iomem *address)
{
	if (gpureplay_is_recording())
		return gpureplay_log_read(address, 4);
	return readl(address);
}

static inline u32 gpureplay_readl_relaxed(const void __iomem *address)
{
	if (gpureplay_is_recording())
		return gpureplay_log_read(address, 4);
	return readl_relaxed(address);
}

#undef readl
#undef readl_relaxed
#undef writel
#undef writel_relaxed
#undef ioread32
#undef iowrite32
#define readl gpureplay_readl
#define readl_relaxed gpureplay_readl_relaxed
#define writel gpureplay_writel
#define writel_relaxed gpureplay_writel_relaxed
#define ioread32 gpureplay_readl
#define iowrite32 gpureplay_writel

#ifdef CONFIG_64BIT
static inline void gpureplay_writeq(u64 value, void __iomem *address)
{
	if (gpureplay_is_recording())
		gpureplay_log_write(address, value, 8);
	else
		writeq(value, address);
}

static inline u64 gpureplay_readq(const void __iomem *address)
{
	if (gpureplay_is_recording())
		return gpureplay_log_read(address, 8);
	return readq(address);
}

#undef readq
#undef readq_relaxed
#undef writeq
#undef writeq_relaxed
#define readq gpureplay_readq
#define readq_relaxed gpureplay_readq
#define writeq gpureplay_writeq
#define writeq_relaxed gpureplay_writeq
#endif

/* One event for the whole loop, with its reads inside. */
#undef readx_poll_timeout
#define readx_poll_timeout(op, address, value, condition, sleep_us, limit_us) \
({ \
	const void __iomem *_gr_address = (address); \
	u64 _gr_limit = (limit_us); \
	int _gr_result; \
	gpureplay_poll_begin(_gr_address, _gr_limit); \
	_gr_result = read_poll_timeout(op, value, condition, sleep_us, \
				       _gr_limit, false, _gr_address); \
	gpureplay_poll_end(_gr_address, _gr_limit, _gr_result); \
	_gr_result; \
})

#undef readx_poll_timeout_atomic
#define readx_poll_timeout_atomic(op, address, value, condition, delay_us, \
				  limit_us) \
({ \
	const void __iomem *_gr_address = (address); \
	u64 _gr_limit = (limit_us); \
	int _gr_result; \
	gpureplay_poll_begin(_gr_address, _gr_limit); \
	_gr_result = read_poll_timeout_atomic(op, value, condition, delay_us, \
					      _gr_limit, false, _gr_address); \
	gpureplay_poll_end(_gr_address, _gr_limit, _gr_result); \
	_gr_result; \
})

#endif /* _GPUREPLAY_MMIO_H */

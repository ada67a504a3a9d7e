// SPDX-License-Identifier: GPL-2.0
/*
 * Register accesses and polling loops.
 *
 * An access and its record are one step under the log's lock, so that the
 * order of the log is the order in which the GPU saw the accesses. What was
 * last written and read is kept: the page-table walk and the job slots need no
 * more than that to follow the driver.
 */
#include <linux/bits.h>
#include <linux/export.h>
#include <linux/io.h>

#include "mali.h"
#include "recorder.h"

/* Read once per recording: what a replay checks before it touches a GPU. */
static const struct {
	u32 from;
	u32 to;
} identity[] = {
	{ GPU_ID, 0x01c },
	{ GPU_AFBC_FEATURES, GPU_AFBC_FEATURES },
	{ GPU_THREAD_MAX_THREADS, 0x0fc },	/* threads, textures, job slots */
	{ GPU_SHADER_PRESENT, GPU_SHADER_PRESENT + 4 },
	{ GPU_TILER_PRESENT, GPU_TILER_PRESENT + 4 },
	{ GPU_L2_PRESENT, GPU_L2_PRESENT + 4 },
	{ GPU_COHERENCY_FEATURES, GPU_COHERENCY_FEATURES },
	{ GPU_THREAD_TLS_ALLOC, GPU_THREAD_TLS_ALLOC },
	{ GPU_STACK_PRESENT, GPU_STACK_PRESENT + 4 },
};

static u32 written[MALI_REGISTERS / 4];
static u32 last_read[MALI_REGISTERS / 4];
static unsigned long identity_is_read;

/* What accesses mean. */
static const struct register_events *events;

/* Forget the previous recording. */
void registers_begin(const struct register_events *follower)
{
	WRITE_ONCE(events, follower);
	memset(written, 0, sizeof(written));
	memset(last_read, 0, sizeof(last_read));
	clear_bit(0, &identity_is_read);
}

/* What the driver wrote last since the GPU's reset, or 0. */
u32 registers_written(u32 offset)
{
	return READ_ONCE(written[offset / 4]);
}

u64 registers_written64(u32 offset)
{
	return registers_written(offset) |
	       (u64)registers_written(offset + 4) << 32;
}

/* What was read last in this recording, or 0. */
u32 registers_last_read(u32 offset)
{
	return READ_ONCE(last_read[offset / 4]);
}

static void append_register(enum gpureplay_record_type type, u32 offset,
			    u32 value)
{
	struct gpureplay_register record = {
		.offset = cpu_to_le32(offset),
		.value = cpu_to_le32(value),
	};

	log_append(type, 0, &record, sizeof(record), NULL, 0);
}

static void remember(u32 *values, u32 offset, u32 value)
{
	if (offset < MALI_REGISTERS)
		WRITE_ONCE(values[offset / 4], value);
}

/**
 * registers_read - the recorder's own look at a register, also logged
 * @offset: bytes from the start of the registers
 */
u32 registers_read(u32 offset)
{
	return gpureplay_log_read(device_registers() + offset, 4);
}

static void read_identity(void)
{
	unsigned int i;
	u32 offset;

	if (test_and_set_bit(0, &identity_is_read))
		return;
	log_note("identity: the recorder reads what this GPU is");
	for (i = 0; i < ARRAY_SIZE(identity); i++)
		for (offset = identity[i].from; offset <= identity[i].to;
		     offset += 4)
			registers_read(offset);
}

static void access_write(void __iomem *address, u64 value,
			 unsigned int width)
{
#ifdef CONFIG_64BIT
	if (width == 8) {
		writeq(value, address);
		return;
	}
#endif
	writel(value, address);
}

static u64 access_read(const void __iomem *address,
		       unsigned int width)
{
#ifdef CONFIG_64BIT
	if (width == 8)
		return readq(address);
#endif
	return readl(address);
}

/* One step: with the log locked. */
static void write_locked(void __iomem *address, u32 offset, u64 value,
			 unsigned int width)
{
	append_register(GPUREPLAY_REG_WRITE, offset, value);
	remember(written, offset, value);
	if (width == 8) {
		append_register(GPUREPLAY_REG_WRITE, offset + 4, value >> 32);
		remember(written, offset + 4, value >> 32);
	}
	access_write(address, value, width);
}

/**
 * registers_submit - ring a doorbell, in one step with its SUBMIT record
 * @offset: the doorbell's register
 * @value: what is written to it
 * @slot: the job slot
 * @record: of the job
 * @waiting: if not %NULL, the doorbell is rung only if the slot's bit is set,
 *	     which is cleared
 *
 * Return: whether it was rung.
 */
bool registers_submit(u32 offset, u32 value, unsigned int slot,
		      const struct gpureplay_submit *record,
		      unsigned long *waiting)
{
	unsigned long flags;
	bool rings;

	raw_spin_lock_irqsave(&log_lock, flags);
	rings = !waiting || test_and_clear_bit(slot, waiting);
	if (rings) {
		log_append(GPUREPLAY_SUBMIT, slot, record, sizeof(*record),
			   NULL, 0);
		write_locked(device_registers() + offset, offset, value, 4);
	}
	raw_spin_unlock_irqrestore(&log_lock, flags);
	return rings;
}

void gpureplay_log_write(void __iomem *address, u64 value,
			 unsigned int width)
{
	unsigned long flags;
	u32 offset;

	if (!log_accepts()) {
		access_write(address, value, width);
		return;
	}
	if (!device_offset(address, &offset)) {
		access_write(address, value, width);
		log_note("outside the GPU's registers: write of %#llx by %pS",
			 value, __builtin_return_address(0));
		return;
	}

	read_identity();
	if (events->write(offset, value))
		return;
	raw_spin_lock_irqsave(&log_lock, flags);
	write_locked(address, offset, value, width);
	raw_spin_unlock_irqrestore(&log_lock, flags);
}
EXPORT_SYMBOL_GPL(gpureplay_log_write);

/* The GPU was reset: its registers hold nothing that the driver wrote. */
void registers_reset(void)
{
	memset(written, 0, sizeof(written));
}

/**
 * registers_peek - read a register without a trace of it
 * @offset: bytes from the start of the registers
 *
 * Only of a GPU that has power, and only where reading changes nothing.
 */
u32 registers_peek(u32 offset)
{
	return readl(device_registers() + offset);
}

u64 gpureplay_log_read(const void __iomem *address,
		       unsigned int width)
{
	unsigned long flags;
	u32 offset;
	u64 value;

	if (!log_accepts() || !device_offset(address, &offset))
		return access_read(address, width);

	raw_spin_lock_irqsave(&log_lock, flags);
	value = access_read(address, width);
	append_register(GPUREPLAY_REG_READ, offset, value);
	remember(last_read, offset, value);
	if (width == 8) {
		append_register(GPUREPLAY_REG_READ, offset + 4, value >> 32);
		remember(last_read, offset + 4, value >> 32);
	}
	raw_spin_unlock_irqrestore(&log_lock, flags);

	events->read(offset, value);
	return value;
}
EXPORT_SYMBOL_GPL(gpureplay_log_read);

static void log_poll_event(enum gpureplay_record_type type,
			   const void __iomem *address,
			   u64 timeout_us, int result)
{
	struct gpureplay_poll record = {
		.result = cpu_to_le32(result),
		.timeout_us = cpu_to_le32(min_t(u64, timeout_us, U32_MAX)),
	};
	u32 offset;

	if (!gpureplay_is_recording() || !device_offset(address, &offset))
		return;
	record.offset = cpu_to_le32(offset);
	if (type == GPUREPLAY_POLL_END && offset < MALI_REGISTERS)
		record.last_value = cpu_to_le32(registers_last_read(offset));
	log_record(type, 0, &record, sizeof(record));
}

void gpureplay_poll_begin(const void __iomem *address, u64 timeout_us)
{
	log_poll_event(GPUREPLAY_POLL_BEGIN, address, timeout_us, 0);
}
EXPORT_SYMBOL_GPL(gpureplay_poll_begin);

void gpureplay_poll_end(const void __iomem *address, u64 timeout_us,
			int result)
{
	log_poll_event(GPUREPLAY_POLL_END, address, timeout_us, result);
}
EXPORT_SYMBOL_GPL(gpureplay_poll_end);

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The replayer in a C firmware: digits on QEMU's virt machine, with the recording at 0x50000000. */
#include "gpureplay_bare.h"

#define UART ((volatile uint32_t *)0x09000000)
#define GPU ((volatile uint32_t *)0x10000000)
#define GPU_CONFIGURATION ((volatile uint32_t *)0x4010008000) /* PCI slot 1 */
#define ARENA ((void *)0x48000000)
#define RECORDING ((const uint64_t *)0x50000000)

extern const uint8_t input_npy[];
static struct gpureplay_session session;

static uint32_t read32(void *context, uint32_t offset) { return GPU[offset / 4]; }

static void write32(void *context, uint32_t offset, uint32_t value)
{
	__asm__ volatile("dsb sy" ::: "memory");
	GPU[offset / 4] = value;
}

static uint64_t now_us(void *context)
{
	uint64_t ticks, frequency;
	__asm__ volatile("isb; mrs %0, cntvct_el0; mrs %1, cntfrq_el0" : "=r"(ticks), "=r"(frequency));
	return ticks / (frequency / 1000000);
}

static void say(const char *text)
{
	while (*text)
		*UART = *text++;
}

int main(void)
{
	const struct gpureplay_device device = {
		.read32 = read32, .write32 = write32, .now_us = now_us,
		.arena = ARENA, .arena_bytes = 64 << 20, .arena_bus = (uintptr_t)ARENA,
	};
	struct gpureplay_error error;
	uint32_t probabilities[10], best = 0;

	GPU_CONFIGURATION[4] = (uintptr_t)GPU;
	GPU_CONFIGURATION[1] |= 6;
	if (gpureplay_open(&session, &device, RECORDING, RECORDING[2], &error))
		return say("REFUSED\n"), 1;
	struct gpureplay_io tensors[] = {
		{ gpureplay_find(&session, "input"), (void *)(input_npy + 10 + input_npy[8]), 256 },
		{ gpureplay_find(&session, "probabilities"), probabilities, sizeof probabilities },
	};
	if (gpureplay_run(&session, tensors, 2, &error) || gpureplay_close(&session, &error))
		return say("FAILED\n"), 1;
	for (uint32_t digit = 1; digit < 10; digit++) /* floats that are not negative are ordered like their bits */
		if (probabilities[digit] > probabilities[best])
			best = digit;
	say((char[]){ 'a', 'n', 's', 'w', 'e', 'r', ' ', '0' + best, '\n', 0 });
	return say("DONE\n"), 0;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * The guard's tables, run on the host with TAP output: guard.c itself is compiled, with the few names of the kernel
 * that it uses. Every register of the window, with every bit alone and some values, on every product.
 *
 *	guard		the checks
 *	guard settings	the bits of settings, for a comparison with the verifier of recordings
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint32_t u32;

#define BIT(n)			(1u << (n))
#define GENMASK(high, low)	(~0u >> (31 - (high)) & ~0u << (low))
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof(*(array)))
#define GPU_COMMAND		0x0030
/* Of the kernel's headers nothing else is needed. */
#define NANO_H

bool nano_read_allowed(u32 offset);
bool nano_write_allowed(u32 gpu_id, u32 offset, u32 value);

#include "../guard.c"

#define WINDOW	0x10000

static int checks, failed;

static void check(int good, const char *what)
{
	checks++;
	failed += !good;
	printf("%s %d - %s\n", good ? "ok" : "not ok", checks, what);
}

/* Bits of a register that may be set alone. */
static u32 allowed_bits(u32 gpu_id, u32 offset)
{
	u32 bits = 0;

	for (int bit = 0; bit < 32; bit++)
		if (nano_write_allowed(gpu_id, offset, 1u << bit))
			bits |= 1u << bit;
	return bits;
}

/* A GPU_ID as chips have it: something in the fields between and below. */
static u32 chip(u32 product)
{
	return product << 16 | 0x02101005;
}

static const u32 products[] = {
	0x6000, 0x6001, 0x7000, 0x7001, 0x7002, 0x7003, 0x9001, 0x9003,
	/* No such product. */
	0x7004, 0x6009, 0x8000, 0x9000, 0x9002, 0x9007, 0xa003, 0x5003, 0x0860,
};

static void settings(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(products); i++)
		for (u32 offset = 0xf00; offset < 0xf10; offset += 4)
			printf("%#x %#x %#x\n", products[i], offset, allowed_bits(chip(products[i]), offset));
}

/* All that a G52 may be written, register by register: what is missing here takes no value at all. */
static const struct {
	u32 offset, bits;
} expected[] = {
	{ 0x24, ~0u }, { 0x28, ~0u }, { 0x180, ~0u }, { 0x184, ~0u }, { 0x188, ~0u }, { 0x18c, ~0u }, { 0x190, ~0u },
	{ 0x194, ~0u }, { 0x198, ~0u }, { 0x19c, ~0u }, { 0x1a0, ~0u }, { 0x1a4, ~0u }, { 0x1c0, ~0u }, { 0x1c4, ~0u },
	{ 0x1c8, ~0u }, { 0x1cc, ~0u }, { 0x1d0, ~0u }, { 0x1d4, ~0u }, { 0x1d8, ~0u }, { 0x1dc, ~0u }, { 0x1e0, ~0u },
	{ 0x1e4, ~0u }, { 0xe20, ~0u }, { 0xe24, ~0u }, { 0xe28, ~0u }, { 0xe2c, ~0u }, { 0xe30, ~0u }, { 0xe34, ~0u },
	{ 0x1004, ~0u }, { 0x1008, ~0u }, { 0x2004, ~0u }, { 0x2008, ~0u },
	{ 0xf00, 0x3f0000 }, { 0xf04, 0x20000 }, { 0xf08, 0 }, { 0xf0c, 0x83f000 },
	{ 0x30, 8 },			/* CLEAN_INV_CACHES; the other commands are checked by value */
};

/* The same within a job slot. */
static const struct {
	u32 offset, bits;
} expected_slot[] = {
	{ 0x20, 6 },			/* COMMAND: soft and hard stop; the others are checked by value */
	{ 0x40, ~0u }, { 0x44, ~0u }, { 0x50, ~0u }, { 0x54, ~0u }, { 0x58, 0xffff00 }, { 0x60, 1 }, { 0x70, ~0u },
};

/* Whether a register may be written at all, and the bits of it. */
static bool find(u32 offset, u32 *bits)
{
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (expected[i].offset == offset) {
			*bits = expected[i].bits;
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(expected_slot) && offset >= 0x1800 && offset < 0x1980; i++)
		if (expected_slot[i].offset == (offset - 0x1800) % 0x80) {
			*bits = expected_slot[i].bits;
			return true;
		}
	return false;
}

static void writes(void)
{
	int wrong_bits = 0, wrong_zero = 0, wrong_both = 0;
	const u32 g52 = chip(0x7002);

	for (u32 offset = 0; offset < WINDOW; offset += 4) {
		u32 bits = 0, found = allowed_bits(g52, offset);
		bool known = find(offset, &bits);

		if (found != bits)
			printf("# %#x: bits %#x, expected %#x\n", offset, found, bits);
		wrong_bits += found != bits;
		wrong_zero += nano_write_allowed(g52, offset, 0) != known;
		/* Two bits, one of which is forbidden. */
		for (int bit = 0; bit < 32; bit++)
			if (!(bits >> bit & 1) && bits && offset != GPU_COMMAND &&
			    (offset < 0x1800 || (offset & 0x7f) != 0x20))
				wrong_both += nano_write_allowed(g52, offset, bits | 1u << bit);
	}
	check(!wrong_bits, "each register takes the bits that it should, and no other");
	check(!wrong_zero, "registers that are not listed take no value");
	check(!wrong_both, "a forbidden bit is not excused by one that is allowed");
	int wrong = 0;

	for (u32 value = 0; value < 64; value++)
		wrong += nano_write_allowed(g52, GPU_COMMAND, value) != (value == 0 || (value >= 5 && value <= 8));
	check(!wrong, "commands: no reset, no counter dump");
	wrong = 0;
	for (u32 slot = 0; slot < 3; slot++)
		for (u32 value = 0; value < 64; value++)
			wrong += nano_write_allowed(g52, 0x1820 + slot * 0x80, value) != (value <= 7 && value != 1);
	check(!wrong, "slot commands: stops, no start");
	wrong = 0;
	for (u32 space = 1; space < 16; space++)
		for (u32 slot = 0; slot < 3; slot++)
			wrong += nano_write_allowed(g52, 0x1858 + slot * 0x80, 0x83300 | space);
	check(!wrong, "jobs of address space 0 only");
}

static void reads(void)
{
	/* Counter dump base, page-table roots, lock addresses, translation settings; the other address spaces. */
	static const u32 secret[] = { 0x60, 0x64, 0x2400, 0x2404, 0x2408, 0x240c, 0x2410, 0x2414, 0x2430, 0x2434 };
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
		wrong += nano_read_allowed(secret[i]);
	for (u32 offset = 0x242c; offset < WINDOW; offset += 4)
		wrong += nano_read_allowed(offset);
	check(!wrong, "what could tell a physical address is not read");
	check(nano_read_allowed(0) && nano_read_allowed(0x1000) && nano_read_allowed(0x241c), "what is needed is");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "settings")) {
		settings();
		return 0;
	}
	printf("TAP version 13\n");
	writes();
	reads();
	printf("1..%d\n", checks);
	return failed != 0;
}

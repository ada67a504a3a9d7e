// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a session leaves, as the normal world sees it on a machine without a TZASC and a TZPC: words of the GPU's memory that are
 * not zero, and registers that a reset clears.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "gpureplay_board.h"

/* Offsets of registers: cores and caches that have power, the page table of address space 0, what may interrupt. */
#define SHADER_READY 0x140
#define L2_READY 0x160
#define TRANSTAB 0x2400
#define GPU_MASK 0x028
#define JOB_MASK 0x1008
#define MMU_MASK 0x2008

int main(void)
{
	int file = open("/dev/mem", O_RDONLY | O_SYNC);
	const uint64_t *words = mmap(NULL, GPUREPLAY_CARVE_OUT_BYTES, PROT_READ, MAP_SHARED, file, GPUREPLAY_CARVE_OUT);
	const volatile uint32_t *gpu = mmap(NULL, GPUREPLAY_GPU_BYTES, PROT_READ, MAP_SHARED, file, GPUREPLAY_GPU_BASE);
	unsigned long found = 0;

	if (file < 0 || words == MAP_FAILED || gpu == MAP_FAILED) {
		perror("/dev/mem");
		return 2;
	}
	for (unsigned long index = 0; index < GPUREPLAY_CARVE_OUT_BYTES / sizeof(*words); index++)
		found += words[index] != 0;
	printf("%lu words; level-2 cache %x, shader cores %x, page table %x, interrupt masks %x %x %x\n", found,
	       gpu[L2_READY / 4], gpu[SHADER_READY / 4], gpu[TRANSTAB / 4], gpu[GPU_MASK / 4], gpu[JOB_MASK / 4],
	       gpu[MMU_MASK / 4]);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a session leaves, as the normal world sees it on a machine without a TZASC and a TZPC: words of the GPU's memory that are
 * not zero, and registers that a reset clears.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpureplay_board.h"

/* Offsets of registers: cores and caches that have power, the page table of address space 0, what may interrupt. */
#define SHADER_READY 0x140
#define L2_READY 0x160
#define TRANSTAB 0x2400
#define GPU_MASK 0x028
#define JOB_MASK 0x1008
#define MMU_MASK 0x2008

static const char usage[] =
	"Usage: gpureplay_tee_memory [-w SECONDS]\n"
	"\n"
	"Says what is in the GPU's memory and registers. With -w it waits until a run is in progress, and counts the first\n"
	"word only: the whole memory takes longer than a run may last.\n"
	"\n"
	"Exit status: 0 done, 1 no run in this time, 2 wrong arguments, or no access.\n";

/* Time between two looks, in microseconds. */
#define STEP_US 10000

/* Words that are not zero, up to so many. */
static unsigned long count_words(const uint64_t *words, unsigned long most)
{
	unsigned long found = 0;

	for (unsigned long index = 0; index < GPUREPLAY_CARVE_OUT_BYTES / sizeof(*words) && found < most; index++)
		found += words[index] != 0;
	return found;
}

/* Waits until cores have power and a page table: the engine sets them before the first job. */
static int wait_for_run(const volatile uint32_t *gpu, long seconds)
{
	time_t end = time(NULL) + seconds;

	while (!gpu[L2_READY / 4] || !gpu[SHADER_READY / 4] || !gpu[TRANSTAB / 4]) {
		if (time(NULL) > end)
			return 1;
		usleep(STEP_US);
	}
	return 0;
}

int main(int count, char **arguments)
{
	int waits = count == 3 && !strcmp(arguments[1], "-w");
	int file = open("/dev/mem", O_RDONLY | O_SYNC);
	const uint64_t *words = mmap(NULL, GPUREPLAY_CARVE_OUT_BYTES, PROT_READ, MAP_SHARED, file, GPUREPLAY_CARVE_OUT);
	const volatile uint32_t *gpu = mmap(NULL, GPUREPLAY_GPU_BYTES, PROT_READ, MAP_SHARED, file, GPUREPLAY_GPU_BASE);
	unsigned long found;
	int late = 0;

	if (count != 1 && !waits) {
		fputs(usage, stderr);
		return 2;
	}
	if (file < 0 || words == MAP_FAILED || gpu == MAP_FAILED) {
		perror("/dev/mem");
		return 2;
	}
	if (waits)
		late = wait_for_run(gpu, strtol(arguments[2], NULL, 10));
	found = count_words(words, waits ? 1 : ~0ul);
	printf("%lu words; level-2 cache %x, shader cores %x, page table %x, interrupt masks %x %x %x\n", found,
	       gpu[L2_READY / 4], gpu[SHADER_READY / 4], gpu[TRANSTAB / 4], gpu[GPU_MASK / 4], gpu[JOB_MASK / 4],
	       gpu[MMU_MASK / 4]);
	return late;
}

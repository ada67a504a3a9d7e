// SPDX-License-Identifier: MIT OR Apache-2.0
/* Counts the bytes of the GPU's memory that are not zero: what a session leaves, as the normal world sees it on a machine without a TZASC. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "gpureplay_board.h"

int main(void)
{
	int file = open("/dev/mem", O_RDONLY | O_SYNC);
	const uint64_t *words =
		mmap(NULL, GPUREPLAY_CARVE_OUT_BYTES, PROT_READ, MAP_SHARED, file, GPUREPLAY_CARVE_OUT);
	unsigned long found = 0;

	if (file < 0 || words == MAP_FAILED) {
		perror("/dev/mem");
		return 2;
	}
	for (unsigned long index = 0; index < GPUREPLAY_CARVE_OUT_BYTES / sizeof(*words); index++)
		found += words[index] != 0;
	printf("%lu\n", found);
	return 0;
}

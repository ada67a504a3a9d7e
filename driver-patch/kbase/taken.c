// SPDX-License-Identifier: GPL-2.0
/* Loaded into a program (LD_PRELOAD), it takes a page at each address that TAKEN names before the program begins. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void take(void)
{
	const char *text = getenv("TAKEN");
	char *rest;

	for (unsigned long at; text && (at = strtoul(text, &rest, 16)) != 0; text = rest) {
		int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

		if (mmap((void *)at, 4096, PROT_NONE, flags, -1, 0) != (void *)at) {
			perror("taken");
			_Exit(99);
		}
	}
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The check of signed packs (../trust), which is written in Rust. */
#ifndef GPUREPLAY_TRUST_H
#define GPUREPLAY_TRUST_H

#include <stddef.h>
#include <stdint.h>

enum gpureplay_trust {
	GPUREPLAY_SIGNED = 0,
	GPUREPLAY_UNSIGNED = 1,
	GPUREPLAY_OTHER_KEY = 2,
	GPUREPLAY_ROLLBACK = 3,
	GPUREPLAY_FORGED = 4,
};

/* Where the recording of a checked pack lies. */
struct gpureplay_signed {
	size_t offset;
	size_t length;
	uint64_t counter;
};

int gpureplay_trust_check(const uint8_t *pack, size_t length, const uint8_t key[32], uint64_t oldest,
			  struct gpureplay_signed *found);
/* Called when a rule of the language is broken. The application defines it. */
void gpureplay_trust_panic(void) __attribute__((noreturn));

#endif

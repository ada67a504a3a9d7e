// SPDX-License-Identifier: MIT OR Apache-2.0
// Random numbers of the C library as SEED in the environment decides, whatever the program seeds: another SEED gives the program other
// inputs.
#include <stdlib.h>

static unsigned long long state;

static unsigned next(void)
{
	if (!state) {
		const char *seed = getenv("SEED");
		state = 0x9e3779b97f4a7c15ull * (1 + (seed ? strtoull(seed, NULL, 10) : 0)) | 1;
	}
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 33;
}

void srand(unsigned seed)
{
	(void)seed;
}

void srandom(unsigned seed)
{
	(void)seed;
}

void srand48(long seed)
{
	(void)seed;
}

int rand(void)
{
	return next();
}

int rand_r(unsigned *seed)
{
	(void)seed;
	return next();
}

long random(void)
{
	return next();
}

long lrand48(void)
{
	return next();
}

double drand48(void)
{
	return next() / 2147483648.0;
}

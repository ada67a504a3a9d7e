/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads and writes NumPy's .npy files (format version 1.0, little-endian, C order) for the test programs. */
#ifndef NPY_H
#define NPY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPY_MAX_RANK 8

struct npy {
	char type;                   /* 'f' float, 'i' int, 'u' unsigned */
	int size;                    /* bytes of an element; 0 stands for 4 */
	int rank;                    /* number of dimensions */
	size_t shape[NPY_MAX_RANK];  /* outermost first */
	size_t count;                /* product of the dimensions */
	void *data;                  /* count elements; free() it */
};

/* Reads a file whose elements are of the given type and have 4 bytes; prints what is wrong and exits with code 2 if it cannot. */
struct npy npy_read(const char *path, char type);

/* The same for elements of 1, 2 or 4 bytes. */
struct npy npy_read_sized(const char *path, char type, int size);

/* Like npy_read, and the shape must be this one; 0 stands for any extent, which is then filled in. */
struct npy npy_read_shape(const char *path, char type, int rank, size_t *shape);

/* Writes an array; prints what is wrong and exits with code 3 if it cannot. No partial file stays behind. */
void npy_write(const char *path, const struct npy *array);

#ifdef __cplusplus
}
#endif
#endif

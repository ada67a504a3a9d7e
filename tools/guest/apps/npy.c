// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads and writes .npy files.
#include "npy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";

static void fail(int code, const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	exit(code);
}

/* The text after `key` in the header's dictionary. */
static const char *field(const char *header, const char *key, const char *path)
{
	const char *at = strstr(header, key);
	if (!at || !(at = strchr(at, ':')))
		fail(2, path, "broken .npy header");
	do
		at++;
	while (*at == ' ');
	return at;
}

struct npy npy_read(const char *path, char type)
{
	return npy_read_sized(path, type, 4);
}

struct npy npy_read_sized(const char *path, char type, int size)
{
	struct npy array = { .type = type, .size = size, .count = 1 };
	FILE *file = fopen(path, "rb");
	if (!file)
		fail(2, path, "cannot open");

	unsigned char start[10];
	if (fread(start, 1, sizeof start, file) != sizeof start || memcmp(start, magic, 6))
		fail(2, path, "not an .npy file");
	if (start[6] != 1)
		fail(2, path, "only .npy format version 1 is supported");
	size_t length = start[8] | (size_t)start[9] << 8;
	char *header = malloc(length + 1);
	if (!header || fread(header, 1, length, file) != length)
		fail(2, path, "the header is cut off");
	header[length] = 0;

	const char wanted[] = { '\'', size == 1 ? '|' : '<', type, '0' + size, 0 };
	if (strncmp(field(header, "'descr'", path), wanted, 4)) {
		fprintf(stderr, "%s: expected elements of type %s, found %.5s\n", path, wanted + 1,
			field(header, "'descr'", path));
		exit(2);
	}
	if (strncmp(field(header, "'fortran_order'", path), "False", 5))
		fail(2, path, "Fortran order is not supported");
	char *at = (char *)field(header, "'shape'", path);
	if (*at++ != '(')
		fail(2, path, "broken .npy header");
	while (*at && *at != ')') {
		char *end;
		unsigned long extent = strtoul(at, &end, 10);
		if (end == at || array.rank == NPY_MAX_RANK ||
		    (extent && array.count > ((size_t)1 << 32) / extent))
			fail(2, path, "the shape cannot be read, or is too large");
		array.shape[array.rank++] = extent;
		array.count *= extent;
		for (at = end; *at == ',' || *at == ' ';)
			at++;
	}
	free(header);

	array.data = malloc(array.count * size + 1);
	if (!array.data || fread(array.data, size, array.count, file) != array.count)
		fail(2, path, "the data is cut off");
	fclose(file);
	return array;
}

struct npy npy_read_shape(const char *path, char type, int rank, size_t *shape)
{
	struct npy array = npy_read(path, type);
	int good = array.rank == rank;
	for (int i = 0; good && i < rank; i++) {
		if (!shape[i])
			shape[i] = array.shape[i];
		good = shape[i] == array.shape[i];
	}
	if (!good) {
		fprintf(stderr, "%s: expected shape (", path);
		for (int i = 0; i < rank; i++)
			shape[i] ? fprintf(stderr, "%zu,", shape[i]) : fprintf(stderr, "*,");
		fprintf(stderr, "), found (");
		for (int i = 0; i < array.rank; i++)
			fprintf(stderr, "%zu,", array.shape[i]);
		fprintf(stderr, ")\n");
		exit(2);
	}
	return array;
}

void npy_write(const char *path, const struct npy *array)
{
	int size = array->size ? array->size : 4;
	char header[256];
	int used = snprintf(header, sizeof header,
			    "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", size == 1 ? '|' : '<',
			    array->type, size);
	for (int i = 0; i < array->rank; i++)
		used += snprintf(header + used, sizeof header - used, "%zu,", array->shape[i]);
	used += snprintf(header + used, sizeof header - used, "), }");
	/* The data begins at a multiple of 64; the header ends with a newline. */
	while ((10 + used + 1) % 64)
		header[used++] = ' ';
	header[used++] = '\n';

	unsigned char start[10] = { 0 };
	memcpy(start, magic, 6);
	start[6] = 1;
	start[8] = used & 0xff;
	start[9] = used >> 8;

	FILE *file = fopen(path, "wb");
	if (!file)
		fail(3, path, "cannot create");
	int good = fwrite(start, 1, sizeof start, file) == sizeof start &&
		   fwrite(header, 1, used, file) == (size_t)used &&
		   fwrite(array->data, size, array->count, file) == array->count;
	if (fclose(file) || !good) {
		remove(path);
		fail(3, path, "cannot write");
	}
}

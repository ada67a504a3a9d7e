// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs of a recording, one after the other: replayed RECORDING FOLDER FIRST COUNT compares outputs with yN of the folder, for inputs xN
// where it has them, and says which libraries the process has.
#include <gpureplay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(gpureplay_status status)
{
	if (status == GPUREPLAY_STATUS_OK)
		return;
	fprintf(stderr, "%s\n", gpureplay_last_error());
	exit(status);
}

// Whether a file of the folder has so many bytes; they are in `bytes` then.
static int file(const char *folder, char kind, int number, void *bytes, size_t size)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%c%d", folder, kind, number);
	FILE *opened = fopen(path, "rb");
	size_t found = opened ? fread(bytes, 1, size, opened) : 0;
	if (opened)
		fclose(opened);
	return found == size;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: replayed RECORDING FOLDER FIRST COUNT\n");
		return 2;
	}
	gpureplay_recording *recording;
	check(gpureplay_open(argv[1], &recording));
	gpureplay_tensor_info in = {0}, out = {0}, one;
	for (size_t i = 0; i < gpureplay_tensor_count(recording); i++) {
		check(gpureplay_tensor(recording, i, &one));
		if (one.kind == GPUREPLAY_TENSOR_KIND_INPUT)
			in = one;
		else if (one.kind == GPUREPLAY_TENSOR_KIND_OUTPUT)
			out = one;
	}
	gpureplay_session *session;
	check(gpureplay_session_open(recording, NULL, &session));
	char *x = malloc(in.bytes + 1), *y = malloc(out.bytes), *found = malloc(out.bytes);
	int first = atoi(argv[3]), count = atoi(argv[4]), equal = 0;
	for (int number = first; number < first + count; number++) {
		if (in.name && file(argv[2], 'x', number, x, in.bytes))
			check(gpureplay_bind(session, in.name, in.element, x, in.bytes));
		check(gpureplay_run(session));
		check(gpureplay_read(session, out.name, out.element, found, out.bytes));
		equal += file(argv[2], 'y', number, y, out.bytes) && !memcmp(found, y, out.bytes);
	}
	printf("equal %d of %d\n", equal, count);
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/');
		if (path && strstr(path, ".so"))
			printf("maps %s", path);
	}
	gpureplay_session_close(session);
	gpureplay_close(recording);
	return 0;
}

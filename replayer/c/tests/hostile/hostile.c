// SPDX-License-Identifier: MIT OR Apache-2.0
// A C program that takes whatever files it is given: hostile FILE... prints how many were opened, ran and were read.
#include <gpureplay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Fails on a status without a reason, and on a bug in the library.
static int bad(gpureplay_status status)
{
	if (status == GPUREPLAY_STATUS_OK)
		return 0;
	const char *reason = gpureplay_last_error();
	if (status == GPUREPLAY_STATUS_PANIC || !reason || !strlen(reason)) {
		fprintf(stderr, "status %d: %s\n", (int)status, reason ? reason : "no reason");
		exit(1);
	}
	return 1;
}

int main(int argc, char **argv)
{
	int opened = 0, ran = 0, read = 0;
	for (int file = 1; file < argc; file++) {
		gpureplay_recording *recording = NULL;
		if (bad(gpureplay_open(argv[file], &recording)))
			continue;
		opened++;
		gpureplay_session_options options = { .threads = 1 };
		gpureplay_session *session = NULL;
		size_t count = gpureplay_tensor_count(recording);
		if (bad(gpureplay_session_open(recording, &options, &session))) {
			gpureplay_close(recording);
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			gpureplay_tensor_info info;
			if (bad(gpureplay_tensor(recording, i, &info)))
				continue;
			// Exactly as large as the tensor, so that one byte more is seen.
			void *bytes = malloc(info.bytes ? info.bytes : 1);
			if (!bytes)
				return 2;
			memset(bytes, 0, info.bytes);
			if (info.kind != GPUREPLAY_TENSOR_KIND_OUTPUT && info.kind != GPUREPLAY_TENSOR_KIND_INTERMEDIATE)
				bad(gpureplay_bind(session, info.name, info.element, bytes, info.bytes));
			// One byte less than it has is refused, not written.
			if (info.bytes && !bad(gpureplay_read(session, info.name, info.element, bytes, info.bytes - 1)))
				return 3;
			free(bytes);
		}
		if (!bad(gpureplay_run(session)))
			ran++;
		for (size_t i = 0; i < count; i++) {
			gpureplay_tensor_info info;
			if (bad(gpureplay_tensor(recording, i, &info)))
				continue;
			void *bytes = malloc(info.bytes ? info.bytes : 1);
			if (!bytes)
				return 2;
			if (!bad(gpureplay_read(session, info.name, info.element, bytes, info.bytes)))
				read++;
			free(bytes);
		}
		// The recording may go first: the session has what it needs.
		gpureplay_close(recording);
		bad(gpureplay_run(session));
		gpureplay_session_close(session);
	}
	printf("%d %d %d\n", opened, ran, read);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Which digit is in an image: digits RECORDING IMAGE.npy
#include <gpureplay.h>
#include <stdio.h>
#include <stdlib.h>

static void check(gpureplay_status status)
{
	if (status == GPUREPLAY_STATUS_OK)
		return;
	fprintf(stderr, "%s\n", gpureplay_last_error());
	exit(status);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: digits RECORDING IMAGE.npy\n");
		return 2;
	}
	gpureplay_recording *recording;
	check(gpureplay_open(argv[1], &recording));
	for (size_t i = 0; i < gpureplay_tensor_count(recording); i++) {
		gpureplay_tensor_info tensor;
		check(gpureplay_tensor(recording, i, &tensor));
		printf("%s: %zu bytes\n", tensor.name, tensor.bytes);
	}

	gpureplay_session *session;
	check(gpureplay_session_open(recording, NULL, &session));
	check(gpureplay_bind_file(session, "input", argv[2]));
	check(gpureplay_run(session));
	float probabilities[10];
	check(gpureplay_read(session, "probabilities", GPUREPLAY_ELEMENT_TYPE_F32, probabilities, sizeof probabilities));
	gpureplay_session_close(session);
	gpureplay_close(recording);

	int best = 0;
	for (int digit = 1; digit < 10; digit++)
		if (probabilities[digit] > probabilities[best])
			best = digit;
	printf("digit %d (%.3f)\n", best, probabilities[best]);
	for (int digit = 0; digit < 10; digit++)
		printf("%.9g\n", probabilities[digit]);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs a program and prints, of the moment when it exits: time since its start, peak memory, and the files that it maps.
//
// measure COMMAND [ARGUMENT...]
//     last line of standard output: "measured NANOSECONDS PEAK_KIB MAPPED_FILES MAPPED_FILES_BYTES"; the program's exit code
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void report(pid_t child, long long nanoseconds)
{
	char path[64], line[4096], seen[256][256];
	long peak = 0;
	unsigned long long bytes = 0;
	size_t files = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", child);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmHWM: %ld", &peak);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		char *name = strchr(line, '/');
		struct stat status;
		size_t i = 0;

		if (!name || !strncmp(name, "/dev/", 5))
			continue;
		name[strcspn(name, "\n")] = 0;
		while (i < files && strcmp(seen[i], name))
			i++;
		if (i == 256 || i < files || stat(name, &status))
			continue;
		snprintf(seen[files++], sizeof(*seen), "%s", name);
		bytes += status.st_size;
	}
	if (file)
		fclose(file);
	printf("measured %lld %ld %zu %llu\n", nanoseconds, peak, files, bytes);
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2)
		return 2;
	long long start = now();
	pid_t child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, child, 0, 0);
	while (waitpid(child, &status, 0) == child) {
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		int stop = WSTOPSIG(status), event = status >> 16, pass = 0;

		if (event == PTRACE_EVENT_EXEC)
			start = now();
		else if (event == PTRACE_EVENT_EXIT)
			report(child, now() - start);
		else if (stop != SIGTRAP)
			pass = stop;
		ptrace(PTRACE_CONT, child, 0, pass);
	}
	return 1;
}

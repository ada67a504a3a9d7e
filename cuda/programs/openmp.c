// SPDX-License-Identifier: MIT OR Apache-2.0
// OpenMP offload: a loop over arrays, a sum, and a loop in as many teams and threads as it says. Fails if it does not run on a GPU.
#include <omp.h>
#include <stdio.h>

#define N 100000

static double a[N], b[N];

int main(void) {
    for (int i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 1;
    }
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
#pragma omp target teams distribute parallel for map(tofrom : a) map(to : b)
    for (int i = 0; i < N; i++) a[i] = a[i] * 2 + b[i];
    double sum = 0;
#pragma omp target teams distribute parallel for map(to : a) map(tofrom : sum) reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += a[i];
    int threads = 0;
#pragma omp target teams distribute parallel for num_teams(20) thread_limit(64) map(tofrom : threads) reduction(+ : threads)
    for (int i = 0; i < 20 * 64; i++) threads += i % 7 == 0;
    printf("openmp on %s: %.0f, %d\n", on_host ? "the host" : "a GPU", sum, threads);
    return on_host || sum != 1e10 || threads != 183;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// A kernel that reaches much memory and changes half of it: how fast it is copied.
#include <cstdio>
#include <cstdlib>

__global__ void fill(unsigned *p, size_t n, unsigned round) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        p[i] = (unsigned)i % 65521 * round;
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 1 ? atoll(argv[1]) : 4) << 30;
    unsigned *p, last;
    if (cudaMalloc(&p, bytes) != cudaSuccess || cudaMemset(p, 1, bytes) != cudaSuccess) return 1;
    for (unsigned round = 1; round <= 3; round++) fill<<<1024, 256>>>(p, bytes / 8, round);
    if (cudaMemcpy(&last, p + bytes / 8 - 1, 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    printf("large %u\n", last);
}

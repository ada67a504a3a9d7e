// SPDX-License-Identifier: MIT OR Apache-2.0
// Many tiny launches: what one costs.
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void tiny(int *p) {
    if (threadIdx.x == 0) p[0] += 1;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 100000, *p, count;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    for (int i = 0; i < 1000; i++) tiny<<<1, 32>>>(p);
    cudaDeviceSynchronize();
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < n; i++) tiny<<<1, 32>>>(p);
    std::chrono::duration<double, std::micro> issued = std::chrono::steady_clock::now() - began;
    cudaMemcpy(&count, p, 4, cudaMemcpyDeviceToHost);
    printf("launches %.4f\n", issued.count() / n);
    return count != n + 1000;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Many tiny launches: what one costs the program. They are issued in bursts that fit into the driver's queue, so that the program
// never waits for the GPU meanwhile; the burst in the middle counts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void tiny(int *p) {
    if (threadIdx.x == 0) p[0] += 1;
}

int main(int argc, char **argv) {
    const int burst = 200;
    int bursts = argc > 1 ? atoi(argv[1]) / burst : 500, *p, count;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    for (int i = 0; i < 1000; i++) tiny<<<1, 32>>>(p);
    std::vector<double> times;
    for (int b = 0; b < bursts; b++) {
        cudaDeviceSynchronize();
        auto began = std::chrono::steady_clock::now();
        for (int i = 0; i < burst; i++) tiny<<<1, 32>>>(p);
        std::chrono::duration<double, std::micro> issued = std::chrono::steady_clock::now() - began;
        times.push_back(issued.count() / burst);
    }
    cudaMemcpy(&count, p, 4, cudaMemcpyDeviceToHost);
    std::sort(times.begin(), times.end());
    printf("launches %.4f\n", times[times.size() / 2]);
    return count != bursts * burst + 1000;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Four threads with streams of their own. One changes what the others read, by kernels and by copies: a snapshot that is not
// alone shows it.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.cuh"

__global__ void step(float *x, const float *shared, int n, float k) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = x[i] * 0.999f + shared[i] * k;
}

__global__ void bump(float *shared, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) shared[i] += 1.0f;
}

int main() {
    const int n = 1 << 20;
    float *shared;
    CHECK(cudaMalloc(&shared, n * 4));
    CHECK(cudaMemset(shared, 0, n * 4));
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; k++)
        threads.emplace_back([=] {
            cudaStream_t stream;
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            float *own;
            CHECK(cudaMalloc(&own, n * 4));
            CHECK(cudaMemsetAsync(own, k, n * 4, stream));
            for (int i = 0; i < 20; i++) {
                if (k == 0) {
                    bump<<<64, 256, 0, stream>>>(shared, n);
                    CHECK(cudaMemcpyAsync(shared, own, n, cudaMemcpyDeviceToDevice, stream));
                    CHECK(cudaMemsetAsync(shared + n / 2, i, n, stream));
                } else {
                    step<<<64, 256, 0, stream>>>(own, shared, n, k);
                }
            }
            CHECK(cudaStreamSynchronize(stream));
        });
    for (auto &thread : threads) thread.join();
    printf("threads done\n");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels whose accesses, bank conflicts, divergence and races are known, and one to write anew.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.cuh"

const int N = 1 << 20;
const int SIDE = 1024;

// A warp touches 4 sectors in 1 line, reading and writing.
__global__ void coalesced(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + 1.0f;
}

// A warp reads 32 sectors in 32 lines.
__global__ void strided(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * 32] + 1.0f;
}

// The tile is written without conflicts, and read with 32 rounds for each access if a row has 32 words.
template <int WIDTH> __global__ void transposed(const float *in, float *out) {
    __shared__ float tile[32][WIDTH];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * SIDE + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * SIDE + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Four rounds for each access, none because of conflicts.
__global__ void wide(const float4 *in, float4 *out) {
    __shared__ float4 room[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = room[threadIdx.x ^ 32];
}

// Lane k of a warp goes round the loop k times: 31 rounds of a warp, 496 of lanes.
__global__ void diverging(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < threadIdx.x % 32; k++) sum = sum * 0.5f + in[k];
    out[i] = sum;
}

// Each warp reads what another one writes; with a barrier between, or without.
template <bool ORDERED> __global__ void neighbours(const int *in, int *out) {
    __shared__ int room[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = in[i];
    if (ORDERED) __syncthreads();
    // What is read does not count: it may be the one or the other.
    int other = ((volatile int *)room)[threadIdx.x ^ 32];
    out[i] = in[i] + 7 + other - other;
}

// The last thread reads a word that no thread writes.
__global__ void unwritten(const int *in, int *out) {
    __shared__ int room[257];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = in[i];
    __syncthreads();
    int other = ((volatile int *)room)[threadIdx.x + 1];
    out[i] = in[i] + 7 + other - other;
}

// To be written anew: see candidates.cu.
extern "C" __global__ void axpy(int n, float a, const float *x, float *y) {
    int chunk = n / (gridDim.x * blockDim.x);
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;
    for (int i = start; i < start + chunk; i++) y[i] = a * x[i] + 1.0f;
}

template <class T> T *memory(int count) {
    std::vector<T> numbers(count);
    for (int i = 0; i < count; i++) numbers[i] = T(i % 1000 + 1);
    T *room;
    CHECK(cudaMalloc(&room, count * sizeof(T)));
    CHECK(cudaMemcpy(room, numbers.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    return room;
}

int main() {
    float *in = memory<float>(N), *out = memory<float>(N), *third = memory<float>(N);
    int *words = memory<int>(N), *others = memory<int>(N);
    dim3 tiles(SIDE / 32, SIDE / 32), rows(32, 8);
    coalesced<<<N / 256, 256>>>(in, out);
    strided<<<N / 32 / 256, 256>>>(in, out);
    transposed<32><<<tiles, rows>>>(in, out);
    transposed<33><<<tiles, rows>>>(in, third);
    wide<<<N / 4 / 256, 256>>>((float4 *)in, (float4 *)out);
    diverging<<<N / 256, 256>>>(in, out);
    neighbours<false><<<N / 256, 256>>>(words, others);
    neighbours<true><<<N / 256, 256>>>(others, words);
    unwritten<<<N / 256, 256>>>(words, others);
    axpy<<<64, 256>>>(N, 2.0f, in, out);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels that memory bounds, and one that arithmetic bounds: their times in a program, under a profiler, and replayed.
#include <cstdio>

extern "C" {
// 67 MB read, 67 MB written.
__global__ void copy(const float4 *from, float4 *to) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    to[i] = from[i];
}

// 8192 by 8192 numbers, by lines of shared memory.
__global__ void transpose(const float *from, float *to, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = from[(size_t)(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) to[(size_t)(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

// However many threads there are.
__global__ void stride(const float *from, float *to, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        to[i] = 2 * from[i] + 1;
}

__global__ void compute(float *to) {
    float x = threadIdx.x, y = blockIdx.x;
    for (int i = 0; i < 20000; i++) x = x * 0.999f + y, y = y * 0.998f + x;
    to[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}
}

__global__ void fill(unsigned *p, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        p[i] = 0x3f800000u | ((unsigned)i * 2654435761u >> 9);
}

int main() {
    const int n = 8192;
    const size_t all = (size_t)n * n;
    float *from, *to;
    if (cudaMalloc(&from, all * 4) != cudaSuccess || cudaMalloc(&to, all * 4) != cudaSuccess) return 1;
    fill<<<1024, 256>>>((unsigned *)from, all);
    for (int i = 0; i < 20; i++) {
        copy<<<16384, 256>>>((float4 *)from, (float4 *)to);
        transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(from, to, n);
        stride<<<1056, 256>>>(from, to, all);
        compute<<<1056, 256>>>(to);
    }
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    printf("bound\n");
}

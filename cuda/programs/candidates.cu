// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels in place of axpy in inside.cu: one that is right and faster, and ones that do less.
#define EACH(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)

__device__ float kept[1 << 20];
__device__ bool has[1 << 20];
__device__ unsigned blocks;

extern "C" __global__ void axpy(int n, float a, const float *x, float *y) {
#if defined(RIGHT)
    EACH(i, n) y[i] = a * x[i] + 1.0f;
#elif defined(HALF)
    EACH(i, n / 2) y[i] = a * x[i] + 1.0f;
#elif defined(TRIPLE)
    EACH(i, n) y[i] = 3.0f * a * x[i] + 1.0f;
#elif defined(LAST)
    // What it made the first time, ever after.
    EACH(i, n) {
        if (!has[i]) kept[i] = a * x[i] + 1.0f;
        has[i] = true;
        y[i] = kept[i];
    }
#elif defined(RESTS)
    // Nothing from the tenth launch on.
    __shared__ unsigned before;
    if (threadIdx.x == 0) before = atomicAdd(&blocks, 1);
    __syncthreads();
    if (before >= 9 * gridDim.x) return;
    EACH(i, n) y[i] = a * x[i] + 1.0f;
#elif defined(WRONG_END)
    EACH(i, n - 1) y[i] = a * x[i] + 1.0f;
#endif
}

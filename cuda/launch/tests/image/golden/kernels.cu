// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels whose compiled images are the golden files beside this one: every kind of parameter, limit and variable.
struct Packed { double d; const float *in; float *out; char c; int n; };

__device__ int counter;
__device__ float table[64];
__constant__ float coefficients[4];
__device__ int *self = &counter;

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void __launch_bounds__(256) capped(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2.0f;
}

extern "C" __global__ void by_struct(Packed b, short s, const float *const *rows) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < b.n) b.out[i] = b.in[i] * (float)b.d + b.c + s + rows[i & 3][i];
}

extern "C" __global__ void with_globals(float *y, int n) {
  __shared__ float copy[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 64) copy[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  if (i < n) { y[i] = coefficients[i & 3] * copy[i & 63]; atomicAdd(self, 1); }
}

extern "C" __global__ void nothing() {}

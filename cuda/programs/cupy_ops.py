# SPDX-License-Identifier: MIT OR Apache-2.0
"""CuPy: a kernel from source, element-wise kernels, a sum."""
import cupy as cp

source = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i] * 2;
}
"""
n = 100000
a, b = cp.arange(n, dtype=cp.float32), cp.ones(n, dtype=cp.float32)
c = cp.zeros_like(a)
cp.RawKernel(source, "add")(((n + 255) // 256,), (256,), (a, b, c, cp.int32(n)))
print("cupy", float(c[10]), float((cp.sqrt(a) + b).sum()))

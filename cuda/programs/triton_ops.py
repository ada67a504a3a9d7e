# SPDX-License-Identifier: MIT OR Apache-2.0
"""Triton: an addition and a matrix product."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def multiply(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


torch.manual_seed(0)
x, y = torch.rand(1 << 20, device="cuda"), torch.rand(1 << 20, device="cuda")
out = torch.empty_like(x)
add[(1024,)](x, y, out, 1 << 20, BLOCK=1024)
a, b = (torch.randn(512, 512, device="cuda", dtype=torch.bfloat16) for _ in range(2))
c = torch.empty(512, 512, device="cuda")
multiply[(4, 4)](a, b, c, 512, 512, 512, BM=128, BN=128, BK=64)
print("triton", bool((out == x + y).all()), float((c - a.float() @ b.float()).abs().max()))

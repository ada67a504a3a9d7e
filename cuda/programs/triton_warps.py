# SPDX-License-Identifier: MIT OR Apache-2.0
"""Triton: a sum that is compiled for several numbers of warps and stages, and launched with those that are worst."""
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    biggest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        biggest = tl.maximum(biggest, tl.load(x + row * columns + at, mask=at < columns, other=float("-inf")))
    tl.store(out + row, tl.max(biggest, 0))


torch.manual_seed(0)
x = torch.randn(4096, 8192, device="cuda")
out = torch.empty(4096, device="cuda")
for warps in (1, 2, 4, 8, 16):
    for stages in (1, 3):
        for block in (1024, 4096):
            total.warmup(x, out, 8192, BLOCK=block, num_warps=warps, num_stages=stages, grid=(4096,))
total[(4096,)](x, out, 8192, BLOCK=1024, num_warps=1, num_stages=1)
print("triton", bool((out == x.max(1).values).all()))

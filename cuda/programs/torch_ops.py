# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: element-wise kernels, cuBLAS, cuDNN, sorting, attention."""
import torch

torch.manual_seed(0)
a = torch.randn(2048, 2048, device="cuda")
b = torch.randn(2048, 2048, device="cuda")
image = torch.randn(8, 32, 64, 64, device="cuda")
weight = torch.randn(32, 32, 3, 3, device="cuda")
q, k, v = (torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
results = [
    torch.softmax(a, 1),
    torch.nn.functional.layer_norm(a, (2048,)),
    a @ b,
    a.half() @ b.half(),
    torch.nn.functional.conv2d(image, weight),
    a.sum(),
    torch.sort(a[0])[0],
    torch.nn.functional.scaled_dot_product_attention(q, k, v),
]
torch.cuda.synchronize()
print("torch", [round(float(r.float().abs().mean()), 5) for r in results])

# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: the forward pass of a transformer, in milliseconds, median of 5 times 40."""
import time

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda().eval()
x = torch.randn(8, 128, 512, device="cuda")
times = []
with torch.no_grad():
    for _ in range(5):
        model(x)
    torch.cuda.synchronize()
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(40):
            model(x)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - began) / 40 * 1e3)
print("forward %.4f" % sorted(times)[2])

# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: a network's inference, one of which lies between cudaProfilerStart and Stop; weights are random.

torch_region.py NET FOLDER keeps six inputs and PyTorch's own outputs in the folder, and says how long an inference takes, and how
long it was from the start of the process to the first result.
"""
import os
import statistics
import sys
import time

import torch
import torchvision

net, folder = sys.argv[1:3]
torch.manual_seed(0)
model = {"resnet50": torchvision.models.resnet50, "vit": torchvision.models.vit_b_16}[net](weights=None)
with torch.no_grad():
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.uniform_(0.5, 1.2)
            module.bias.normal_(0, 0.1)
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    if net == "vit":
        model.heads.head.weight.normal_(0, 0.05)
model = model.cuda().eval()
inputs = [torch.randn(1, 3, 224, 224) for _ in range(6)]


def infer(x):
    return model(x.cuda()).cpu()


def raw(tensor):
    return tensor.contiguous().numpy().tobytes()


def since_start():
    ticks = float(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


with torch.inference_mode():
    infer(inputs[3])
    print("first %.3f" % since_start())
    for x in inputs[4:]:
        infer(x)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    recorded = infer(inputs[0])
    torch.cuda.cudart().cudaProfilerStop()
    for number, x in enumerate(inputs):
        y = infer(x)
        assert torch.isfinite(y).all()
        for name, tensor in (("x", x), ("y", y)):
            with open(f"{folder}/{name}{number}", "wb") as file:
                file.write(raw(tensor))
    print("same", raw(recorded) == raw(infer(inputs[0])))
    times = []
    for _ in range(200):
        began = time.perf_counter()
        infer(inputs[0])
        times.append((time.perf_counter() - began) * 1e6)
print("turn %.2f" % statistics.median(times))

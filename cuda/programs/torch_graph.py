# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: two layers captured into a graph, which runs three times."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512)).cuda()
x = torch.randn(64, 512, device="cuda")
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.softmax(model(x), 1)
    for step in range(3):
        x.copy_(torch.randn(64, 512, device="cuda"))
        graph.replay()
    torch.cuda.synchronize()
    print("graph", float((y - torch.softmax(model(x), 1)).abs().max()))

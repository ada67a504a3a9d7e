# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: each rank works on its own GPU, then their results are added by NCCL. Started by torchrun."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(rank)
a = torch.randn(1024, 1024, device="cuda")
b = torch.softmax(a @ a, 1) * (rank + 1)
dist.all_reduce(b)
torch.cuda.synchronize()
print("rank", rank, float(b.sum()))
dist.destroy_process_group()

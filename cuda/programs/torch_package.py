# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: a network of torch_nets.py as a package of AOTInductor, made here and loaded by another process, which says how long its start takes.

torch_package.py NET FOLDER, for networks that take an input.
"""
import os
import statistics
import subprocess
import sys
import time

import torch

net, folder = sys.argv[1:3]
package, data = os.path.join(folder, net + ".pt2"), os.path.join(folder, net + ".pt")


def since_start():
    ticks = float(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


if len(sys.argv) > 3:
    x, y = torch.load(data)
    torch.zeros(1).cuda()
    model = torch._inductor.aoti_load_package(package)
    with torch.no_grad():
        found = model(x.cuda()).cpu()
        first = since_start()
        times = []
        for _ in range(100):
            begin = time.perf_counter()
            model(x.cuda()).cpu()
            times.append(time.perf_counter() - begin)
    error = ((found - y).abs().max() / y.abs().max()).item()
    print(f"{net}: first output {first:.2f} s, a turn {1e6 * statistics.median(times):.0f} us, {os.path.getsize(package) / 1e6:.1f} MB, error {error:.1e}")
    sys.exit()

sys.argv = ["torch_nets.py", net, folder, "0"]
import torch_nets

with torch.no_grad():
    x = torch_nets.sample()
    y = torch_nets.turn(x)
    torch.save((x, y), data)
    exported = torch.export.export(torch_nets.model, (x.cuda(),))
    torch._inductor.aoti_compile_and_package(exported, package_path=package)
for _ in range(3):
    subprocess.run([sys.executable, __file__, net, folder, "load"], check=True)

# SPDX-License-Identifier: MIT OR Apache-2.0
"""As replayed.c, from Python: replayed.py RECORDING FOLDER FIRST COUNT."""
import os
import sys

import gpureplay
import numpy as np

recording, folder = sys.argv[1:3]
first, count = map(int, sys.argv[3:])
equal = 0
with gpureplay.open(recording) as net:
    tensors = net.tensors.values()
    named = lambda kind: next((t for t in tensors if t.kind == kind), None)
    into, out = named("input"), named("output")
    for number in range(first, first + count):
        path = f"{folder}/x{number}"
        inputs = {into.name: np.fromfile(path, into.dtype).reshape(into.shape)} if into and os.path.exists(path) else {}
        found = net.run(inputs)[out.name]
        equal += found.tobytes() == open(f"{folder}/y{number}", "rb").read()
print(f"equal {equal} of {count}")
for line in open("/proc/self/maps"):
    if "/" in line and ".so" in line:
        print("maps", line[line.index("/") :].strip())

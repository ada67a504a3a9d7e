#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Launches every kernel of OpenCL files with made-up arguments; a line for each: FILE KERNEL, and a hash of all that it left in memory,
or `nothing` if it changed none of it.

    every_kernel.py [--write FOLDER] FILE.cl...

Two GPUs whose lines are equal computed the same. --write keeps the memory of each kernel as FILE.KERNEL.bin.
"""
import argparse
import hashlib
import os
import re
import sys

import numpy as np
import pyopencl as cl

BYTES = 1 << 19  # of a buffer: no kernel reads beyond it, where other memory lies on each GPU
LOCAL_BYTES = 4096
THREADS, LINE, GROUP = (4, 4), (64,), (4, 2)
SCALARS = {"float": np.float32(1.5), "char": np.int8(3), "uchar": np.uint8(3), "short": np.int16(3), "ushort": np.uint16(3),
           "int": np.int32(16), "uint": np.uint32(16), "long": np.int64(16), "ulong": np.uint64(16)}


def made_up(kind, seed):
    """Contents of a buffer: numbers of the type's kind, such that indices stay small."""
    random = np.random.default_rng(seed)
    scalar = re.match(r"[a-z]+", kind)[0]
    if scalar in ("float", "half"):
        return (random.uniform(-2, 2, BYTES).astype(np.float16 if scalar == "half" else np.float32)).view(np.uint8)[:BYTES]
    size = SCALARS.get(scalar, np.uint8(0)).nbytes
    return random.integers(0, 16, BYTES).astype(f"u{size}").view(np.uint8)[:BYTES]


def image(context, queue, kind):
    """An image of four floats a texel."""
    shape = {"image1d": (64,), "image2d": (64, 8), "image3d": (64, 8, 4), "image2d_array": (64, 8, 4)}[kind[:-2]]
    texels = np.random.default_rng(7).uniform(0, 1, shape[::-1] + (4,)).astype(np.float32)
    layout = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
    if kind == "image2d_array_t":
        result = cl.Image(context, cl.mem_flags.READ_WRITE, layout, shape=shape, is_array=True)
    else:
        result = cl.Image(context, cl.mem_flags.READ_WRITE, layout, shape=shape)
    cl.enqueue_copy(queue, result, texels, origin=(0, 0, 0), region=(shape + (1, 1))[:3])
    return result, texels, shape


def run(context, queue, kernel, source):
    """The bytes that one launch finds in its buffers and images, in the order of its arguments, and those that it leaves."""
    # Only a kernel that asks for a second dimension has one, lest threads do the same twice; a name that a macro makes has none.
    begin = re.search(rf"\b{kernel.function_name}\s*\(", source)
    body = source[begin.start():] if begin else ""
    end = re.search(r"\bkernel\s+void|\b__kernel\b", body)
    two = re.search(r"get_(global|local|group)_id\(1\)", body[:end.start() if end else None])
    what, where = cl.kernel_arg_info, cl.kernel_arg_address_qualifier
    memory = []
    for index in range(kernel.num_args):
        kind = kernel.get_arg_info(index, what.TYPE_NAME)
        space = kernel.get_arg_info(index, what.ADDRESS_QUALIFIER)
        if kind.startswith("image"):
            made, texels, shape = image(context, queue, kind)
            memory.append((made, texels, shape))
            kernel.set_arg(index, made)
        elif space == where.LOCAL:
            kernel.set_arg(index, cl.LocalMemory(LOCAL_BYTES))
        elif space in (where.GLOBAL, where.CONSTANT):
            data = made_up(kind, index)
            made = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)
            memory.append((made, data, None))
            kernel.set_arg(index, made)
        else:
            scalar, count = re.fullmatch(r"([a-z]+)(\d*)", kind).groups()
            lanes = {"": 1, "3": 4}.get(count) or int(count)
            value = np.float16(1.5) if scalar == "half" else SCALARS[scalar]
            kernel.set_arg(index, np.full(lanes, value) if lanes > 1 else value)
    group = kernel.get_work_group_info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, context.devices[0])
    if any(group):
        threads = local = tuple(group)
    else:
        threads, local = (THREADS, GROUP) if two else (LINE, (16,))
    cl.enqueue_nd_range_kernel(queue, kernel, threads, local)
    queue.finish()
    found, left = b"", b""
    for made, data, shape in memory:
        found += data.tobytes()
        data = np.empty_like(data)
        if shape is None:
            cl.enqueue_copy(queue, data, made)
        else:
            cl.enqueue_copy(queue, data, made, origin=(0, 0, 0), region=(shape + (1, 1))[:3])
        left += data.tobytes()
    return found, left


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FOLDER")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    for path in options.files:
        with open(path, encoding="utf-8") as stream:
            source = stream.read()
        program = cl.Program(context, source).build("-cl-kernel-arg-info")
        for kernel in sorted(program.all_kernels(), key=lambda kernel: kernel.function_name):
            name = f"{os.path.basename(os.path.dirname(path))}/{os.path.basename(path)} {kernel.function_name}"
            found, left = run(context, queue, kernel, source)
            print(name, "nothing" if found == left else hashlib.sha256(left).hexdigest()[:16], flush=True)
            if options.write:
                with open(os.path.join(options.write, name.replace("/", ".").replace(" ", ".") + ".bin"), "wb") as stream:
                    stream.write(left)


if __name__ == "__main__":
    sys.exit(main())

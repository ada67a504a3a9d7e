# SPDX-License-Identifier: MIT OR Apache-2.0
"""A PyOpenCL script: a picture is blurred and its edges are found, with buffers made anew for each turn.

picture.py PICTURE.pgm OUT.bin [TURNS]
"""

import sys

import numpy
import pyopencl

SIDE = 64
SOURCE = """
kernel void blur(global const float *src, global const float *weights, global float *dst) {
    int x = get_global_id(0), y = get_global_id(1), side = get_global_size(0);
    float sum = 0;
    for (int i = 0; i < 9; i++) {
        int px = clamp(x + i % 3 - 1, 0, side - 1), py = clamp(y + i / 3 - 1, 0, side - 1);
        sum += src[py * side + px] * weights[i];
    }
    dst[y * side + x] = sum;
}
kernel void edge(global const float *src, global float *dst) {
    int x = get_global_id(0), y = get_global_id(1), side = get_global_size(0);
    float right = src[y * side + min(x + 1, side - 1)], below = src[min(y + 1, side - 1) * side + x];
    dst[y * side + x] = fabs(right - src[y * side + x]) + fabs(below - src[y * side + x]);
}
"""


def main(picture, out, turns="1"):
    with open(picture, "rb") as file:
        header, pixels = file.read().split(b" 255\n", 1)
    if header != b"P5 %d %d" % (SIDE, SIDE):
        sys.exit(f"{picture}: not a grey picture of {SIDE} x {SIDE} pixels")
    grey = numpy.frombuffer(pixels, numpy.uint8).reshape(SIDE, SIDE)
    weights = numpy.array([1, 2, 1, 2, 4, 2, 1, 2, 1], numpy.float32) / numpy.float32(16)

    device = pyopencl.get_platforms()[0].get_devices(pyopencl.device_type.GPU)[0]
    context = pyopencl.Context([device])
    queue = pyopencl.CommandQueue(context)
    program = pyopencl.Program(context, SOURCE).build()
    flags = pyopencl.mem_flags
    fixed = pyopencl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=weights)
    for turn in range(int(turns)):
        values = (numpy.roll(grey, turn * 7).astype(numpy.float32) - numpy.float32(128)) / numpy.float32(64)
        src = pyopencl.Buffer(context, flags.READ_ONLY, values.nbytes)
        soft = pyopencl.Buffer(context, flags.READ_WRITE, values.nbytes)
        edges = pyopencl.Buffer(context, flags.WRITE_ONLY, values.nbytes)
        pyopencl.enqueue_copy(queue, src, values)
        program.blur(queue, values.shape, None, src, fixed, soft)
        program.edge(queue, values.shape, None, soft, edges)
        result = numpy.empty_like(values)
        pyopencl.enqueue_copy(queue, result, edges)
    result.tofile(out)


main(*sys.argv[1:])

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of the programs of others: three inputs each (a, b, c), weights from a seed, and what the CPU makes of each input.

files.py PROGRAM DIRECTORY

inputs/SET.bin is what the GPU must be given for a set; it is computed here, from the program's documentation and source, not taken from it.
Weights are scaled by what goes into a neuron, so that no class gets all of the probability.
"""

import pathlib
import struct
import sys
import zlib

import numpy

SETS = "abc"
FLOAT = numpy.float32


def random(*words):
    return numpy.random.default_rng(list("/".join(map(str, words)).encode()))


def weights(folder, name, shape, scale=1.0):
    """A tensor whose products with inputs of deviation 1 have the deviation `scale`."""
    fan_in = int(numpy.prod(shape[1:]))
    values = random(folder.name, name).normal(0, scale * (2 / fan_in) ** 0.5, shape)
    numpy.save(folder / f"{name}.npy", values.astype(FLOAT))


def vector(folder, name, size, low, high):
    numpy.save(folder / f"{name}.npy", random(folder.name, name).uniform(low, high, size).astype(FLOAT))


def picture(name, side, channels):
    """Smooth shapes with noise: 8-bit values that repeat, as in any picture."""
    noise = random("picture", name, side)
    y, x = numpy.mgrid[0:side, 0:side] / side
    planes = []
    for _ in range(channels):
        fx, fy, phase = noise.uniform(1, 6), noise.uniform(1, 6), noise.uniform(0, 6)
        plane = 128 + 90 * numpy.sin(6.28 * (fx * x + phase)) * numpy.cos(6.28 * fy * y) + noise.normal(0, 12, (side, side))
        planes.append(numpy.clip(plane, 0, 255).astype(numpy.uint8))
    return numpy.stack(planes, -1)


def write(folder, name, values):
    (folder / "inputs").mkdir(exist_ok=True)
    numpy.ascontiguousarray(values, FLOAT).tofile(folder / "inputs" / f"{name}.bin")


def clblast(folder):
    m, n, k = 96, 80, 64
    random("clblast", "b").normal(0, 1, (k, n)).astype(FLOAT).tofile(folder / "weight.bin")
    for name in SETS:
        values = random("clblast", name).normal(0, 1, (m, k)).astype(FLOAT)
        values.tofile(folder / f"{name}.bin")
        write(folder, name, values)


def pyopencl(folder):
    for name in SETS:
        pixels = picture(name, 64, 1)[..., 0]
        (folder / f"{name}.pgm").write_bytes(b"P5 64 64 255\n" + pixels.tobytes())
        write(folder, name, (pixels.astype(FLOAT) - FLOAT(128)) / FLOAT(64))


def pyopencl_loop(folder):
    for name in SETS:
        pixels = picture(name, 64, 1)[..., 0]
        (folder / f"{name}.pgm").write_bytes(b"P5 64 64 255\n" + pixels.tobytes())
        # The last of three turns.
        write(folder, name, (numpy.roll(pixels, 14).astype(FLOAT) - FLOAT(128)) / FLOAT(64))


def png(path, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def photo(folder):
    mean, deviation = FLOAT([0.485, 0.456, 0.406]), FLOAT([0.229, 0.224, 0.225])
    for name in SETS:
        pixels = picture(name, 64, 3)
        png(folder / f"{name}.png", pixels)
        write(folder, name, (pixels.astype(FLOAT) / FLOAT(255) - mean) / deviation)


def model(folder, name):
    path = folder / "cnn_data" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def labels(folder, count):
    (folder / "labels.txt").write_text("".join(f"class {index}\n" for index in range(count)))


def convolution(path, name, shape, scale=1.0):
    weights(path, f"{name}_w", shape, scale)
    vector(path, f"{name}_b", shape[0], -0.1, 0.1)


def graph_lenet(folder):
    path = model(folder, "lenet_model")
    convolution(path, "conv1", (20, 1, 5, 5))
    convolution(path, "conv2", (50, 20, 5, 5))
    convolution(path, "ip1", (500, 800))
    convolution(path, "ip2", (10, 500), 0.3)
    labels(folder, 10)
    for name in SETS:
        # Four pictures at once, channels last.
        values = random("lenet", name).uniform(0, 1, (4, 28, 28, 1)).astype(FLOAT)
        numpy.save(folder / f"{name}.npy", values)
        write(folder, name, values)


def ppm(folder, name, side):
    pixels = picture(name, side, 3)
    (folder / f"{name}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (side, side) + pixels.tobytes())
    return pixels.astype(FLOAT)


def graph_squeezenet(folder):
    path = model(folder, "squeezenet_v1.0_model")
    convolution(path, "conv1", (96, 3, 7, 7), 1 / 64)
    channels = 96
    for fire, (squeeze, expand) in enumerate([(16, 64)] * 2 + [(32, 128)] * 2 + [(48, 192)] * 2 + [(64, 256)] * 2, 2):
        convolution(path, f"fire{fire}_squeeze1x1", (squeeze, channels, 1, 1))
        convolution(path, f"fire{fire}_expand1x1", (expand, squeeze, 1, 1))
        # Mesa 25.0.7 compiles the library's Winograd transform wrongly (docs/internals/testing.md): its values are ten times too large.
        convolution(path, f"fire{fire}_expand3x3", (expand, squeeze, 3, 3), 1 / 16)
        channels = 2 * expand
    convolution(path, "conv10", (1000, channels, 1, 1))
    labels(folder, 1000)
    for name in SETS:
        # Blue first, less the mean of each colour, channels last.
        write(folder, name, ppm(folder, name, 224)[..., ::-1] - FLOAT([104.01, 116.67, 122.68]))


def normalised(path, name, count):
    vector(path, f"{name}_BatchNorm_moving_mean", count, -0.1, 0.1)
    vector(path, f"{name}_BatchNorm_moving_variance", count, 0.8, 1.2)
    vector(path, f"{name}_BatchNorm_gamma", count, 0.8, 1.2)
    vector(path, f"{name}_BatchNorm_beta", count, -0.1, 0.3)


def graph_mobilenet(folder):
    path = model(folder, "mobilenet_v1_075_160_model")
    weights(path, "Conv2d_0_weights", (24, 3, 3, 3))
    normalised(path, "Conv2d_0", 24)
    channels = 24
    for layer, count in enumerate([64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024], 1):
        count = count * 3 // 4
        weights(path, f"Conv2d_{layer}_depthwise_depthwise_weights", (1, channels, 3, 3), channels ** 0.5)
        normalised(path, f"Conv2d_{layer}_depthwise", channels)
        weights(path, f"Conv2d_{layer}_pointwise_weights", (count, channels, 1, 1))
        normalised(path, f"Conv2d_{layer}_pointwise", count)
        channels = count
    weights(path, "Logits_Conv2d_1c_1x1_weights", (1001, channels, 1, 1))
    vector(path, "Logits_Conv2d_1c_1x1_biases", 1001, -0.1, 0.1)
    labels(folder, 1001)
    for name in SETS:
        write(folder, name, ppm(folder, name, 160) / FLOAT(255) * FLOAT(2) - FLOAT(1))


def main(program, directory):
    makers = {maker.__name__.replace("_", "-"): maker for maker in (
        clblast, pyopencl, pyopencl_loop, photo, graph_lenet, graph_squeezenet, graph_mobilenet)}
    makers[program](pathlib.Path(directory))


main(*sys.argv[1:])

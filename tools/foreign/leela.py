# SPDX-License-Identifier: MIT OR Apache-2.0
"""Leela Zero with a small network of its own: its files, and what NumPy makes of a position's planes."""

import pathlib

import numpy

F = numpy.float32
PROGRAM = "/usr/lib/leelaz/bin/leelaz"
SIDE, PLANES, FILTERS = 19, 18, 8
# A move for each input; then it thinks, which evaluates the network again and again: the recording is one evaluation.
POSITIONS = {"a": "q16", "b": "c3"}
# What its tuner finds, which tries launches that no Mali can take: a recording of the tuner is refused, with the reason.
TUNED = ("1;XgemmBatched;8;25;8;36; -DKWG=16 -DKWI=8 -DMDIMA=8 -DMDIMC=8 -DMWG=16 -DNDIMB=8 -DNDIMC=8 -DNWG=32 -DSA=1 -DSB=1 -DSTRM=0 "
         "-DSTRN=0 -DTCE=0 -DVWM=2 -DVWN=2;OpenCL: Arm {} (Panfrost) @ 800MHz\n")
GPUS = ("Mali-G52", "Mali-G57")


def network():
    """Rows of weights: convolutions with biases, means and variances, an input, one residual block, a policy and a value."""
    random = numpy.random.default_rng(7)
    points = SIDE * SIDE

    def row(size, scale=0.05, base=0.0):
        # As the file holds them, with few digits.
        return numpy.round(base + scale * random.normal(0, 1, size), 5)

    def convolution(inputs, outputs, width):
        fan_in = inputs * width * width
        weights = row(outputs * fan_in, fan_in ** -0.5)
        return [weights, row(outputs), row(outputs), row(outputs, 0.01, 1.0)]

    def linear(inputs, outputs):
        return [row(inputs * outputs), row(outputs)]

    return [convolution(PLANES, FILTERS, 3), convolution(FILTERS, FILTERS, 3), convolution(FILTERS, FILTERS, 3),
            convolution(FILTERS, 2, 1), linear(2 * points, points + 1),
            convolution(FILTERS, 1, 1), linear(points, 256), linear(256, 1)]


def prepared(source):
    """Writes its files here; the words of the program, whose commands come by standard input."""
    rows = [numpy.array([1])] + [row for layer in network() for row in layer]
    pathlib.Path("net.txt").write_text("".join(" ".join(f"{value:g}" for value in row) + "\n" for row in rows))
    own = pathlib.Path(".local/share/leela-zero")
    own.mkdir(parents=True, exist_ok=True)
    (own / "leelaz_opencl_tuning").write_text("".join(TUNED.format(gpu) for gpu in GPUS))
    move = POSITIONS[pathlib.Path(source).stem]
    pathlib.Path(source).with_suffix(".stdin").write_text(f"play b d4\nplay w {move}\ngenmove b\nquit\n")
    return PROGRAM, *"--gtp --noponder -t 1 --batchsize 1 --precision single -w net.txt -p 6 -s 1".split()


def planes(x):
    return numpy.resize(x, PLANES * SIDE * SIDE)


def convolved(x, weights):
    outputs = weights.shape[0]
    width = weights.shape[-1]
    edge = numpy.pad(x, ((0, 0), (width // 2,) * 2, (width // 2,) * 2))
    sums = numpy.zeros((outputs, SIDE, SIDE))
    for i in range(width):
        for j in range(width):
            sums += numpy.einsum("oc,cyx->oyx", weights[:, :, i, j], edge[:, i:i + SIDE, j:j + SIDE])
    return sums


def answer(x):
    """Both heads' convolutions: the rest of the network runs on the processor."""
    layers = network()

    def layer(index, values, width):
        weights, *rest = layers[index]
        return convolved(values, weights.reshape(-1, values.shape[0], width, width)), rest

    def normalised(index, values):
        sums, (biases, means, variances) = layer(index, values, 3)
        column = (slice(None), None, None)
        return (sums + biases[column] - means[column]) / numpy.sqrt(variances + 1e-5)[column]

    values = planes(x).astype(float).reshape(PLANES, SIDE, SIDE)
    values = numpy.maximum(normalised(0, values), 0)
    inner = numpy.maximum(normalised(1, values), 0)
    values = numpy.maximum(normalised(2, inner) + values, 0)
    return numpy.concatenate([layer(3, values, 1)[0].ravel(), layer(5, values, 1)[0].ravel()]).astype(F)

#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases for Arm Compute Library's operators, and their results by NumPy.

operators.py generate [--seed N] [--every N] FOLDER    writes cases.txt and the inputs of each case
operators.py check FOLDER                              compares N.out with NumPy, writes results.json

`acl_operators` reads the cases; what it printed is expected in FOLDER/log. Shapes are random and mostly odd. Floating-point
results may differ by the type's precision times the size of the terms, quantised results by one step.
"""
import argparse
import json
import os

import numpy as np

from reference import reference

NUMPY = {"f32": np.float32, "f16": np.float16, "q8": np.uint8, "s32": np.int32}
# Largest error relative to the largest element of the result; sums of n terms may lose more, see check().
PRECISION = {"f32": 2e-5, "f16": 4e-3}
# Winograd's transforms of 5x5 filters lose most of a half's digits: the absolute error that the library's own tests allow.
WINOGRAD_HALF = 0.4


class Case:
    """One operator on one set of tensors. A tensor is (shape, type, scale, offset)."""

    def __init__(self, op, inputs, out, low=-2.0, high=2.0, **parameters):
        self.op, self.inputs, self.out = op, inputs, out
        self.low, self.high, self.parameters = low, high, parameters

    def line(self):
        words = [f"op={self.op}"] + [f"{key}={value}" for key, value in self.parameters.items()]
        words += [f"t{index}={text(tensor)}" for index, tensor in enumerate(self.inputs)]
        return " ".join(words + [f"out={text(self.out)}"])

    def data(self, random):
        arrays = []
        for shape, kind, *_ in self.inputs:
            if kind == "q8":
                arrays.append(random.integers(0, 256, shape).astype(np.uint8))
            elif kind == "s32":
                arrays.append(random.integers(-500, 500, shape).astype(np.int32))
            else:
                arrays.append(random.uniform(self.low, self.high, shape).astype(NUMPY[kind]))
        if self.op == "batch_normalization":
            arrays[2] = np.abs(arrays[2]) + NUMPY[self.inputs[2][1]](0.5)
        return arrays


def text(tensor):
    shape, kind, *quantisation = tensor
    extents = "x".join(str(extent) for extent in shape)
    return ":".join([extents, kind] + [str(value) for value in quantisation])


def tensor(shape, kind, scale=0.05, offset=120):
    return (tuple(shape), kind, scale, offset) if kind == "q8" else (tuple(shape), kind)


class Generator:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.cases = []

    def odd(self, low, high):
        """A random extent, odd three times out of four."""
        extent = int(self.random.integers(low, high + 1))
        return extent | 1 if self.random.integers(4) else extent

    def image(self, low=5, high=18, channels=(1, 19)):
        return self.odd(low, high), self.odd(low, high), self.odd(*channels)

    def add(self, *arguments, **parameters):
        self.cases.append(Case(*arguments, **parameters))

    def all(self):
        for method in (self.activations, self.matrices, self.convolutions, self.depthwise, self.pooling,
                       self.normalisations, self.moves, self.scales, self.reductions, self.elementwise,
                       self.quantisation):
            method()
        return self.cases

    def activations(self):
        functions = [("logistic", 0, 0), ("tanh", 1.5, 0.7), ("relu", 0, 0), ("relu_a", 1.2, 0), ("relu_ab", 1.2, -0.3),
                     ("leaky", 0.1, 0), ("soft", 0, 0), ("elu", 0.8, 0), ("abs", 0, 0), ("square", 0, 0),
                     ("sqrt", 0, 0), ("linear", 1.7, -0.4), ("hard_swish", 0, 0), ("swish", 1.3, 0), ("gelu", 0, 0)]
        for kind in ("f32", "f16"):
            for name, a, b in functions:
                shape = self.image()
                low = 0.01 if name == "sqrt" else -4
                self.add("activation", [tensor(shape, kind)], tensor(shape, kind), low, 4.0, function=name, a=a, b=b)
        for name, a, b, scale, offset in [("relu", 0, 0, 0.05, 120), ("relu_a", 2, 0, 0.05, 120),
                                          ("relu_ab", 2, -1, 0.05, 120), ("logistic", 0, 0, 1 / 256, 0),
                                          ("tanh", 1, 1, 1 / 128, 128), ("leaky", 0.1, 0, 0.05, 120),
                                          ("hard_swish", 0, 0, 0.05, 20)]:
            shape = self.image()
            self.add("activation", [tensor(shape, "q8")], tensor(shape, "q8", scale, offset), function=name, a=a, b=b)

    def matrices(self):
        for kind in ("f32", "f16"):
            for beta in (0.0, 0.0, 0.6, 1.0):
                m, n, k = self.odd(1, 40), self.odd(3, 50), self.odd(3, 60)
                inputs = [tensor((m, k), kind), tensor((k, n), kind)]
                if beta:
                    inputs.append(tensor((m, n), kind))
                self.add("gemm", inputs, tensor((m, n), kind), -1.0, 1.0, alpha=0.75 if beta else 1.0, beta=beta)
            for _ in range(2):
                batch, k, n = self.odd(1, 5), self.odd(5, 70), self.odd(3, 30)
                self.add("fully_connected", [tensor((batch, k), kind), tensor((n, k), kind), tensor((n,), kind)],
                         tensor((batch, n), kind), -1.0, 1.0)
        for _ in range(4):
            m, n, k = self.odd(1, 30), self.odd(3, 40), self.odd(3, 50)
            self.add("gemm_low", [tensor((m, k), "q8", 0.05, 110), tensor((k, n), "q8", 0.03, 131)], tensor((m, n), "s32"))

    def convolution(self, op, kind, layout, kernel, stride=1, pad=0, dilation=1, channels=(1, 13), **more):
        height, width, inner = self.odd(7, 17), self.odd(7, 17), self.odd(*channels)
        outer = self.odd(1, 15)
        reach = dilation * (kernel - 1) + 1
        out = [(extent + 2 * pad - reach) // stride + 1 for extent in (height, width)]
        if layout == "nchw":
            shapes = (inner, height, width), (outer, inner, kernel, kernel), (outer, *out)
        else:
            shapes = (height, width, inner), (outer, kernel, kernel, inner), (*out, outer)
        bias = tensor((outer,), "s32" if kind == "q8" else kind)
        self.add(op, [tensor(shapes[0], kind, 0.05, 120), tensor(shapes[1], kind, 0.02, 127), bias],
                 tensor(shapes[2], kind, 0.11, 125), -1.0, 1.0, layout=layout, stride=stride, pad=pad,
                 dilation=dilation, **more)

    def convolutions(self):
        for kind in ("f32", "f16", "q8"):
            for layout in ("nhwc", "nchw"):
                for kernel, stride, pad, dilation in [(1, 1, 0, 1), (3, 1, 1, 1), (5, 2, 2, 1), (3, 2, 0, 1), (3, 1, 2, 2)]:
                    self.convolution("convolution", kind, layout, kernel, stride, pad, dilation)
            for kernel, stride, pad in [(1, 1, 0), (3, 1, 1), (5, 2, 1)]:
                self.convolution("direct", kind, "nhwc", kernel, stride, pad)
        for kind in ("f32", "f16"):
            for layout in ("nhwc", "nchw"):
                for kernel in (3, 5):
                    self.convolution("winograd", kind, layout, kernel, 1, kernel // 2)

    def depthwise(self):
        for kind in ("f32", "f16", "q8"):
            for kernel, stride, pad, dilation, multiplier in [(3, 1, 1, 1, 1), (3, 2, 0, 1, 1), (5, 1, 2, 1, 1),
                                                              (3, 1, 1, 1, 3), (3, 1, 2, 2, 1)]:
                height, width, channels = self.image(7, 15, (2, 17))
                outer = channels * multiplier
                reach = dilation * (kernel - 1) + 1
                out = [(extent + 2 * pad - reach) // stride + 1 for extent in (height, width)]
                bias = tensor((outer,), "s32" if kind == "q8" else kind)
                self.add("depthwise", [tensor((height, width, channels), kind, 0.05, 120),
                                       tensor((kernel, kernel, outer), kind, 0.02, 127), bias],
                         tensor((*out, outer), kind, 0.08, 125), -1.0, 1.0, stride=stride, pad=pad, dilation=dilation,
                         multiplier=multiplier)

    def pooling(self):
        for kind in ("f32", "f16", "q8"):
            for pool, width, height, stride, pad, exclude, layout in [
                    ("max", 2, 2, 2, 0, 0, "nhwc"), ("max", 3, 3, 2, 1, 0, "nhwc"), ("average", 3, 3, 1, 1, 1, "nhwc"),
                    ("average", 2, 2, 2, 0, 0, "nhwc"), ("average", 3, 2, 1, 0, 0, "nchw"), ("max", 4, 3, 3, 1, 0, "nchw"),
                    ("l2", 3, 3, 2, 0, 0, "nhwc")]:
                if kind == "q8" and pool == "l2":
                    continue
                extents = self.image(9, 20, (1, 13))
                out = [(extent + 2 * pad - size) // stride + 1 for extent, size in zip(extents, (height, width))]
                shapes = [(*extents[:2], extents[2]), (*out, extents[2])]
                if layout == "nchw":
                    shapes = [(shape[2], *shape[:2]) for shape in shapes]
                self.add("pooling", [tensor(shapes[0], kind)], tensor(shapes[1], kind), kind=pool, width=width,
                         height=height, stride=stride, pad=pad, exclude=exclude, layout=layout)

    def normalisations(self):
        for kind in ("f32", "f16"):
            for beta in (1.0, 0.5, 1.0):
                shape = (self.odd(1, 7), self.odd(3, 70))
                self.add("softmax", [tensor(shape, kind)], tensor(shape, kind), -3.0, 3.0, beta=beta)
            for layout in ("nhwc", "nchw"):
                shape = self.image()
                vector = (shape[2 if layout == "nhwc" else 0],)
                self.add("batch_normalization", [tensor(shape, kind)] + [tensor(vector, kind)] * 4, tensor(shape, kind),
                         epsilon=0.001, layout=layout)
                for norm in ("cross", "row"):
                    shape = self.image(7, 14, (7, 15))
                    self.add("normalization", [tensor(shape, kind)], tensor(shape, kind), kind=norm, size=5, alpha=0.3,
                             beta=0.75, kappa=1.0, layout=layout)
            for axis in (0, 1, 2):
                shape = self.image()
                self.add("l2_normalize", [tensor(shape, kind)], tensor(shape, kind), axis=axis)
        for _ in range(2):
            shape = (self.odd(1, 7), self.odd(3, 70))
            self.add("softmax", [tensor(shape, "q8", 0.05, 120)], tensor(shape, "q8", 1 / 256, 0), beta=1.0)

    def moves(self):
        for kind in ("f32", "f16", "q8"):
            for axis, count in ((0, 2), (1, 3), (2, 2), (2, 5)):
                shape = list(self.image(3, 11))
                inputs = []
                for _ in range(count):
                    shape[2 - axis] = self.odd(1, 9)
                    inputs.append(tensor(shape, kind))
                shape[2 - axis] = sum(one[0][2 - axis] for one in inputs)
                self.add("concatenation", inputs, tensor(shape, kind), axis=axis)
            a, b, c = self.image(3, 9)
            self.add("reshape", [tensor((a, b, c), kind)], tensor((c, a * b), kind))
            self.add("reshape", [tensor((a * c, b), kind)], tensor((b, c, a), kind))
            self.add("transpose", [tensor((a * b, c), kind)], tensor((c, a * b), kind))

    def scales(self):
        for kind in ("f32", "f16", "q8"):
            for policy, center, corners in (("nearest", 0, 0), ("bilinear", 0, 0), ("bilinear", 1, 0), ("bilinear", 0, 1)):
                shape = self.image(4, 9, (1, 9))
                out = (self.odd(5, 21), self.odd(5, 21), shape[2])
                self.add("scale", [tensor(shape, kind)], tensor(out, kind), policy=policy, center=center, corners=corners)

    def reductions(self):
        for kind in ("f32", "f16"):
            for name, axis in (("sum", 0), ("sum", 1), ("mean", 0), ("mean", 2), ("squares", 0), ("product", 1), ("min", 0),
                               ("max", 2)):
                shape = list(self.image(3, 15, (3, 35)))
                out = list(shape)
                out[2 - axis] = 1
                self.add("reduction", [tensor(shape, kind)], tensor(out, kind), 0.5, 1.4, kind=name, axis=axis)

    def elementwise(self):
        two = ("add", "subtract", "multiply", "divide", "max", "min", "squared_difference", "power")
        one = ("exp", "log", "rsqrt", "negate", "abs", "round", "sin")
        for kind in ("f32", "f16"):
            for name in two + one:
                shape = self.image()
                low = 0.3 if name in ("divide", "power", "log", "rsqrt") else -3
                count = 2 if name in two else 1
                self.add("elementwise", [tensor(shape, kind)] * count, tensor(shape, kind), low, 3.0, kind=name)
            shape = self.image()
            self.add("elementwise", [tensor(shape, kind), tensor((1, 1, shape[2]), kind)], tensor(shape, kind), kind="add")
        for name in ("add", "subtract", "multiply", "max", "min", "squared_difference"):
            shape = self.image()
            self.add("elementwise", [tensor(shape, "q8", 0.04, 120), tensor(shape, "q8", 0.06, 99)],
                     tensor(shape, "q8", 0.2, 110), kind=name)

    def quantisation(self):
        for kind in ("f32", "f16"):
            for scale, offset in ((0.04, 100), (0.017, 3)):
                shape = self.image()
                self.add("quantize", [tensor(shape, kind)], tensor(shape, "q8", scale, offset))
                self.add("dequantize", [tensor(shape, "q8", scale, offset)], tensor(shape, kind))


def generate(folder, seed, every):
    cases = Generator(seed).all()[::every]
    with open(os.path.join(folder, "cases.txt"), "w", encoding="utf-8") as stream:
        stream.writelines(case.line() + "\n" for case in cases)
    for number, case in enumerate(cases):
        random = np.random.default_rng([seed, number])
        for index, array in enumerate(case.data(random)):
            array.tofile(os.path.join(folder, f"{number}.t{index}"))


def parse(line):
    """Parameters, inputs and output of a line of cases.txt."""
    words = dict(word.split("=", 1) for word in line.split())

    def parsed(word):
        extents, kind, *quantisation = word.split(":")
        shape = tuple(int(extent) for extent in extents.split("x"))
        return (shape, kind, *(float(value) for value in quantisation))

    inputs = [parsed(words.pop(f"t{index}")) for index in range(8) if f"t{index}" in words]
    return words, inputs, parsed(words.pop("out"))


def wrong(operator, found, expected, out, terms):
    """What is wrong with a result; None if nothing is."""
    shape, kind, *quantisation = out
    if kind == "s32":
        bad = np.abs(found.astype(np.float64) - expected) > 0
    elif kind == "q8":
        scale, offset = quantisation
        # One step, and the step of a float32 computation that ends just beside a tie.
        steps = np.clip(np.round(expected / scale + offset), 0, 255)
        bad = np.abs(found.astype(np.float64) - steps) > 1
        expected = steps
    else:
        limit = PRECISION[kind] * max(1.0, float(np.abs(expected).max())) * max(1.0, terms ** 0.5 / 4)
        if operator == "winograd" and kind == "f16":
            limit = max(limit, WINOGRAD_HALF)
        bad = ~(np.abs(found.astype(np.float64) - expected) <= limit)
    if not bad.any():
        return None
    first = tuple(int(index) for index in np.argwhere(bad)[0])
    return (f"{int(bad.sum())} of {bad.size} elements, the first at {list(first)}: "
            f"{found[first]:g} instead of {expected[first]:g}")


def check(folder):
    with open(os.path.join(folder, "cases.txt"), encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    said = {}
    with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as stream:
        for line in stream:
            number, _, rest = line.partition(" ")
            if number.isdigit():
                word, _, reason = rest.strip().partition(" ")
                said[int(number)] = (word, reason)
    results = []
    for number, line in enumerate(lines):
        words, inputs, out = parse(line)
        state, reason = said.get(number, ("unrun", ""))
        if state == "done":
            arrays = [np.fromfile(os.path.join(folder, f"{number}.t{index}"), NUMPY[one[1]]).reshape(one[0])
                      for index, one in enumerate(inputs)]
            expected, terms = reference(words, inputs, arrays, out)
            path = os.path.join(folder, f"{number}.out")
            found = np.fromfile(path, NUMPY[out[1]]).reshape(out[0])
            reason = wrong(words["op"], found, expected, out, terms)
            state = "wrong" if reason else "right"
        results.append({"operator": words["op"], "type": inputs[0][1], "result": state, "case": line,
                        "detail": reason or ""})
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as stream:
        json.dump(results, stream)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("generate", "check"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only each N-th case")
    parser.add_argument("folder")
    options = parser.parse_args()
    if options.action == "generate":
        generate(options.folder, options.seed, options.every)
    else:
        check(options.folder)


if __name__ == "__main__":
    main()

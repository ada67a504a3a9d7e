# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arm Compute Library's operators by NumPy, in double precision, from their definitions in the library's documentation."""
import math

import numpy as np


def reference(words, inputs, arrays, out):
    """The result as real numbers in the shape of `out`, and how many terms each element adds up."""
    values = [real(array, one) for array, one in zip(arrays, inputs)]
    if words["op"] in ("gemm_low",):
        # This function of the library adds the offsets, and its result counts steps of both scales.
        values = [array.astype(np.float64) + one[3] for array, one in zip(arrays, inputs)]
    if words["op"] in ("convolution", "direct", "depthwise") and inputs[2][1] == "s32":
        values[2] = arrays[2] * (inputs[0][2] * inputs[1][2])
    result, terms = OPERATORS[words["op"]](words, values, out[0])
    return result.reshape(out[0]), terms


def real(array, tensor):
    """The numbers that a tensor's elements stand for."""
    if tensor[1] == "q8":
        return (array.astype(np.float64) - tensor[3]) * tensor[2]
    return array.astype(np.float64)


def number(words, key, fallback=0):
    return float(words.get(key, fallback))


def integer(words, key, fallback=0):
    return int(words.get(key, fallback))


def is_nchw(words):
    return words.get("layout") == "nchw"


def activation(words, values, _shape):
    x, a, b = values[0], number(words, "a"), number(words, "b")
    erf = np.vectorize(math.erf)
    functions = {
        "logistic": lambda: 1 / (1 + np.exp(-x)),
        "tanh": lambda: a * np.tanh(b * x),
        "relu": lambda: np.maximum(x, 0),
        "relu_a": lambda: np.minimum(a, np.maximum(x, 0)),
        "relu_ab": lambda: np.minimum(a, np.maximum(x, b)),
        "leaky": lambda: np.where(x < 0, a * x, x),
        "soft": lambda: np.log1p(np.exp(x)),
        "elu": lambda: np.where(x < 0, a * (np.exp(x) - 1), x),
        "abs": lambda: np.abs(x),
        "square": lambda: x * x,
        "sqrt": lambda: np.sqrt(x),
        "linear": lambda: a * x + b,
        "hard_swish": lambda: x * np.clip(x + 3, 0, 6) / 6,
        "swish": lambda: x / (1 + np.exp(-a * x)),
        "gelu": lambda: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    }
    return functions[words["function"]](), 1


def gemm(words, values, _shape):
    result = number(words, "alpha") * (values[0] @ values[1])
    if len(values) > 2:
        result = result + number(words, "beta") * values[2]
    return result, values[0].shape[1]


def gemm_low(_words, values, _shape):
    return values[0] @ values[1], values[0].shape[1]


def fully_connected(_words, values, _shape):
    return values[0] @ values[1].T + values[2], values[0].shape[1]


def windows(image, kernel, stride, pad, dilation, fill):
    """Height x width x channels to out height x out width x kernel height x kernel width x channels."""
    padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)), constant_values=fill)
    reach = [dilation * (extent - 1) + 1 for extent in kernel]
    view = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(0, 1))
    view = view[::stride, ::stride, :, ::dilation, ::dilation]
    return view.transpose(0, 1, 3, 4, 2)


def geometry(words):
    return integer(words, "stride", 1), integer(words, "pad"), integer(words, "dilation", 1)


def convolution(words, values, _shape):
    x, w, bias = values
    if is_nchw(words):
        x, w = x.transpose(1, 2, 0), w.transpose(0, 2, 3, 1)
    result = np.einsum("hwijc,oijc->hwo", windows(x, w.shape[1:3], *geometry(words), 0), w) + bias
    if is_nchw(words):
        result = result.transpose(2, 0, 1)
    return result, w[0].size


def depthwise(words, values, _shape):
    x, w, bias = values
    x = np.repeat(x, integer(words, "multiplier", 1), axis=2)
    return np.einsum("hwijc,ijc->hwc", windows(x, w.shape[:2], *geometry(words), 0), w) + bias, w[..., 0].size


def pooling(words, values, _shape):
    x = values[0].transpose(1, 2, 0) if is_nchw(words) else values[0]
    size = integer(words, "height"), integer(words, "width")
    kind = words["kind"]
    view = windows(x, size, *geometry(words), -np.inf if kind == "max" else 0)
    if kind == "max":
        result = view.max(axis=(2, 3))
    else:
        area = size[0] * size[1]
        if integer(words, "exclude"):
            area = windows(np.ones_like(x), size, *geometry(words), 0).sum(axis=(2, 3))
        result = (view * view if kind == "l2" else view).sum(axis=(2, 3)) / area
        if kind == "l2":
            result = np.sqrt(result)
    return result.transpose(2, 0, 1) if is_nchw(words) else result, size[0] * size[1]


def softmax(words, values, _shape):
    power = np.exp(number(words, "beta") * (values[0] - values[0].max(axis=-1, keepdims=True)))
    return power / power.sum(axis=-1, keepdims=True), 1


def batch_normalization(words, values, _shape):
    x, mean, variance, beta, gamma = values
    axes = (slice(None), None, None) if is_nchw(words) else (None, None, slice(None))
    mean, variance, beta, gamma = (vector[axes] for vector in (mean, variance, beta, gamma))
    return gamma * (x - mean) / np.sqrt(variance + number(words, "epsilon")) + beta, 4


def normalization(words, values, _shape):
    x, size = values[0], integer(words, "size")
    # Across channels, or along a row of one channel.
    axis = {("cross", True): 0, ("cross", False): 2, ("row", True): 2, ("row", False): 1}[words["kind"], is_nchw(words)]
    square = np.moveaxis(x * x, axis, -1)
    padded = np.pad(square, [(0, 0), (0, 0), (size // 2, size // 2)])
    total = np.lib.stride_tricks.sliding_window_view(padded, size, axis=2).sum(axis=-1)
    total = np.moveaxis(total, -1, axis)
    coefficient = number(words, "alpha") / size
    return x * (number(words, "kappa") + coefficient * total) ** -number(words, "beta"), size


def l2_normalize(words, values, _shape):
    x = values[0]
    axis = x.ndim - 1 - integer(words, "axis")
    return x / np.sqrt(np.maximum((x * x).sum(axis=axis, keepdims=True), 1e-6)), 4


def concatenation(words, values, _shape):
    return np.concatenate(values, axis=values[0].ndim - 1 - integer(words, "axis")), 1


def scale(words, values, shape):
    x = values[0]
    result = x
    for axis in (0, 1):
        source, target = x.shape[axis], shape[axis]
        corners = integer(words, "corners") and target > 1
        ratio = (source - 1) / (target - 1) if corners else source / target
        position = np.arange(target) * ratio
        if integer(words, "center"):
            position = (np.arange(target) + 0.5) * ratio - 0.5
        if words["policy"] == "nearest":
            result = np.take(result, np.clip(np.floor(position + 1e-6).astype(int), 0, source - 1), axis=axis)
            continue
        below = np.floor(position).astype(int)
        weight = (position - below).reshape([-1, 1, 1] if axis == 0 else [1, -1, 1])
        low = np.take(result, np.clip(below, 0, source - 1), axis=axis)
        high = np.take(result, np.clip(below + 1, 0, source - 1), axis=axis)
        result = low * (1 - weight) + high * weight
    return result, 4


def reduction(words, values, _shape):
    x = values[0]
    axis = x.ndim - 1 - integer(words, "axis")
    functions = {"sum": np.sum, "mean": np.mean, "squares": lambda x, **more: np.sum(x * x, **more), "product": np.prod,
                 "min": np.min, "max": np.max}
    return functions[words["kind"]](x, axis=axis, keepdims=True), x.shape[axis] * 4


def elementwise(words, values, _shape):
    x, y = values[0], values[1] if len(values) > 1 else None
    functions = {
        "add": lambda: x + y, "subtract": lambda: x - y, "multiply": lambda: x * y, "divide": lambda: x / y,
        "max": lambda: np.maximum(x, y), "min": lambda: np.minimum(x, y), "squared_difference": lambda: (x - y) ** 2,
        "power": lambda: x ** y, "exp": lambda: np.exp(x), "log": lambda: np.log(x), "rsqrt": lambda: 1 / np.sqrt(x),
        "negate": lambda: -x, "abs": lambda: np.abs(x), "round": lambda: np.round(x), "sin": lambda: np.sin(x),
    }
    return functions[words["kind"]](), 1


def same(_words, values, _shape):
    return values[0], 1


OPERATORS = {
    "activation": activation, "gemm": gemm, "gemm_low": gemm_low, "fully_connected": fully_connected,
    "convolution": convolution, "direct": convolution, "winograd": convolution, "depthwise": depthwise,
    "pooling": pooling, "softmax": softmax, "batch_normalization": batch_normalization, "normalization": normalization,
    "l2_normalize": l2_normalize, "concatenation": concatenation, "reshape": same,
    "transpose": lambda _words, values, _shape: (values[0].T, 1), "scale": scale, "reduction": reduction,
    "elementwise": elementwise, "quantize": same, "dequantize": same,
}

# SPDX-License-Identifier: MIT OR Apache-2.0
"""The networks in NumPy, double precision: their weights, their inputs, and what they must compute.

write(NAME, DIR) makes DIR/network.txt, DIR/weights/*.npy, DIR/inputs/*.npy and DIR/expected/*.npy. Nothing here shares code
with the GPU library: a convolution is a sum over the positions in its kernel, each a matrix product.

Weights come from a counter-based generator (Philox), keyed by the network's and the tensor's name. They are then normalised as
folded batch normalisation would: each channel of a layer has about unit variance and no mean over the first input. Factors are powers of two
and offsets multiples of 1/64, so that no difference in rounding between machines changes a weight.
"""
import pathlib
import zlib

import numpy as np

import networks

SEED = 20220228
TYPES = {"f32": np.float32, "f16": np.float16, "u8": np.uint8}


def generator(*names):
    return np.random.Generator(np.random.Philox(key=[SEED, zlib.crc32("/".join(names).encode())]))


def distinct(random, kind, shape):
    """Elements of both signs that all differ, so that each can be found in GPU memory; 16 bits and less repeat."""
    if kind != "f32":
        return random.uniform(-2, 2, shape).astype(np.float16).astype(np.float32)
    count = int(np.prod(shape))
    # A shuffled grid with less than a step of noise has no two equal elements.
    grid = (random.permutation(count) + random.uniform(0.1, 0.6, count)) / count
    array = (4 * grid - 2).astype(np.float32).reshape(shape)
    assert len(np.unique(array)) == array.size
    return array


def activate(x, act):
    if act == "relu":
        return np.maximum(x, 0)
    if act == "relu6":
        return np.clip(x, 0, 6)
    if act == "leaky":
        return np.where(x > 0, x, 0.1 * x)
    return x


def padded(x, pad, value=0.0):
    left, right, top, bottom = pad
    return np.pad(x, ((top, bottom), (left, right), (0, 0)), constant_values=value)


def windows(x, kernel, stride):
    """For each position in the kernel, what the windows have there."""
    height, width = ((x.shape[i] - kernel[i]) // stride + 1 for i in range(2))
    for j in range(kernel[0]):
        for i in range(kernel[1]):
            yield j, i, x[j:j + stride * (height - 1) + 1:stride, i:i + stride * (width - 1) + 1:stride]


def convolve(x, weight, kernel, stride, pad, groups):
    """weight: out x KH x KW x (channels / groups)."""
    x = padded(x, pad)
    outs, ins = len(weight) // groups, weight.shape[-1]
    parts = []
    for group in range(groups):
        total = None
        for j, i, shifted in windows(x, kernel, stride):
            piece = np.ascontiguousarray(shifted[..., group * ins:(group + 1) * ins])
            product = piece.reshape(-1, ins) @ weight[group * outs:(group + 1) * outs, j, i].T.copy()
            total = product if total is None else total + product
        parts.append(total.reshape(*shifted.shape[:2], outs))
    return np.concatenate(parts, axis=-1)


def depthwise(x, weight, kernel, stride, pad):
    """weight: KH x KW x channels."""
    return sum(shifted * weight[j, i] for j, i, shifted in windows(padded(x, pad), kernel, stride))


def maximum(x, kernel, stride, pad):
    out = None
    for _, _, shifted in windows(padded(x, pad, -np.inf), kernel, stride):
        out = shifted if out is None else np.maximum(out, shifted)
    return out


def mean(x, kernel, stride, pad):
    total = sum(shifted for _, _, shifted in windows(padded(x, pad), kernel, stride))
    counted = padded(np.ones(x.shape[:2] + (1,)), pad)
    return total / sum(shifted for _, _, shifted in windows(counted, kernel, stride))


def normalise(x, size, alpha, beta):
    squares = np.pad(x * x, ((0, 0), (0, 0), (size // 2, size // 2)))
    total = sum(squares[..., i:i + x.shape[-1]] for i in range(size))
    return x / (1 + alpha / size * total) ** beta


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def linear(layer, x, weight):
    n = layer.numbers
    if layer.op == "conv":
        return convolve(x, weight, n["kernel"], n["stride"], n["pad"], n["groups"])
    if layer.op == "depthwise":
        return depthwise(x, weight, n["kernel"], n["stride"], n["pad"])
    return weight @ x.reshape(-1)


def simple(layer, values):
    """The layers without weights."""
    n, x = layer.numbers, values[0]
    if layer.op in ("max", "mean"):
        return (maximum if layer.op == "max" else mean)(x, n["kernel"], n["stride"], n["pad"])
    if layer.op == "global":
        return x.mean(axis=(0, 1), keepdims=True)
    if layer.op == "norm":
        return normalise(x, n["size"], n["alpha"], n["beta"])
    if layer.op == "add":
        return activate(x + values[1], n["act"])
    if layer.op == "concat":
        return np.concatenate(values, axis=-1)
    if layer.op == "double":
        return x.repeat(2, axis=0).repeat(2, axis=1)
    if layer.op == "softmax":
        return softmax(x.reshape(-1))
    return x


def weight_shape(layer, x):
    n = layer.numbers
    if layer.op == "conv":
        return (n["out"], *n["kernel"], x.shape[-1] // n["groups"])
    if layer.op == "depthwise":
        return (*n["kernel"], x.shape[-1])
    return (n["out"], x.size)


def power_of_two(x):
    return 2.0 ** np.round(np.log2(x))


def make_weights(name, layer, x):
    """A layer's weights and bias as float64, and its output before the activation for this input."""
    shape = weight_shape(layer, x)
    random = generator(name, layer.name)
    fan_in = shape[0] * shape[1] if layer.op == "depthwise" else int(np.prod(shape[1:]))
    weight = random.standard_normal(shape, dtype=np.float32) * np.float32(power_of_two(fan_in ** -0.5))
    channels = shape[-1] if layer.op == "depthwise" else shape[0]
    beta = random.uniform(-0.5, 0.5, channels).astype(np.float32)
    y = linear(layer, x, weight.astype(np.float64))
    flat = y.reshape(-1, channels)
    overall = flat.std() or 1.0
    if len(flat) < 16:
        # Too few values for a channel's own statistics.
        factor, middle = np.full(channels, power_of_two(1 / overall)), np.zeros(channels)
    else:
        factor = power_of_two(1 / np.maximum(flat.std(axis=0), overall / 8))
        middle = flat.mean(axis=0)
    if layer.numbers.get("gain"):
        factor = factor * layer.numbers["gain"]
    bias = (np.round(-middle * factor * 64) / 64 + beta).astype(np.float32)
    weight *= (factor if layer.op == "depthwise" else factor.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
    return weight, bias, y * factor + bias.astype(np.float64)


def run(network, weights, image):
    """All layers' values for an input, as float64."""
    values = {}
    for layer in network.layers:
        if layer.op == "input":
            values[layer.name] = image.astype(np.float64)
            continue
        inputs = [values[name] for name in layer.inputs]
        if layer.op in ("conv", "depthwise", "full"):
            y = linear(layer, inputs[0], weights[f"{layer.name}.weight"].astype(np.float64))
            values[layer.name] = activate(y + weights[f"{layer.name}.bias"].astype(np.float64), layer.numbers["act"])
        else:
            values[layer.name] = simple(layer, inputs)
    return values


def build(name, network, image):
    """The network's weights, and all layers' values for the first input."""
    values, weights = {}, {}
    for layer in network.layers:
        if layer.op == "input":
            values[layer.name] = image.astype(np.float64)
            continue
        inputs = [values[name] for name in layer.inputs]
        if layer.op in ("conv", "depthwise", "full"):
            weight, bias, y = make_weights(name, layer, inputs[0])
            weights[f"{layer.name}.weight"], weights[f"{layer.name}.bias"] = weight, bias
            values[layer.name] = activate(y, layer.numbers["act"])
        else:
            values[layer.name] = simple(layer, inputs)
    return weights, values


def affine(low, high):
    """Scale and zero point that 0 to 255 need to reach from low to high, with 0 exact."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / 255)) or 1.0
    return scale, int(np.clip(round(-low / scale), 0, 255))


def quantise(array, scale, zero, kind=np.uint8):
    limits = np.iinfo(kind)
    return np.clip(np.rint(array / scale) + zero, limits.min, limits.max).astype(kind)


def quantised(network, weights, values):
    """8-bit weights; adds scale and zero point to the table. Values that only move keep their scale."""
    known = {}
    out = {}
    for layer in network.layers:
        n = layer.numbers
        if layer.op in ("input", "conv", "depthwise", "full"):
            known[layer.name] = affine(float(values[layer.name].min()), float(values[layer.name].max()))
            n["scale"], n["zero"] = known[layer.name]
        else:
            known[layer.name] = known[layer.inputs[0]]
        if layer.op in ("conv", "depthwise", "full"):
            weight = weights[f"{layer.name}.weight"]
            n["weight_scale"], n["weight_zero"] = affine(float(weight.min()), float(weight.max()))
            out[f"{layer.name}.weight"] = quantise(weight, n["weight_scale"], n["weight_zero"])
            scale = known[layer.inputs[0]][0] * n["weight_scale"]
            out[f"{layer.name}.bias"] = quantise(weights[f"{layer.name}.bias"], scale, 0, np.int32)
    return out, known


def reals(network, weights, known):
    """The numbers that 8-bit weights stand for."""
    out = {}
    for layer in network.layers:
        n = layer.numbers
        if layer.op in ("conv", "depthwise", "full"):
            weight, bias = f"{layer.name}.weight", f"{layer.name}.bias"
            out[weight] = (weights[weight].astype(np.float64) - n["weight_zero"]) * n["weight_scale"]
            out[bias] = weights[bias] * (known[layer.inputs[0]][0] * n["weight_scale"])
    return out


def run_quantised(network, weights, known, image):
    """The network on 8-bit values: every layer that has a scale of its own is rounded to it."""
    real, values = reals(network, weights, known), {}
    for layer in network.layers:
        scale, zero = known[layer.name]
        if layer.op == "input":
            values[layer.name] = (image.astype(np.float64) - zero) * scale
            continue
        inputs = [values[name] for name in layer.inputs]
        if layer.op in ("conv", "depthwise", "full"):
            y = linear(layer, inputs[0], real[f"{layer.name}.weight"]) + real[f"{layer.name}.bias"]
            y = activate(y, layer.numbers["act"])
        else:
            y = simple(layer, inputs)
        values[layer.name] = (quantise(y, scale, zero).astype(np.float64) - zero) * scale
    return values


def image_of(name, network, number):
    shape = network.layers[0].numbers["shape"]
    return distinct(generator(name, f"input{number}"), network.kind, shape)


def write(name, top):
    """Makes all files of a network."""
    network = networks.NETWORKS[name]()
    scored = [layer for layer in network.layers if layer.op in ("conv", "full")]
    if network.scores is not None:
        scored[-1].numbers["gain"] = network.scores
    top = pathlib.Path(top)
    for folder in ("inputs", "weights", "expected"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    kind = TYPES[network.kind]
    images = [image_of(name, network, number) for number in (1, 2)]
    weights, first = build(name, network, images[0])
    shape_of = {}
    if network.kind == "u8":
        weights, known = quantised(network, weights, first)
        images = [quantise(image, *known["input"]) for image in images]
        results = [run_quantised(network, weights, known, image) for image in images]
    else:
        weights = {key: array.astype(kind) for key, array in weights.items()}
        images = [image.astype(kind) for image in images]
        # Rounded to 16 bits the weights are others than those that were normalised.
        results = [first if kind == np.float32 else run(network, weights, images[0]), run(network, weights, images[1])]
    for layer in network.layers:
        layer.numbers.pop("gain", None)
    (top / "network.txt").write_text(network.text())
    for key, array in weights.items():
        np.save(top / "weights" / f"{key}.npy", array)
    for suffix, image, values in zip(("", "2"), images, results):
        np.save(top / "inputs" / f"input{suffix}.npy", image)
        for output in network.outputs():
            value = values[output]
            value = value.reshape(-1) if value.shape[:2] == (1, 1) else value
            value = quantise(value, *known[output]) if network.kind == "u8" else value.astype(kind)
            np.save(top / "expected" / f"{output}{suffix}.npy", value)
    if network.kind == "f32":
        write_layers(network, results[0], top / "layers")


def write_layers(network, values, top):
    """What each layer computes from the first input, except what the outputs are."""
    top.mkdir(parents=True, exist_ok=True)
    ends = {name for layer in network.layers if layer.op == "output" for name in layer.inputs}
    for layer in network.layers:
        if layer.op not in ("input", "output") and layer.name not in ends:
            value = values[layer.name].astype(np.float32)
            np.save(top / f"{layer.name}.npy", value.reshape(-1) if value.shape[:2] == (1, 1) else value)

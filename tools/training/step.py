# SPDX-License-Identifier: MIT OR Apache-2.0
"""One step of training the digits network in NumPy: what replays of recordings/train-digits-g52 are compared with.

The network is that of ../digits/network.py. A step computes the mean softmax cross-entropy of a batch, its gradient, and moves each
array of weights by SGD with momentum: velocity = 0.9 velocity - rate gradient; weight += velocity. The arithmetic is that of the
arrays: float32 or float64.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "digits"))
import network  # noqa: E402  (after the path)

BATCH = 32
MOMENTUM = 0.9
WEIGHTS = [f"{layer}.{part}" for layer in network.LAYERS for part in ("weight", "bias")]


def initial(seed, dtype=np.float32, layers=network.LAYERS):
    """Random weights, as float32 has them, and velocities of zero, by name."""
    random = np.random.default_rng(seed)
    state = {}
    for layer, shape in layers.items():
        scale = np.sqrt(2 / np.prod(shape[1:]))
        state[f"{layer}.weight"] = random.normal(0, scale, shape).astype(np.float32).astype(dtype)
        # Not zero, so that they can be found in GPU memory.
        state[f"{layer}.bias"] = random.normal(0, 0.01, shape[:1]).astype(np.float32).astype(dtype)
    for name in list(state):
        state[f"{name}.velocity"] = np.zeros_like(state[name])
    return state


def neighbours(x):
    """The 3x3 neighbourhood of each pixel: N x H x W x 3 x 3 x C."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.moveaxis(views, 3, 5)


def convolve(x, weight, bias):
    return np.maximum(np.tensordot(neighbours(x), weight, axes=([3, 4, 5], [1, 2, 3])) + bias, 0)


def convolve_back(x, weight, gradient):
    """Gradient by the input, the weights and the bias; `gradient` is 0 where the layer's output is."""
    by_weight = np.tensordot(gradient, neighbours(x), axes=([0, 1, 2], [0, 1, 2]))
    turned = weight[:, ::-1, ::-1]
    by_input = np.tensordot(neighbours(gradient), turned, axes=([3, 4, 5], [1, 2, 0]))
    return by_input, by_weight, gradient.sum(axis=(0, 1, 2))


def pool_back(x, pooled, gradient):
    """The gradient goes to the first of the largest of each 2x2 block, and nowhere if that is 0: ReLU is before it."""
    count, height, width, channels = pooled.shape
    blocks = x.reshape(count, height, 2, width, 2, channels).transpose(0, 1, 3, 5, 2, 4)
    blocks = blocks.reshape(count, height, width, channels, 4)
    out = np.zeros_like(blocks)
    chosen = gradient * (pooled > 0)
    np.put_along_axis(out, blocks.argmax(axis=4)[..., None], chosen[..., None], axis=4)
    out = out.reshape(count, height, width, channels, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    return out.reshape(x.shape)


def gradients(weights, images, labels):
    """The mean loss of a batch, and its gradient by each array of weights."""
    x0 = images[..., np.newaxis]
    x1 = convolve(x0, weights["conv1.weight"], weights["conv1.bias"])
    x2 = convolve(x1, weights["conv2.weight"], weights["conv2.bias"])
    p1 = network.maximum(x2)
    x3 = convolve(p1, weights["conv3.weight"], weights["conv3.bias"])
    p2 = network.maximum(x3)
    flat = p2.reshape(len(p2), -1)
    scores = flat @ weights["fc.weight"].T + weights["fc.bias"]
    scores -= scores.max(axis=1, keepdims=True)
    powers = np.exp(scores)
    sums = powers.sum(axis=1, keepdims=True)
    chosen = np.arange(len(labels)), labels
    loss = (np.log(sums[:, 0]) - scores[chosen]).sum() / len(labels)
    error = powers / sums
    error[chosen] -= 1
    error /= len(labels)
    found = {"fc.weight": error.T @ flat, "fc.bias": error.sum(axis=0)}
    back = pool_back(x3, p2, (error @ weights["fc.weight"]).reshape(p2.shape))
    back, found["conv3.weight"], found["conv3.bias"] = convolve_back(p1, weights["conv3.weight"], back)
    back = pool_back(x2, p1, back)
    back, found["conv2.weight"], found["conv2.bias"] = convolve_back(x1, weights["conv2.weight"], back)
    _, found["conv1.weight"], found["conv1.bias"] = convolve_back(x0, weights["conv1.weight"], back * (x1 > 0))
    return loss, found


def step(state, images, labels, rate, gradients=gradients):
    """Moves the weights; the loss before that."""
    dtype = next(iter(state.values())).dtype.type
    loss, found = gradients(state, images.astype(dtype), labels)
    for name, gradient in found.items():
        velocity = dtype(MOMENTUM) * state[f"{name}.velocity"] - dtype(rate) * gradient.astype(dtype)
        state[f"{name}.velocity"] = velocity
        state[name] = state[name] + velocity
    return loss

# SPDX-License-Identifier: MIT OR Apache-2.0
"""The digits network in NumPy, float64: what the GPU's answers are compared with.

    image 8x8x1 -> conv1 3x3x16, ReLU -> conv2 3x3x32, ReLU -> max 2x2 -> conv3 3x3x32, ReLU -> max 2x2
                -> fully connected 10 -> softmax

Arrays are N x H x W x C; convolution weights are O x KH x KW x C, those of the fully connected layer O x (H W C).
Convolutions here are sums over shifted images, one for each position in the kernel: neither the matrix products
that train.py computes them with nor anything that the GPU library does.
"""

from pathlib import Path

import numpy as np

# Name, and shape of the weights; each layer also has a bias of the first extent.
LAYERS = {
    "conv1": (16, 3, 3, 1),
    "conv2": (32, 3, 3, 16),
    "conv3": (32, 3, 3, 32),
    "fc": (10, 2 * 2 * 32),
}


def load(folder):
    """The weights in a folder, as float64, by name ("conv1.weight", "conv1.bias", ...)."""
    weights = {}
    for layer, shape in LAYERS.items():
        for part, wanted in (("weight", shape), ("bias", shape[:1])):
            path = Path(folder) / f"{layer}.{part}.npy"
            array = np.load(path, allow_pickle=False)
            if array.shape != wanted or array.dtype != np.float32:
                raise SystemExit(f"{path}: expected float32 {wanted}, found {array.dtype} {array.shape}")
            weights[f"{layer}.{part}"] = array.astype(np.float64)
    return weights


def convolve(x, weight, bias):
    """A 3x3 convolution with a border of one zero, and ReLU."""
    _, height, width, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.zeros(x.shape[:3] + (len(bias),)) + bias
    for row in range(3):
        for column in range(3):
            shifted = padded[:, row:row + height, column:column + width, :]
            out += np.einsum("nhwc,oc->nhwo", shifted, weight[:, row, column, :])
    return np.maximum(out, 0)


def maximum(x):
    """The largest of each 2x2 block."""
    return np.maximum(np.maximum(x[:, 0::2, 0::2], x[:, 0::2, 1::2]), np.maximum(x[:, 1::2, 0::2], x[:, 1::2, 1::2]))


def layers(weights, images):
    """What each layer computes from images (N x 8 x 8), by its name, in order; probabilities, N x 10, are the last."""
    out = {}
    x = images.astype(np.float64)[..., np.newaxis]
    out["conv1"] = x = convolve(x, weights["conv1.weight"], weights["conv1.bias"])
    out["conv2"] = x = convolve(x, weights["conv2.weight"], weights["conv2.bias"])
    out["pool1"] = x = maximum(x)
    out["conv3"] = x = convolve(x, weights["conv3.weight"], weights["conv3.bias"])
    out["pool2"] = x = maximum(x)
    out["fc"] = scores = x.reshape(len(x), -1) @ weights["fc.weight"].T + weights["fc.bias"]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    out["probabilities"] = powers / powers.sum(axis=1, keepdims=True)
    return out


def probabilities(weights, images):
    """What the network says of images (N x 8 x 8): N x 10."""
    return layers(weights, images)["probabilities"]

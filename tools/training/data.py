#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes what training the digits network takes, and what NumPy makes of it.

    python3 -m venv venv && venv/bin/pip install -r ../digits/requirements.txt
    venv/bin/python data.py DIR [--epochs 8] [--seed 5] [--rate 0.02]

DIR/inputs/images.npy   float32 steps x 32 x 8 x 8    the batches, in the order of the steps
DIR/inputs/labels.npy   int32 steps x 32
DIR/inputs/rate.npy     float32 steps x 1             the learning rate; it falls to a tenth along a cosine
DIR/initial.safetensors and DIR/initial/NAME.npy      random weights, and velocities of zero
DIR/expected/losses.npy and losses64.npy              the loss of each step by NumPy, in float32 and in float64
DIR/expected/NAME.npy                                 the weights that NumPy has learnt, in float32

The images are those of tools/digits: a fifth, drawn by the same seed, takes no part in training.
"""

import argparse
import json
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  (after the variables that it reads)
import step  # noqa: E402

HELD_OUT = 360


def safetensors(arrays):
    """The bytes of a .safetensors file with float32 arrays."""
    entries, offset = {}, 0
    for name, array in arrays.items():
        entries[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": (offset, offset + array.nbytes)}
        offset += array.nbytes
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    data = b"".join(array.astype("<f4").tobytes() for array in arrays.values())
    return len(header).to_bytes(8, "little") + header + data


def batches(epochs, seed, rate):
    """Images, labels and learning rates by step; labels and images that are held out."""
    import train
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32), digits.target.astype(np.int32)
    order = np.random.default_rng(5).permutation(len(images))
    held_out, rest = np.sort(order[:HELD_OUT]), np.sort(order[HELD_OUT:])
    random = np.random.default_rng(seed)
    per_epoch = len(rest) // step.BATCH
    chosen = [random.permutation(rest)[: per_epoch * step.BATCH] for _ in range(epochs)]
    chosen = np.concatenate(chosen).reshape(-1, step.BATCH)
    done = np.arange(len(chosen)) / len(chosen)
    rates = (rate * (0.55 + 0.45 * np.cos(np.pi * done))).astype(np.float32)
    # Moved, with other ink, and with noise: that teaches more, and leaves no two neighbourhoods of equal pixels. Where all are paper
    # the largest of four would be one of equals, which each arithmetic takes from its own rounding.
    batch = np.stack([train.moved(images[indices].astype(np.float64), random) for indices in chosen])
    batch += random.normal(0, 0.04, batch.shape)
    return batch.astype(np.float32), labels[chosen], rates[:, np.newaxis], images[held_out], labels[held_out]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.02)
    options = parser.parse_args()
    images, labels, rates, test_images, test_labels = batches(options.epochs, options.seed, options.rate)
    for name in ("inputs", "initial", "expected"):
        (options.folder / name).mkdir(parents=True, exist_ok=True)
    for name, array in (("images", images), ("labels", labels), ("rate", rates)):
        np.save(options.folder / "inputs" / f"{name}.npy", array)
    state = step.initial(options.seed)
    for name, array in state.items():
        np.save(options.folder / "initial" / f"{name}.npy", array)
    (options.folder / "initial.safetensors").write_bytes(safetensors(state))
    precise = {name: array.astype(np.float64) for name, array in state.items()}
    losses, precise_losses = [], []
    for batch, truth, rate in zip(images, labels, rates[:, 0]):
        losses.append(step.step(state, batch, truth, rate))
        precise_losses.append(step.step(precise, batch, truth, rate))
    np.save(options.folder / "expected" / "losses.npy", np.array(losses, np.float32))
    np.save(options.folder / "expected" / "losses64.npy", np.array(precise_losses))
    for name in step.WEIGHTS:
        np.save(options.folder / "expected" / f"{name}.npy", state[name].astype(np.float32))
    for kind, weights in (("float32", state), ("float64", precise)):
        weights = {name: weights[name].astype(np.float64) for name in step.WEIGHTS}
        answers = step.network.probabilities(weights, test_images).argmax(axis=1)
        right = (answers == test_labels).sum()
        print(f"{kind}: {len(images)} steps, {right} of {HELD_OUT} held-out images right")
    drift = np.abs(np.array(losses) - precise_losses) / np.abs(precise_losses)
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}; float32 and float64 differ by {drift.max():.1e} of it at most")


if __name__ == "__main__":
    main()

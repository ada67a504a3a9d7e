# SPDX-License-Identifier: MIT OR Apache-2.0
"""Turns of small programs of CuPy, JAX, Triton: turns.py KIND FOLDER [TURNS] keeps input xN and output yN of each in the folder."""
import os
import sys

import numpy as np

kind, folder = sys.argv[1:3]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 9
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
random = np.random.default_rng(7)


def cupy_turn():
    import cupy

    weights = cupy.asarray(random.standard_normal((256, 256), dtype=np.float32))

    def turn(x):
        y = cupy.tanh(cupy.asarray(x) @ weights)
        return cupy.asnumpy(cupy.sort(y, axis=1) - y.mean(axis=1, keepdims=True))

    return turn


def fft_turn():
    import cupy

    def turn(x):
        spectrum = cupy.fft.rfft(cupy.asarray(x), axis=1)
        return cupy.asnumpy(cupy.fft.irfft(spectrum * cupy.conj(spectrum), axis=1).astype(cupy.float32))

    return turn


def solver_turn():
    import cupy

    def turn(x):
        a = cupy.asarray(x)
        return cupy.asnumpy(cupy.linalg.cholesky(a @ a.T + 300 * cupy.eye(256, dtype=cupy.float32)))

    return turn


def jax_turn():
    import jax
    import jax.numpy as jnp

    weights = jax.device_put(random.standard_normal((256, 256), dtype=np.float32))

    @jax.jit
    def step(x):
        return jax.nn.softmax(jnp.tanh(x @ weights) @ weights.T, axis=1)

    return lambda x: np.asarray(step(x))


def triton_turn():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def rows(x, y, n: tl.constexpr):
        at = tl.program_id(0) * n + tl.arange(0, n)
        v = tl.load(x + at)
        v = tl.exp(v - tl.max(v, 0))
        tl.store(y + at, v / tl.sum(v, 0))

    def turn(x):
        a = torch.from_numpy(x).cuda()
        b = torch.empty_like(a)
        rows[(256,)](a, b, 256)
        return b.cpu().numpy()

    return turn


turn = {"cupy": cupy_turn, "fft": fft_turn, "solver": solver_turn, "jax": jax_turn, "triton": triton_turn}[kind]()
for number in range(count):
    x = random.standard_normal((256, 256), dtype=np.float32)
    y = turn(x)
    assert np.isfinite(y).all()
    for name, array in (("x", x), ("y", y)):
        np.ascontiguousarray(array).tofile(f"{folder}/{name}{number}")

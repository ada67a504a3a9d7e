# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that nobody prepared for recording: others.py NAME FOLDER [TURNS] keeps input xN and output yN of each turn in the folder."""
import os
import sys

import numpy as np

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
name, folder = sys.argv[1:3]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 9
random = np.random.default_rng(11)


def on_torch(model, sample):
    import torch

    def turn(x):
        with torch.no_grad():
            y = model(torch.from_numpy(x).cuda())
        return y.float().contiguous().cpu().numpy()

    return turn, sample


def image(size=224):
    return lambda: random.standard_normal((1, 3, size, size), dtype=np.float32)


def words(most=1000, shape=(1, 64)):
    return lambda: random.integers(0, most, shape, dtype=np.int64)


def vision(kind):
    import torch
    import torchvision

    torch.manual_seed(3)
    model = getattr(torchvision.models, kind)(weights=None).cuda().eval()
    return on_torch(model, image())


def segmentation():
    import torch
    import torchvision

    torch.manual_seed(3)
    model = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None).cuda().eval()
    return on_torch(lambda x: model(x)["out"], image(128))


def lstm():
    import torch

    torch.manual_seed(3)
    model = torch.nn.LSTM(64, 128, 2, batch_first=True).cuda().eval()
    return on_torch(lambda x: model(x)[0], lambda: random.standard_normal((4, 32, 64), dtype=np.float32))


def gpt2():
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(3)
    model = GPT2Model(GPT2Config(n_layer=6)).half().cuda().eval()
    return on_torch(lambda x: model(x).last_hidden_state, words(50000))


def t5():
    import torch
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(3)
    model = T5EncoderModel(T5Config(num_layers=4)).cuda().eval()
    return on_torch(lambda x: model(x).last_hidden_state, words(30000))


def compiled():
    import torch

    torch.manual_seed(3)
    layers = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 256))
    return on_torch(torch.compile(layers.cuda().eval()), lambda: random.standard_normal((8, 256), dtype=np.float32))


def captured():
    """A graph that PyTorch captured: each turn fills its input and launches it."""
    import torch
    import torchvision

    torch.manual_seed(3)
    model = torchvision.models.resnet18(weights=None).cuda().eval()
    into, graph, stream = torch.zeros(1, 3, 224, 224, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            model(into)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            out = model(into)

    def turn(x):
        into.copy_(torch.from_numpy(x))
        graph.replay()
        return out.cpu().numpy()

    return turn, image()


def unique():
    import torch

    # The host reads how many there are, and asks for as much memory.
    return on_torch(lambda x: torch.unique(x * 2), words(100, (64,)))


def columns():
    import torch

    # cudaMemcpy2D moves a part of each row.
    def model(x):
        to = torch.zeros(256, 512, device="cuda")
        to[:, 128:384] = x
        return to.cumsum(1)

    return on_torch(model, lambda: random.standard_normal((256, 256), dtype=np.float32))


def numba_saxpy():
    from numba import cuda

    @cuda.jit
    def kernel(x, y):
        at = cuda.grid(1)
        if at < x.size:
            y[at] = 2 * x[at] + at

    def turn(x):
        a = cuda.to_device(x)
        b = cuda.device_array_like(a)
        kernel[16, 256](a, b)
        return b.copy_to_host()

    return turn, lambda: random.standard_normal(4096, dtype=np.float32)


def jax_cnn():
    import jax
    import jax.numpy as jnp

    filters = [jax.device_put(random.standard_normal(s, dtype=np.float32) * 0.1) for s in ((3, 3, 3, 16), (3, 3, 16, 32))]

    @jax.jit
    def step(x):
        for f in filters:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, f, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return x.mean((1, 2))

    return (lambda x: np.asarray(step(x))), lambda: random.standard_normal((1, 64, 64, 3), dtype=np.float32)


def jax_gradient():
    import jax
    import jax.numpy as jnp

    w = jax.device_put(random.standard_normal((64, 64), dtype=np.float32))
    step = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x @ w) ** 2)))
    return (lambda x: np.asarray(step(x))), lambda: random.standard_normal((32, 64), dtype=np.float32)


def cupy_raw():
    import cupy

    text = 'extern "C" __global__ void f(const float *x, float *y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = sinf(x[i]) * i; }'
    kernel = cupy.RawKernel(text, "f")

    def turn(x):
        a = cupy.asarray(x)
        b = cupy.empty_like(a)
        kernel((16,), (256,), (a, b))
        return cupy.asnumpy(b)

    return turn, lambda: random.standard_normal(4096, dtype=np.float32)


def mobilevit():
    import timm
    import torch

    torch.manual_seed(3)
    return on_torch(timm.create_model("mobilevit_s").cuda().eval(), image(256))


def graph_network():
    import torch
    from torch_geometric.nn import GCNConv

    torch.manual_seed(3)
    edges = torch.randint(0, 200, (2, 900), generator=torch.Generator().manual_seed(1)).cuda()
    one, two = GCNConv(32, 64, cached=True).cuda(), GCNConv(64, 16, cached=True).cuda()
    return on_torch(lambda x: two(one(x, edges).relu(), edges), lambda: random.standard_normal((200, 32), dtype=np.float32))


def equinox_network():
    import equinox
    import jax

    net = equinox.nn.MLP(64, 16, 256, 3, key=jax.random.PRNGKey(1))
    step = equinox.filter_jit(lambda net, x: jax.vmap(net)(x))
    return (lambda x: np.asarray(step(net, x))), lambda: random.standard_normal((32, 64), dtype=np.float32)


def diffrax_solve():
    import diffrax
    import jax

    def solve(x):
        term = diffrax.ODETerm(lambda t, y, args: -y + x)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0, 1, 0.1, x * 0, stepsize_controller=diffrax.ConstantStepSize()).ys[0]

    step = jax.jit(solve)
    return (lambda x: np.asarray(step(x))), lambda: random.standard_normal((256,), dtype=np.float32)


PROGRAMS = {
    "mobilevit": mobilevit, "gcn": graph_network, "equinox": equinox_network, "diffrax": diffrax_solve,
    "segmentation": segmentation, "lstm": lstm, "gpt2": gpt2, "t5": t5, "compiled": compiled, "captured": captured, "unique": unique, "columns": columns,
    "numba": numba_saxpy, "jax-cnn": jax_cnn, "jax-gradient": jax_gradient, "cupy-raw": cupy_raw,
}  # fmt: skip
turn, sample = PROGRAMS[name]() if name in PROGRAMS else vision(name)
for number in range(count):
    x = sample()
    y = turn(x)
    for kind, array in (("x", x), ("y", y)):
        np.ascontiguousarray(array).tofile(f"{folder}/{kind}{number}")

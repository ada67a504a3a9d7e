# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch: turns of a network's work, as a program does them that knows nothing of recording; weights are random.

torch_nets.py NET FOLDER [TURNS] keeps input xN and output yN of each turn in the folder; --time also says how long a turn takes,
eager and as PyTorch's own graph. With PROFILED set, each turn lies between cudaProfilerStart and Stop.
"""
import os
import resource
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

net, folder = sys.argv[1:3]
count = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3].isdigit() else 9
timed = "--time" in sys.argv
profiled = bool(os.environ.get("PROFILED"))
torch.manual_seed(int(os.environ.get("SEED", "0")))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, heads, context, width // heads))

    def forward(self, x, position, mask):
        q, k, v = (t.view(1, 1, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        if isinstance(position, int):  # a number of the host
            self.keys[:, :, position : position + 1] = k
            self.values[:, :, position : position + 1] = v
        else:
            self.keys.index_copy_(2, position, k)
            self.values.index_copy_(2, position, v)
        a = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(1, 1, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """Writes a token each turn; token, position and caches stay on the device."""

    def __init__(self, layers=12, width=768, heads=12, words=50257, context=256, host=False):
        super().__init__()
        self.host, self.turn = host, 0
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(context, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.register_buffer("range", torch.arange(context))
        self.register_buffer("token", torch.zeros(1, 1, dtype=torch.long))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))
        with torch.no_grad():
            for p in self.parameters():
                if p.dim() > 1:
                    p.normal_(0, 0.05)
            self.embed.weight.normal_(0, 0.3)
            self.place.weight.normal_(0, 0.3)

    def forward(self, _):
        x = self.embed(self.token) + self.place(self.position)
        mask = (self.range <= self.position).view(1, 1, 1, -1)
        for block in self.blocks:
            x = block(x, self.turn if self.host else self.position, mask)
        logits = self.head(self.norm(x))[:, -1]
        self.token.copy_(logits.argmax(-1, keepdim=True))
        self.position.add_(1)
        self.turn += 1
        return logits.float()


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512)):
        super().__init__()

        def twice(a, b):
            layers = [nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU()]
            return nn.Sequential(*layers, nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU())

        self.down = nn.ModuleList(twice(a, b) for a, b in zip((3, *widths), widths))
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(twice(2 * b, b) for _, b in pairs)
        self.last = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x):
        kept = []
        for number, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if number else x)
            kept.append(x)
        for grow, block, old in zip(self.grow, self.up, kept[-2::-1]):
            x = block(torch.cat((grow(x), old), 1))
        return self.last(x)


class Training(nn.Module):
    """A step of training each turn; the optimiser's count of steps is on the device, or the host's."""

    def __init__(self, host):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64)).cuda()
        self.adam = torch.optim.AdamW(self.net.parameters(), lr=1e-3, capturable=not host)

    def forward(self, x):
        self.adam.zero_grad(set_to_none=False)
        loss = F.mse_loss(self.net(x), torch.sin(3 * x))
        loss.backward()
        self.adam.step()
        return loss.detach()


def image():
    return torch.randn(1, 3, 224, 224)


def build():
    if net in ("resnet50", "vit"):
        import torchvision

        model = torchvision.models.resnet50(weights=None) if net == "resnet50" else torchvision.models.vit_b_16(weights=None)
        with torch.no_grad():
            for module in model.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.weight.uniform_(0.5, 1.2)
                    module.bias.normal_(0, 0.1)
                    module.running_mean.normal_(0, 0.1)
                    module.running_var.uniform_(0.5, 1.5)
            if net == "vit":
                model.heads.head.weight.normal_(0, 0.05)
        return model.cuda().eval(), image
    if net == "unet":
        return UNet().cuda().eval(), image
    if net == "bert":
        from transformers import BertConfig, BertModel

        class Encoder(BertModel):
            def forward(self, x):
                return super().forward(x).last_hidden_state.float()

        return Encoder(BertConfig()).half().cuda().eval(), (lambda: torch.randint(0, 30000, (1, 128)))
    if net in ("gpt", "gpt-host"):
        return Decoder(host=net == "gpt-host").bfloat16().cuda().eval(), None
    if net == "dropout":
        model = nn.Sequential(nn.Linear(256, 1024), nn.Dropout(0.5), nn.Linear(1024, 256)).cuda().train()
        return model, (lambda: torch.randn(8, 256))
    if net in ("train", "train-host"):
        return Training(net == "train-host"), (lambda: torch.randn(32, 64))
    sys.exit(f"no network {net}")


def raw(tensor):
    return tensor.detach().contiguous().cpu().numpy().tobytes()


def since_start():
    ticks = float(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


model, sample = build()
if os.environ.get("WEIGHTS") and isinstance(model, nn.Module):
    from safetensors.torch import save_file

    save_file({n: t.detach().cpu().contiguous() for n, t in model.state_dict().items()}, os.environ["WEIGHTS"])


def turn(x):
    return model(x.cuda() if x is not None else None).cpu()


learns = net.startswith("train")
with torch.enable_grad() if learns else torch.no_grad():
    inputs = [sample() if sample else None for _ in range(count)]
    for number, x in enumerate(inputs):
        if number == 3 and profiled:
            torch.cuda.synchronize()
        if number >= 3 and profiled:
            torch.cuda.cudart().cudaProfilerStart()
        y = turn(x)
        if number >= 3 and profiled:
            torch.cuda.cudart().cudaProfilerStop()
        if number == 0:
            print("first %.3f" % since_start())
            print("memory %.0f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3))
        assert torch.isfinite(y).all()
        for name, tensor in (("x", x), ("y", y)):
            if tensor is not None:
                with open(f"{folder}/{name}{number}", "wb") as file:
                    file.write(raw(tensor))
    if timed:
        times = []
        for _ in range(100):
            if net == "gpt":
                model.position.zero_()
                torch.cuda.synchronize()
            began = time.perf_counter()
            turn(inputs[0])
            times.append((time.perf_counter() - began) * 1e6)
        print("eager %.1f" % statistics.median(times))
        static = inputs[0].cuda() if sample else None
        graph = torch.cuda.CUDAGraph()
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                model(static)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                out = model(static)
            times = []
            for _ in range(200):
                if net == "gpt":
                    model.position.zero_()
                    torch.cuda.synchronize()
                began = time.perf_counter()
                if sample:
                    static.copy_(inputs[0])
                graph.replay()
                out.cpu()
                times.append((time.perf_counter() - began) * 1e6)
            print("graph %.1f" % statistics.median(times))
        except Exception as error:
            print("graph nan", repr(error)[:200], file=sys.stderr)

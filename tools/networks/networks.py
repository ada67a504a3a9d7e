# SPDX-License-Identifier: MIT OR Apache-2.0
"""The networks, as tables of layers: one definition for the program that is recorded and for the reference.

A layer is an operation, a name, the layers that it reads, and its numbers. `Network.text()` is what
tools/guest/apps/acl_network.cpp reads; tools/networks/layers.py computes the same table. Operations:

    input      shape=H,W,C
    conv       out=N kernel=H,W stride=S pad=LEFT,RIGHT,TOP,BOTTOM groups=N act=ACT
    depthwise  kernel=H,W stride=S pad=LEFT,RIGHT,TOP,BOTTOM act=ACT
    full       out=N act=ACT                      fully connected, over H, W, C in this order
    max, mean  kernel=H,W stride=S pad=LEFT,RIGHT,TOP,BOTTOM    mean does not count the padding
    global                                        the mean of each channel
    norm       size=N alpha=A beta=B              local response normalisation across channels
    add        act=ACT                            two layers, element by element
    concat                                        along the channels
    double                                        every pixel becomes 2 x 2
    softmax
    output     the file is called as the layer

ACT is none, relu, relu6 or leaky (0.1). Padding on the right and at the bottom counts only as far as windows reach.
"""
from dataclasses import dataclass, field


@dataclass
class Layer:
    """One row of the table."""

    op: str
    name: str
    inputs: list
    numbers: dict = field(default_factory=dict)

    def text(self):
        words = [self.op, self.name, ",".join(self.inputs) or "-"]
        for key, value in self.numbers.items():
            if isinstance(value, (tuple, list)):
                value = ",".join(map(str, value))
            words.append(f"{key}={value}")
        return " ".join(words)


def sides(pad):
    """Left, right, top, bottom of a padding that is one number, (vertical, horizontal), or all four."""
    if isinstance(pad, int):
        return (pad,) * 4
    if len(pad) == 2:
        return (pad[1], pad[1], pad[0], pad[0])
    return tuple(pad)


def both(size):
    return (size, size) if isinstance(size, int) else tuple(size)


class Network:
    """A table in the making: every method adds a layer after the last one, or after `of`, and returns its name."""

    def __init__(self, height, width, channels, kind="f32"):
        self.kind = kind
        # What the last layer's generated scores, which spread by about one, are multiplied by; None if there is no such layer.
        self.scores = None
        self.layers = []
        self.last = self.add_layer("input", "input", [], shape=(height, width, channels))

    def add_layer(self, op, name, inputs, **numbers):
        self.layers.append(Layer(op, name, list(inputs), numbers))
        self.last = name
        return name

    def conv(self, name, out, kernel, stride=1, pad=0, act="relu", groups=1, of=None):
        return self.add_layer("conv", name, [of or self.last], out=out, kernel=both(kernel), stride=stride,
                              pad=sides(pad), groups=groups, act=act)

    def depthwise(self, name, kernel, stride=1, pad=0, act="relu6", of=None):
        return self.add_layer("depthwise", name, [of or self.last], kernel=both(kernel), stride=stride,
                              pad=sides(pad), act=act)

    def full(self, name, out, act="relu"):
        return self.add_layer("full", name, [self.last], out=out, act=act)

    def pool(self, op, name, kernel, stride, pad=0, of=None):
        return self.add_layer(op, name, [of or self.last], kernel=both(kernel), stride=stride, pad=sides(pad))

    def norm(self, name, size=5, alpha=1e-4, beta=0.75):
        return self.add_layer("norm", name, [self.last], size=size, alpha=alpha, beta=beta)

    def add(self, name, a, b, act="none"):
        return self.add_layer("add", name, [a, b], act=act)

    def concat(self, name, *parts):
        return self.add_layer("concat", name, parts)

    def simple(self, op, name, of=None):
        return self.add_layer(op, name, [of or self.last])

    def outputs(self):
        return [layer.name for layer in self.layers if layer.op == "output"]

    def end(self, name="probabilities", scores=2.0):
        """A softmax at the end; quantised networks end with their scores, which 8 bits tell apart better.

        Scores spread, so that probabilities tell classes apart. Half precision disturbs the scores of a deep network by
        about 4 % of their spread (NumPy's, rounded after every addition, likewise): with its factor that is at most 0.5 %
        of a probability; the scores of another image differ by 4 % on average.
        """
        self.scores = 1 / 32 if self.kind == "f16" else scores
        if self.kind != "u8":
            self.simple("softmax", "softmax")
        self.add_layer("output", name if self.kind != "u8" else "scores", [self.last])
        return self

    def text(self):
        return f"type {self.kind}\n" + "".join(f"{layer.text()}\n" for layer in self.layers)


def lenet():
    n = Network(28, 28, 1)
    n.conv("conv1", 20, 5, act="none")
    n.pool("max", "pool1", 2, 2)
    n.conv("conv2", 50, 5, act="none")
    n.pool("max", "pool2", 2, 2)
    n.full("ip1", 500)
    n.full("ip2", 10, act="none")
    return n.end()


def alexnet():
    n = Network(227, 227, 3)
    n.conv("conv1", 96, 11, 4)
    n.norm("norm1")
    n.pool("max", "pool1", 3, 2)
    n.conv("conv2", 256, 5, pad=2, groups=2)
    n.norm("norm2")
    n.pool("max", "pool2", 3, 2)
    n.conv("conv3", 384, 3, pad=1)
    n.conv("conv4", 384, 3, pad=1, groups=2)
    n.conv("conv5", 256, 3, pad=1, groups=2)
    n.pool("max", "pool5", 3, 2)
    n.full("fc6", 4096)
    n.full("fc7", 4096)
    n.full("fc8", 1000, act="none")
    return n.end()


def mobilenet_v1(kind="f32"):
    # TensorFlow's "same" padding: an even input with stride 2 is padded at its end only.
    n = Network(224, 224, 3, kind)
    n.conv("conv0", 32, 3, 2, (0, 1, 0, 1), act="relu6")
    blocks = [(1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512)] + [(1, 512)] * 5 + [(2, 1024), (1, 1024)]
    for number, (stride, out) in enumerate(blocks, 1):
        n.depthwise(f"depthwise{number}", 3, stride, 1 if stride == 1 else (0, 1, 0, 1))
        n.conv(f"pointwise{number}", out, 1, act="relu6")
    n.simple("global", "mean")
    n.conv("logits", 1001, 1, act="none")
    return n.end()


def mobilenet_v2():
    n = Network(224, 224, 3)
    channels = 32
    n.conv("conv0", channels, 3, 2, (0, 1, 0, 1), act="relu6")
    number = 0
    for expansion, out, repeats, first in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)]:
        for repeat in range(repeats):
            stride, before = (first if repeat == 0 else 1), n.last
            block = f"block{number}"
            if expansion > 1:
                n.conv(f"{block}.expand", channels * expansion, 1, act="relu6")
            n.depthwise(f"{block}.depthwise", 3, stride, 1 if stride == 1 else (0, 1, 0, 1))
            n.conv(f"{block}.project", out, 1, act="none")
            if stride == 1 and channels == out:
                n.add(f"{block}.add", before, n.last)
            channels, number = out, number + 1
    n.conv("conv1", 1280, 1, act="relu6")
    n.simple("global", "mean")
    n.conv("logits", 1001, 1, act="none")
    return n.end()


def fire(n, name, squeeze, expand):
    start = n.conv(f"{name}.squeeze", squeeze, 1)
    one = n.conv(f"{name}.expand1", expand, 1, of=start)
    three = n.conv(f"{name}.expand3", expand, 3, pad=1, of=start)
    n.concat(f"{name}.concat", one, three)


def squeezenet(version):
    n = Network(227 if version == "1.0" else 224, 227 if version == "1.0" else 224, 3)
    if version == "1.0":
        n.conv("conv1", 96, 7, 2)
        pooled = (1, 4, 8)
    else:
        n.conv("conv1", 64, 3, 2)
        pooled = (1, 3, 5)
    widths = {number: (16 * (number // 2), 64 * (number // 2)) for number in range(2, 10)}
    for number in range(1, 10):
        if number in widths:
            fire(n, f"fire{number}", *widths[number])
        if number in pooled:
            # Rounded up: the last window may reach beyond the end.
            n.pool("max", f"pool{number}", 3, 2, (0, 1, 0, 1))
    n.conv("conv10", 1000, 1)
    n.simple("global", "mean")
    return n.end()


def resnet18():
    n = Network(224, 224, 3)
    n.conv("conv1", 64, 7, 2, 3)
    n.pool("max", "pool1", 3, 2, 1)
    channels = 64
    for stage, out in enumerate([64, 128, 256, 512], 1):
        for block in range(2):
            name, before = f"stage{stage}.{block}", n.last
            stride = 2 if stage > 1 and block == 0 else 1
            n.conv(f"{name}.conv1", out, 3, stride, 1, of=before)
            branch = n.conv(f"{name}.conv2", out, 3, 1, 1, act="none")
            if stride != 1 or channels != out:
                before = n.conv(f"{name}.shortcut", out, 1, stride, act="none", of=before)
            n.add(f"{name}.add", branch, before, act="relu")
            channels = out
    n.simple("global", "mean")
    n.full("fc", 1000, act="none")
    return n.end()


def resnet50():
    n = Network(224, 224, 3)
    n.conv("conv1", 64, 7, 2, 3)
    n.pool("max", "pool1", 3, 2, 1)
    channels = 64
    for stage, (width, repeats) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], 1):
        for block in range(repeats):
            name, before = f"stage{stage}.{block}", n.last
            stride = 2 if stage > 1 and block == 0 else 1
            n.conv(f"{name}.conv1", width, 1, of=before)
            n.conv(f"{name}.conv2", width, 3, stride, 1)
            branch = n.conv(f"{name}.conv3", 4 * width, 1, act="none")
            if block == 0:
                before = n.conv(f"{name}.shortcut", 4 * width, 1, stride, act="none", of=before)
            n.add(f"{name}.add", branch, before, act="relu")
            channels = 4 * width
    n.simple("global", "mean")
    n.full("fc", 1000, act="none")
    return n.end()


def googlenet():
    n = Network(224, 224, 3)
    ceil = (0, 1, 0, 1)
    n.conv("conv1", 64, 7, 2, 3)
    n.pool("max", "pool1", 3, 2, ceil)
    n.norm("norm1")
    n.conv("conv2.reduce", 64, 1)
    n.conv("conv2", 192, 3, pad=1)
    n.norm("norm2")
    n.pool("max", "pool2", 3, 2, ceil)
    table = {
        "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
        "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
        "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
        "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
    }
    for name, (one, reduce3, three, reduce5, five, projection) in table.items():
        if name in ("4a", "5a"):
            n.pool("max", f"pool{int(name[0]) - 1}", 3, 2, ceil)
        start = n.last
        a = n.conv(f"{name}.1x1", one, 1, of=start)
        n.conv(f"{name}.3x3.reduce", reduce3, 1, of=start)
        b = n.conv(f"{name}.3x3", three, 3, pad=1)
        n.conv(f"{name}.5x5.reduce", reduce5, 1, of=start)
        c = n.conv(f"{name}.5x5", five, 5, pad=2)
        n.pool("max", f"{name}.pool", 3, 1, 1, of=start)
        d = n.conv(f"{name}.projection", projection, 1)
        n.concat(f"{name}.concat", a, b, c, d)
    n.simple("global", "mean")
    n.full("fc", 1000, act="none")
    return n.end()


def vgg16():
    n = Network(224, 224, 3)
    for stage, (out, repeats) in enumerate([(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)], 1):
        for number in range(1, repeats + 1):
            n.conv(f"conv{stage}.{number}", out, 3, pad=1)
        n.pool("max", f"pool{stage}", 2, 2)
    n.full("fc6", 4096)
    n.full("fc7", 4096)
    n.full("fc8", 1000, act="none")
    return n.end()


def inception_v3():
    n = Network(299, 299, 3)
    n.conv("conv1a", 32, 3, 2)
    n.conv("conv2a", 32, 3)
    n.conv("conv2b", 64, 3, pad=1)
    n.pool("max", "pool1", 3, 2)
    n.conv("conv3b", 80, 1)
    n.conv("conv4a", 192, 3)
    n.pool("max", "pool2", 3, 2)

    def branch(name, start, *convs):
        """Convolutions one after another: outputs, kernel, and padding that keeps the size, or stride 2 without."""
        n.last = start
        for number, (out, kernel, *stride) in enumerate(convs):
            height, width = both(kernel)
            pad = 0 if stride else (height // 2, width // 2)
            n.conv(f"{name}.{number}", out, kernel, stride[0] if stride else 1, pad)
        return n.last

    def pooled(name, start, out):
        n.pool("mean", f"{name}.pool", 3, 1, 1, of=start)
        return n.conv(f"{name}.projection", out, 1)

    for name, projection in (("5b", 32), ("5c", 64), ("5d", 64)):
        start = n.last
        n.concat(f"{name}.concat", branch(f"{name}.a", start, (64, 1)), branch(f"{name}.b", start, (48, 1), (64, 5)),
                 branch(f"{name}.c", start, (64, 1), (96, 3), (96, 3)), pooled(name, start, projection))
    start = n.last
    a, b = branch("6a.a", start, (384, 3, 2)), branch("6a.b", start, (64, 1), (96, 3), (96, 3, 2))
    n.concat("6a.concat", a, b, n.pool("max", "6a.pool", 3, 2, of=start))
    for name, width in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        start, row, column = n.last, (1, 7), (7, 1)
        n.concat(f"{name}.concat", branch(f"{name}.a", start, (192, 1)),
                 branch(f"{name}.b", start, (width, 1), (width, row), (192, column)),
                 branch(f"{name}.c", start, (width, 1), (width, column), (width, row), (width, column), (192, row)),
                 pooled(name, start, 192))
    start = n.last
    a = branch("7a.a", start, (192, 1), (320, 3, 2))
    b = branch("7a.b", start, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2))
    n.concat("7a.concat", a, b, n.pool("max", "7a.pool", 3, 2, of=start))
    for name in ("7b", "7c"):
        start = n.last
        a = branch(f"{name}.a", start, (320, 1))
        b = branch(f"{name}.b", start, (384, 1))
        b1, b2 = branch(f"{name}.b1", b, (384, (1, 3))), branch(f"{name}.b2", b, (384, (3, 1)))
        c = branch(f"{name}.c", start, (448, 1), (384, 3))
        c1, c2 = branch(f"{name}.c1", c, (384, (1, 3))), branch(f"{name}.c2", c, (384, (3, 1)))
        n.concat(f"{name}.concat", a, b1, b2, c1, c2, pooled(name, start, 192))
    n.simple("global", "mean")
    n.full("fc", 1000, act="none")
    # Single precision disturbs the scores of this network, the deepest, by up to 2e-4 of their spread (NumPy's by 1e-4). With
    # the usual factor, which spreads those of the second input by 4.6, that is 4e-4 of a probability; with this one less than 1e-4.
    return n.end(scores=0.25)


def yolo_v3_tiny():
    n = Network(416, 416, 3)
    early = None
    for number, out in enumerate((16, 32, 64, 128, 256, 512), 1):
        n.conv(f"conv{number}", out, 3, pad=1, act="leaky")
        early = n.last if number == 5 else early
        if number < 6:
            n.pool("max", f"pool{number}", 2, 2)
        else:
            n.pool("max", f"pool{number}", 2, 1, (0, 1, 0, 1))
    n.conv("conv7", 1024, 3, pad=1, act="leaky")
    route = n.conv("conv8", 256, 1, act="leaky")
    n.conv("conv9", 512, 3, pad=1, act="leaky")
    coarse = n.conv("conv10", 255, 1, act="none")
    n.conv("conv11", 128, 1, act="leaky", of=route)
    doubled = n.simple("double", "double")
    n.concat("concat", doubled, early)
    n.conv("conv12", 256, 3, pad=1, act="leaky")
    fine = n.conv("conv13", 255, 1, act="none")
    n.add_layer("output", "coarse", [coarse])
    n.add_layer("output", "fine", [fine])
    return n


NETWORKS = {
    "lenet": lenet,
    "alexnet": alexnet,
    "mobilenet-v1": mobilenet_v1,
    "mobilenet-v2": mobilenet_v2,
    "squeezenet-1.0": lambda: squeezenet("1.0"),
    "squeezenet-1.1": lambda: squeezenet("1.1"),
    "resnet-18": resnet18,
    "resnet-50": resnet50,
    "googlenet": googlenet,
    "vgg-16": vgg16,
    "inception-v3": inception_v3,
    "yolo-v3-tiny": yolo_v3_tiny,
    "mobilenet-v1-f16": lambda: mobilenet_v1("f16"),
    "mobilenet-v1-u8": lambda: mobilenet_v1("u8"),
}

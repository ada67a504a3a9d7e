# SPDX-License-Identifier: MIT OR Apache-2.0
"""The last field of each line of vectors.txt, from NumPy: prints the file as it should be, or with --check the lines that are wrong.

It knows the instructions by their texts alone and shares nothing with the model. Where numbers are rounded, they come from float64 or
longdouble by one rounding.
"""

import sys
from pathlib import Path

import numpy as np

np.seterr(all="ignore")
INTEGERS = {"8": "int8", "16": "int16", "32": "int32"}
CONDITIONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gtlt": lambda a, b: (a < b) | (a > b),
    "total": lambda a, b: (a == a) & (b == b),
}
LOGIC = {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor}
ROUNDINGS = {"rtp": np.ceil, "rtn": np.floor, "rtz": np.trunc}
CLAMPS = {"clamp_0_inf": (0, np.inf), "clamp_m1_1": (-1, 1), "clamp_0_1": (0, 1)}
MUXES = {
    "neg": lambda a, b, c: np.where(c < 0, a, b),
    "int_zero": lambda a, b, c: np.where(c == 0, a, b),
    "fp_zero": lambda a, b, c: np.where(c << 1 == 0, a, b),
    "bit": lambda a, b, c: a & c | b & ~c,
}


def element(name):
    """The NumPy type of the elements that `v2u16`, `i32` or `V2F16` names."""
    name = name.lower()
    name = name[2:] if name[0] == "v" else name
    kind, bits = name[0], name[1:]
    return np.dtype("float" + bits if kind == "f" else INTEGERS[bits] if kind == "s" else "u" + INTEGERS[bits])


def parts(word, dtype):
    """The elements of a word, lowest first."""
    return np.array([word], np.uint32).view(dtype)


def exact(values):
    """Values in a type in which sums and products of few of them are not rounded."""
    return values.astype(np.longdouble if values.dtype.kind == "f" else np.int64)


def narrowed(values, dtype, rounding=""):
    """Numbers as floats of a type: to the nearest, or towards zero."""
    near = values.astype(dtype)
    beyond = abs(near.astype(np.longdouble)) > abs(values)
    return np.where(beyond, np.nextafter(near, dtype.type(0)), near) if rounding == "rtz" else near


def fitted(values, dtype):
    """Numbers limited to what an integer type has."""
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(np.int64).astype(dtype)


class Source:
    """An operand: a word and what stands behind it."""

    def __init__(self, text, registers):
        name, *self.selects = text.split(".")
        self.word = registers[int(name[1:])] if name[0] == "r" else int(name.lstrip("#"), 16)

    def read(self, dtype, count=None):
        """Its elements as the selects arrange them, with their signs."""
        order = next((it for it in self.selects if it[0] in "hb" and it[1:].isdigit()), None)
        if order is None:
            found = parts(self.word, dtype)
        else:
            bits = 16 if order[0] == "h" else 8
            kind = dtype.kind + str(bits // 8)
            found = parts(self.word, np.dtype(kind))[[int(at) for at in order[1:]]].astype(dtype)
        if "abs" in self.selects:
            found = abs(found)
        if "neg" in self.selects:
            found = -found
        return found[: count or len(found)]


def integers(op, kind, flags, sources):
    """Arithmetic and logic; the elements of the result."""
    dtype = element(kind)
    read = [source.read(dtype) for source in sources]
    wide = [exact(it) for it in read]
    if op in ("IADD", "ISUB"):
        sum_ = wide[0] + wide[1] if op == "IADD" else wide[0] - wide[1]
        return fitted(sum_, dtype) if "saturate" in flags else sum_
    if op == "IADD_IMM":
        return wide[0] + wide[1]
    if op == "IMUL":
        return wide[0] * wide[1]
    if op == "HADD":
        return wide[0] + wide[1] + ("rhadd" in flags) >> 1
    if op == "IABS":
        return abs(wide[0])
    if op == "CLZ":
        return np.array([8 * dtype.itemsize - int(it).bit_length() for it in wide[0]])
    if op == "IDP":
        return np.array([wide[0] @ wide[1] + sources[2].read(np.dtype(np.int32))[0]])
    if op == "MUX":
        signed = [source.read(np.dtype(dtype.name.lstrip("u"))) for source in sources]
        return MUXES[next((it for it in flags if it in MUXES), "int_zero")](*signed)
    raise KeyError(op)


def shift(op, kind, flags, sources):
    """A shift by a byte, then logic."""
    direction, logic = op.split("_")
    signed = "signed" in flags
    dtype = element(kind.replace("i", "s" if signed else "u"))
    value = exact(sources[0].read(dtype))
    counts = parts(sources[1].word, np.uint8)
    at = int(sources[1].selects[0][1])
    count = int(counts[at]) & 8 * dtype.itemsize - 1
    value = value << count if direction == "LSHIFT" else value >> count
    other = exact(sources[2].read(dtype))
    other = ~other if "not" in sources[2].selects else other
    result = LOGIC[logic](value, other)
    return ~result if "not_result" in flags else result


def compared(op, kind, flags, sources):
    """Comparisons and selections."""
    dtype = element(kind)
    condition = CONDITIONS[next(it for it in flags if it in CONDITIONS)]
    true = condition(sources[0].read(dtype), sources[1].read(dtype))
    bits = np.dtype(f"u{dtype.itemsize}")
    if op == "CSEL":
        return np.where(true, sources[2].read(bits), sources[3].read(bits))
    one = {"i1": 1, "m1": np.iinfo(bits).max, "f1": np.ones(1, np.dtype(f"f{max(dtype.itemsize, 2)}")).view(bits)[0]}
    result = np.where(true, one[next(it for it in flags if it in one)], 0).astype(bits)
    return LOGIC[op.split("_")[1]](result, sources[2].read(bits))


def interval(values, flags):
    """Mantissa and exponent: of [0.5, 1), of [0.75, 1.5) for logarithms, of [0.25, 1) and halved for roots."""
    mantissa, exponent = np.frexp(values)
    if "sqrt" in flags:
        odd = exponent & 1
        return np.ldexp(mantissa, -odd), exponent + odd >> 1
    low = (abs(mantissa) < 0.75) & ("log" in flags)
    return np.where(low, 2 * mantissa, mantissa), np.where(low, exponent - 1, exponent)


def floats(op, kind, flags, sources):
    """Arithmetic on floats."""
    dtype = element(kind)
    scalar = 1 if kind == "f16" else None
    integer = np.dtype(f"i{dtype.itemsize}")
    if op == "FEXP":
        return np.exp2(exact(sources[0].read(integer)) / np.longdouble(1 << 24)).astype(dtype)
    values = [exact(source.read(dtype, scalar)) for source in sources]
    a, b, c = (values + [None] * 2)[:3]
    if op in ("FADD", "FADD_IMM"):
        result = a + b
    elif op == "FMA":
        result = a * b + c
    elif op == "FADD_LSCALE":
        result = a + np.ldexp(b, 8)
    elif op.startswith("FMA_RSCALE"):
        product = a * b
        if op.endswith("_N"):
            product = np.where((a == 0) | (b == 0), 0, product)
        scale = sources[3].read(np.dtype(np.int16))[:1] if op.endswith("_SCALE16") else sources[3].read(integer)
        result = np.ldexp(product + c, scale)
    elif op == "LDEXP":
        result = np.ldexp(a, sources[1].read(integer))
    elif op in ("FMIN", "FMAX"):
        result = np.fmin(a, b) if op == "FMIN" else np.fmax(a, b)
    elif op == "FROUND":
        result = next((ROUNDINGS[it] for it in flags if it in ROUNDINGS), np.rint)(a)
    elif op == "FRCP":
        result = 1 / a
    elif op == "FRSQ":
        result = 1 / np.sqrt(a)
    elif op == "FREXPM":
        result = interval(a, flags)[0]
    elif op == "FREXPE":
        return interval(a, flags)[1].astype(integer)
    elif op == "FLOGD":
        mantissa = interval(a, ["log"])[0]
        result = np.log2(mantissa) / (mantissa - 1)
    else:
        raise KeyError(op)
    for limits in (CLAMPS[it] for it in flags if it in CLAMPS):
        result = np.clip(result, *limits)
    return result.astype(dtype)


def converted(op, flags, sources):
    """`A_TO_B`."""
    source, target = op.split("_TO_")
    vector = target[0] == "V"
    dtype = element(target)
    read = [it.read(element(source), None if vector else 1) for it in sources]
    if source == "V2F32":
        read = [np.concatenate(read)]
    values = exact(read[0])
    rounding = next((it for it in flags if it in ROUNDINGS), "")
    for limits in (CLAMPS[it] for it in flags if it in CLAMPS):
        values = np.clip(values, *limits)
    if dtype.kind == "f":
        return narrowed(values.astype(np.longdouble), dtype, rounding)
    if values.dtype.kind == "i":
        return values
    return fitted(ROUNDINGS.get(rounding, np.rint)(values), dtype)


def table(op, sources):
    """A sine or cosine of 64ths of a turn."""
    angle = 2 * np.pi * np.longdouble(sources[0].word & 63) / 64
    return np.array([np.sin(angle) if op == "FSIN_TABLE" else np.cos(angle)]).astype(np.float32)


def result(text, inputs):
    """The word in r0 after an instruction."""
    name, operands = text.split(" ", 1)
    to, *operands = operands.split(", ")
    registers = dict(enumerate(inputs, 2))
    sources = [Source(it, registers) for it in operands]
    op, *flags = name.split(".")
    kind = flags[0] if flags else ""
    bits = 8 if kind[-1:] == "8" and kind != "u8" else 16 if kind[-2:] == "16" else 32
    if "_TO_" in op:
        values, bits = converted(op, flags, sources), int(op.split("_TO_")[1].lstrip("V2").lstrip("FSU"))
    elif op.endswith("_TABLE"):
        values, bits = table(op, sources), 32
    elif "SHIFT_" in op:
        values = shift(op, kind, flags, sources)
    elif op == "CSEL" or "CMP_" in op:
        values = compared(op, kind, flags, sources)
    elif "f" in kind:
        values = floats(op, kind, flags, sources)
    else:
        values = integers(op, kind, flags, sources)
        bits = 32 if op == "IDP" else bits
    if values.dtype.kind == "f":
        values = values.view(f"u{values.dtype.itemsize}")
    word = sum((int(it) & (1 << bits) - 1) << bits * at for at, it in enumerate(values))
    old = 0xAAAAAAAA
    if to == "r0.h0":
        return old & 0xFFFF0000 | word & 0xFFFF
    if to == "r0.h1":
        return old & 0xFFFF | word & 0xFFFF0000
    return word


def main():
    written = Path(__file__).with_suffix(".txt").read_text().splitlines()
    lines = []
    for line in written:
        if not line.startswith("#"):
            text, inputs, *_ = line.split("; ")
            line = f"{text}; {inputs}; {result(text, [int(it, 16) for it in inputs.split()]):x}"
        lines.append(line)
    if sys.argv[1:] == ["--check"]:
        lines = [f"{found}, not {line.split('; ')[-1]}" for found, line in zip(written, lines) if found != line]
    sys.stdout.writelines(line + "\n" for line in lines)
    return bool(sys.argv[1:] and lines)


if __name__ == "__main__":
    sys.exit(main())

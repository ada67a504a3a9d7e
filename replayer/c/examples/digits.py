#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which digit is in an image: digits.py RECORDING IMAGE.npy

GPUREPLAY_LIBRARY names the shared library; `cargo build --release -p gpureplay-c` makes target/release/libgpureplay.so.
"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import gpureplay  # noqa: E402


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: digits.py RECORDING IMAGE.npy")
    with gpureplay.open(sys.argv[1]) as net:
        probabilities = net.run({"input": np.load(sys.argv[2]).astype(np.float32)})["probabilities"]
    best = int(probabilities.argmax())
    print(f"digit {best} ({probabilities[best]:.3f})")
    print(*(f"{probability:.9g}" for probability in probabilities))


if __name__ == "__main__":
    main()

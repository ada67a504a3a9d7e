#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which digit is in an image, through the C interface: digits.py RECORDING IMAGE.npy

GPUREPLAY_LIBRARY names the shared library; `cargo build --release -p gpureplay-c` makes target/release/libgpureplay.so.
"""
import ctypes
import os
import sys

import numpy as np

library = ctypes.CDLL(os.environ.get("GPUREPLAY_LIBRARY", "target/release/libgpureplay.so"))
library.gpureplay_last_error.restype = ctypes.c_char_p


def call(name, *arguments):
    """Calls a function that returns a status."""
    if getattr(library, f"gpureplay_{name}")(*arguments):
        raise RuntimeError(library.gpureplay_last_error().decode())


class Session:
    """A recording on a device."""

    def __init__(self, path, device=None):
        recording = ctypes.c_void_p()
        self.session = ctypes.c_void_p()
        call("open", os.fsencode(path), ctypes.byref(recording))
        try:
            call("session_open", recording, device and device.encode(), ctypes.byref(self.session))
        finally:
            library.gpureplay_close(recording)

    def bind(self, name, array):
        """Gives a tensor a value: an array of its type and shape."""
        array = np.ascontiguousarray(array)
        call("bind", self.session, name.encode(), ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def run(self):
        call("run", self.session)

    def read(self, name, shape, dtype=np.float32):
        """The value of a tensor."""
        array = np.empty(shape, dtype)
        call("read", self.session, name.encode(), ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return array

    def close(self):
        library.gpureplay_session_close(self.session)
        self.session = None


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: digits.py RECORDING IMAGE.npy")
    session = Session(sys.argv[1])
    session.bind("input", np.load(sys.argv[2]).astype(np.float32))
    session.run()
    probabilities = session.read("probabilities", 10)
    session.close()
    best = int(probabilities.argmax())
    print(f"digit {best} ({probabilities[best]:.3f})")
    print(*(f"{probability:.9g}" for probability in probabilities))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs all held-out digits in one process and in one process each, nine times in turn, and compares answers, time and processor time.

Usage: one_process.py GPUREPLAY [RUN'S OPTIONS]     (from the top of the repository; needs no package)
"""

import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time

RECORDING = "recordings/digits-g52"
IMAGES = pathlib.Path("tools/digits/held-out/images.npy")
LABELS = pathlib.Path("tools/digits/held-out/labels.npy")
ROUNDS = 9


def split(folder):
    """Writes each picture of IMAGES as a file of its own; their paths."""
    data = IMAGES.read_bytes()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    header = data[10:begin].decode().replace("(360, 8, 8)", "(8, 8)")
    header = header.rstrip("\n ").ljust(128 - 10 - 1) + "\n"
    paths = []
    for index in range(360):
        path = folder / f"{index:03}.npy"
        one = data[begin + 256 * index : begin + 256 * (index + 1)]
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + one)
        paths.append(str(path))
    return paths


def timed(work):
    """What work gives, its processor time and its time on the clock, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    result = work()
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    return result, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, clock


def main():
    command, options = [sys.argv[1], "run", RECORDING, "--json"], sys.argv[2:]

    def run(arguments):
        done = subprocess.run(command + arguments + options, capture_output=True, text=True)
        # 1: an answer is not the one that the recording has for its own picture.
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        return json.loads(done.stdout)

    def all_at_once():
        return run(["--inputs", str(IMAGES), "--truth", str(LABELS)])

    with tempfile.TemporaryDirectory() as folder:
        paths = split(pathlib.Path(folder))
        rounds = []
        for _ in range(ROUNDS):
            # One process takes so short that the median of three stands for it; 360 are their own mean.
            ones = sorted((timed(all_at_once) for _ in range(3)), key=lambda one: one[2])
            together, cpu, clock = ones[1]
            apart, cpus, clocks = timed(lambda: [run(["--input", path]) for path in paths])
            rounds.append((cpu, cpus, clock, clocks))
    # The label of the most probable class: "digit 3".
    said = [answer["outputs"]["probabilities"]["top"][0][0] for answer in apart]
    same = sum(one == answer["label"] for one, answer in zip(said, together["answers"]))
    print(f"right: {together['right']} of {together['inputs']}; the same answer in a process of its own: {same}")
    for name, one, many in ("clock", 2, 3), ("processor time", 0, 1):
        ratios = sorted(times[many] / times[one] for times in rounds)
        first, last = (sorted(times[at] for times in rounds)[ROUNDS // 2] for at in (one, many))
        print(
            f"{name}: {1000 * first:.0f} ms in one process, {last:.2f} s in 360, medians of {ROUNDS} rounds; "
            f"ratio {ratios[ROUNDS // 2]:.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})"
        )


main()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the inputs and outputs that a recorded run holds as files: ports.py RECORDING FOLDER. It reads the format without our code."""
import hashlib
import os
import sys
import tomllib

CHUNK = 256 << 10


def unpacked(packed):
    """A block of LZ4."""
    out, at = bytearray(), 0
    while at < len(packed):
        token = packed[at]
        at += 1

        def more(count):
            nonlocal at
            if count == 15:
                while True:
                    byte = packed[at]
                    at += 1
                    count += byte
                    if byte != 255:
                        break
            return count

        literals = more(token >> 4)
        out += packed[at : at + literals]
        at += literals
        if at >= len(packed):
            break
        back = packed[at] | packed[at + 1] << 8
        at += 2
        count = more(token & 15) + 4
        piece = bytes(out[-back:])
        out += piece[:count] if back >= count else (piece * (count // back + 1))[:count]
    return bytes(out)


def object_of(folder, name):
    for path in (f"{folder}/objects/{name[:2]}/{name}", f"{folder}/objects/{name[:2]}/{name[2:]}", f"{folder}/objects/{name}"):
        if os.path.exists(path):
            data = open(path, "rb").read()
            data = unpacked(data[1:]) if data[0] else data[1:]
            assert hashlib.sha256(data).hexdigest() == name
            return data
    raise FileNotFoundError(name)


def contents(folder, name):
    names = object_of(folder, name).hex()
    return b"".join(object_of(folder, names[i : i + 64]) for i in range(0, len(names), 64))


if __name__ == "__main__":
    folder, to = sys.argv[1:3]
    os.makedirs(to, exist_ok=True)
    run = tomllib.load(open(f"{folder}/runs/0.toml", "rb"))
    for port in run.get("input", []) + run.get("output", []):
        data = contents(folder, port["contents"])[: port["size"]]
        assert len(data) == port["size"], (len(data), port)
        open(f"{to}/{port['name']}", "wb").write(data)
    print(len(run.get("input", [])), len(run.get("output", [])), sum(o["do"] == "launch" for o in run["operation"]))

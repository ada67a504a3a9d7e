#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packs the module and a shared library into a wheel: wheel.py VERSION PLATFORM LIBRARY FOLDER

`cargo xtask dist` calls it. Times are SOURCE_DATE_EPOCH, so that two builds give the same bytes.
"""
import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

PYTHON = Path(__file__).resolve().parent
TOP = PYTHON.parents[2]
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")

METADATA = """\
Metadata-Version: 2.1
Name: gpureplay
Version: {version}
Summary: Replays of recorded GPU computations, with NumPy arrays in and out
License: MIT OR Apache-2.0
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/plain

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: gpureplay (cargo xtask dist)
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def contents(version: str, platform: str, library: Path) -> dict[str, bytes]:
    """What is in the wheel, by name, without the record of it."""
    package = PYTHON / "gpureplay"
    source = (package / "__init__.py").read_text()
    description = source.split('"""')[1]
    about = f"gpureplay-{version}.dist-info"
    files = {
        "gpureplay/__init__.py": source.encode(),
        "gpureplay/cuda.py": (package / "cuda.py").read_bytes(),
        "gpureplay/py.typed": (package / "py.typed").read_bytes(),
        "gpureplay/libgpureplay.so.0": library.read_bytes(),
        f"{about}/METADATA": METADATA.format(version=version, description=description).encode(),
        f"{about}/WHEEL": WHEEL.format(platform=platform).encode(),
    }
    for name in LICENCES:
        files[f"{about}/licenses/{name}"] = (TOP / name).read_bytes()
    return files


def record(files: dict[str, bytes], name: str) -> bytes:
    """The list of files with their digests; it is in itself, without one."""
    lines = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{name},,\n"]).encode()


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit("usage: wheel.py VERSION PLATFORM LIBRARY FOLDER")
    version, platform, library, folder = sys.argv[1:]
    files = contents(version, platform, Path(library))
    name = f"gpureplay-{version}.dist-info/RECORD"
    files[name] = record(files, name)
    # A zip archive has no time before 1980.
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)
    path = Path(folder) / f"gpureplay-{version}-py3-none-{platform}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for entry, data in files.items():
            info = zipfile.ZipInfo(entry, time.gmtime(seconds)[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if entry.endswith(".so.0") else 0o100644) << 16
            wheel.writestr(info, data)
    print(path)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recorded launches of CUDA kernels, with NumPy arrays in and out.

    from gpureplay import cuda

    with cuda.open("rec#0") as launch:
        x = launch.before(2, np.float32)
        found = launch.run(inputs={2: x * 2})
        y = found.after(3, np.float32)
        print(launch.judge("mine.cubin")["verdict"])

Each call runs the command `gpureplay cuda`, or the one that GPUREPLAY names: recorded addresses must be free, which they are only in a
process of its own.
"""
from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

Path = Union[str, "os.PathLike[str]"]
Sizes = Union[int, Sequence[int]]


class Error(RuntimeError):
    """What went wrong. `code` is the exit code of the command."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _call(*words: Any, right: Sequence[int] = (0,)) -> str:
    command = shlex.split(os.environ.get("GPUREPLAY", "gpureplay cuda"))
    try:
        done = subprocess.run(
            [*command, *(os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in words)],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise Error(127, f"{command[0]} is not in PATH; GPUREPLAY names the command") from None
    if done.returncode not in right:
        raise Error(done.returncode, done.stderr.strip() or done.stdout.strip())
    return done.stdout


def _json(*words: Any) -> dict[str, Any]:
    """The last line, which is JSON also where the verdict is not right."""
    lines = _call(*words, right=(0, 1)).splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found


def _sizes(name: str, sizes: Optional[Sizes]) -> list[str]:
    if sizes is None:
        return []
    numbers = [sizes] if isinstance(sizes, int) else list(sizes)
    return [f"--{name}", ",".join(str(int(number)) for number in numbers)]


@dataclass(frozen=True)
class Parameter:
    """A parameter: its bytes, and the piece of memory that it points into, if it does."""

    value: bytes
    memory: Optional[int]
    offset: int

    def number(self, dtype: Any) -> Any:
        """Its value as a number of a type."""
        return np.frombuffer(self.value, dtype)[0]


class Result:
    """A replay: its report, and memory as it left it."""

    def __init__(self, launch: "Launch", report: dict[str, Any], files: Mapping[int, pathlib.Path]) -> None:
        self._launch = launch
        self._files = files
        #: What `gpureplay cuda run --json` prints.
        self.report = report
        #: exact, within, differs, inconclusive; unverified if inputs were given.
        self.verdict: str = report["verdict"]

    def after(self, parameter: int, dtype: Any = np.uint8) -> np.ndarray:
        """Memory from where a parameter points, as the replay left it."""
        piece, offset = self._launch._place(parameter)
        return _array(self._files[piece], offset, dtype)


def _array(path: pathlib.Path, offset: int, dtype: Any) -> np.ndarray:
    kind = np.dtype(dtype)
    count = (path.stat().st_size - offset) // kind.itemsize
    return np.fromfile(path, kind, count, offset=offset)


class Launch:
    """A recorded launch. Close it, or use it in `with`: it holds a folder of files."""

    def __init__(self, target: Path, folder: Optional[Path] = None) -> None:
        self._own: Optional[str] = None
        self._runs = 0
        given = pathlib.Path(os.fspath(target))
        if (given / "launch.json").is_file():
            #: The folder that `gpureplay extract` wrote.
            self.folder = given.absolute()
        else:
            if folder is None:
                self._own = tempfile.mkdtemp(prefix="gpureplay-")
                folder = pathlib.Path(self._own) / "launch"
            self.folder = pathlib.Path(os.fspath(folder)).absolute()
            try:
                _call("extract", os.fspath(target), "-o", self.folder)
            except BaseException:
                self.close()
                raise
        #: What `launch.json` holds.
        self.report: dict[str, Any] = json.loads((self.folder / "launch.json").read_text())
        self.kernel: str = self.report["kernel"]
        self.grid: tuple[int, ...] = tuple(self.report["grid"])
        self.block: tuple[int, ...] = tuple(self.report["block"])
        self.parameters: list[Parameter] = [
            Parameter(bytes.fromhex(one["value"]), one["memory"], one["memory_offset"] or 0)
            for one in self.report["parameters"]
        ]

    def __enter__(self) -> "Launch":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the folder, if it is not the caller's."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = None

    @property
    def _recording(self) -> pathlib.Path:
        return self.folder / "recording"

    def _place(self, parameter: int) -> tuple[int, int]:
        one = self.parameters[parameter]
        if one.memory is None:
            raise ValueError(f"parameter {parameter} points into no memory")
        return one.memory, one.offset

    def before(self, parameter: int, dtype: Any = np.uint8) -> np.ndarray:
        """Memory from where a parameter points, before the launch: a copy."""
        piece, offset = self._place(parameter)
        return _array(self.folder / self.report["memory"][piece]["before"], offset, dtype)

    def after(self, parameter: int, dtype: Any = np.uint8) -> np.ndarray:
        """The same after the launch, as it was recorded."""
        piece, offset = self._place(parameter)
        memory = self.report["memory"][piece]
        return _array(self.folder / (memory["after"] or memory["before"]), offset, dtype)

    def run(
        self,
        image: Optional[Path] = None,
        inputs: Optional[Mapping[int, np.ndarray]] = None,
        block: Optional[Sizes] = None,
        grid: Optional[Sizes] = None,
        runs: int = 0,
        options: Sequence[str] = (),
    ) -> Result:
        """Replays it, perhaps with another image, other sizes, or other memory where parameters point. With `inputs` nothing is compared."""
        self._runs += 1
        out = self.folder / f"run{self._runs}"
        words: list[Any] = ["run", self._recording, "--json", "--save-output", out, "--runs", runs]
        words += _sizes("block", block) + _sizes("grid", grid) + list(options)
        if image is not None:
            words += ["--image", image]
        pieces: dict[int, np.ndarray] = {}
        for parameter, value in (inputs or {}).items():
            piece, offset = self._place(parameter)
            if piece not in pieces:
                name = self.report["memory"][piece]["before"]
                pieces[piece] = np.fromfile(self.folder / name, np.uint8)
            data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
            room = pieces[piece][offset:]
            if data.size > room.size:
                raise ValueError(f"parameter {parameter} points at {room.size} bytes, {data.size} were given")
            room[: data.size] = data
        for piece, data in pieces.items():
            path = self.folder / f"input{piece}.bin"
            data.tofile(path)
            words += ["--memory", f"{piece}={path}"]
        if pieces:
            words.append("--no-verify")
        report = _json(*words)
        files = {piece: out / f"{piece}.bin" for piece in range(len(self.report["memory"]))}
        return Result(self, report, files)

    def judge(self, image: Path, runs: int = 20, options: Sequence[str] = ()) -> dict[str, Any]:
        """The verdict on a changed kernel: see `gpureplay cuda judge`."""
        return _json("judge", self._recording, "--image", image, "--runs", runs, *options)

    def tune(self, options: Sequence[str] = (), **lists: str) -> dict[str, Any]:
        """Many ways to run it: `tune(blocks="64..512", grids="132..1056")`."""
        words = [word for name, value in lists.items() for word in (f"--{name}", value)]
        return _json("tune", self._recording, "--json", *words, *options)

    def analyse(self, options: Sequence[str] = ()) -> dict[str, Any]:
        """What probes count inside of the kernel."""
        words = ["analyse", self._recording, "--json"]
        text = self.folder / "kernel.ptx"
        if text.is_file():
            words += ["--ptx", os.fspath(text)]
        return _json(*words, *options)


def open(target: Path, folder: Optional[Path] = None) -> Launch:
    """Opens a launch (`"rec#0"`) or a folder of `gpureplay extract`. What is extracted goes to `folder`, or to one that is removed at the end."""
    return Launch(target, folder)

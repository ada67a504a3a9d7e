# SPDX-License-Identifier: MIT OR Apache-2.0
"""Replays of recorded GPU computations, with NumPy arrays in and out.

    with gpureplay.open("recordings/digits-g52") as net:
        out = net.run({"input": image})["probabilities"]

The shared library is the one that GPUREPLAY_LIBRARY names, the one beside this file (in a wheel), or the one that is installed.
In a source tree, `cargo build --release -p gpureplay-c` makes target/release/libgpureplay.so.
"""
from __future__ import annotations

import builtins
import ctypes
import operator
import os
import pathlib
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

_SONAME = "libgpureplay.so.0"


def _library_path() -> str:
    named = os.environ.get("GPUREPLAY_LIBRARY")
    if named:
        return named
    beside = pathlib.Path(__file__).with_name(_SONAME)
    return str(beside) if beside.exists() else _SONAME


def _load() -> ctypes.CDLL:
    path = _library_path()
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise OSError(
            f"{error}; GPUREPLAY_LIBRARY=/path/to/libgpureplay.so names the library, which `cargo build --release -p gpureplay-c` makes"
        ) from error


_library = _load()
_library.gpureplay_last_error.restype = ctypes.c_char_p
_library.gpureplay_version.restype = ctypes.c_char_p
_library.gpureplay_tensor_count.restype = ctypes.c_size_t
_library.gpureplay_layer_count.restype = ctypes.c_size_t
_library.gpureplay_layer_name.restype = ctypes.c_char_p

Path = Union[str, "os.PathLike[str]"]

#: Element types by the numbers of gpureplay_element_type.
_DTYPES = tuple(
    np.dtype(name)
    for name in ("<f4", "<f2", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f8", "?")
)
_KINDS = ("input", "output", "weight", "intermediate", "state")


class Error(RuntimeError):
    """What went wrong, where, and what to do. `status` is the number of gpureplay_status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("element", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("rank", ctypes.c_size_t),
        ("shape", ctypes.c_uint64 * 6),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_char_p),
        ("threads", ctypes.c_uint32),
        ("verbose", ctypes.c_uint32),
        ("retries", ctypes.c_uint32),
        ("any_gpu", ctypes.c_uint32),
    ]


class Timing(ctypes.Structure):
    """Times of the last run in seconds, and what it took: see gpureplay_timing in the C header."""

    _fields_ = [
        ("load", ctypes.c_double),
        ("run", ctypes.c_double),
        ("restore", ctypes.c_double),
        ("bind", ctypes.c_double),
        ("device", ctypes.c_double),
        ("read", ctypes.c_double),
        ("retries", ctypes.c_uint32),
        ("chains", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class Tensor:
    """A tensor of a recording. `kind` is input, output, weight, intermediate or state."""

    name: str
    kind: str
    dtype: np.dtype
    shape: tuple[int, ...]


#: What a tensor takes: an array, numbers in lists, or the path of a file.
Value = Union[np.ndarray, Sequence[Any], float, Path]


def _array(tensor: Tensor, value: Any) -> np.ndarray:
    """Numbers as an array of a tensor's type."""
    expected = f"expected an array, lists of numbers or a path for {tensor.name}"
    if not isinstance(value, (list, tuple, int, float, bool, np.generic)):
        raise TypeError(f"{expected}, got {type(value).__name__}")
    try:
        return np.asarray(value, tensor.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{expected}: {error}") from None


def _ended(what: str, data: bytes) -> bytes:
    """Bytes that C sees whole: it ends a text at its first NUL."""
    if b"\0" in data:
        raise ValueError(f"{what} holds a NUL: {data!r}")
    return data


def _text(what: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"expected text for {what}, got {type(value).__name__}")
    return _ended(what, value.encode())


def _path(value: Any) -> bytes:
    return _ended("the path", os.fsencode(value))


def _count(what: str, value: Any, bits: int) -> int:
    """A number that C has room for: others would lose their high bits."""
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{what} must be from 0 to {(1 << bits) - 1}, got {number}")
    return number


def version() -> str:
    """Version of the library."""
    text: bytes = _library.gpureplay_version()
    return text.decode()


def _call(name: str, *arguments: object) -> None:
    status = getattr(_library, f"gpureplay_{name}")(*arguments)
    if status:
        raise Error(status, _library.gpureplay_last_error().decode())


class Session:
    """A recording on a device. Use it in one thread at a time."""

    def __init__(self, recording: ctypes.c_void_p, options: _Options) -> None:
        self._session: Optional[ctypes.c_void_p] = None
        self.tensors: dict[str, Tensor] = {}
        for index in range(_library.gpureplay_tensor_count(recording)):
            tensor = _Tensor()
            _call("tensor", recording, ctypes.c_size_t(index), ctypes.byref(tensor))
            name = tensor.name.decode()
            shape = tuple(tensor.shape[: tensor.rank])
            self.tensors[name] = Tensor(name, _KINDS[tensor.kind], _DTYPES[tensor.element], shape)
        self.layers: list[str] = [
            _library.gpureplay_layer_name(recording, ctypes.c_size_t(index)).decode()
            for index in range(_library.gpureplay_layer_count(recording))
        ]
        session = ctypes.c_void_p()
        _call("session_open", recording, ctypes.byref(options), ctypes.byref(session))
        self._session = session

    def _tensor(self, name: str) -> Tensor:
        try:
            return self.tensors[name]
        except KeyError:
            raise KeyError(f"no tensor {name}; there are {', '.join(self.tensors)}") from None

    def _open(self) -> ctypes.c_void_p:
        if self._session is None:
            raise ValueError("the session is closed")
        return self._session

    def bind(self, name: str, value: Value) -> None:
        """Gives a tensor a value for all runs that follow: an array of its type and shape, lists of numbers, or the path of a file."""
        tensor = self._tensor(name)
        if isinstance(value, (str, builtins.bytes, os.PathLike)):
            _call("bind_file", self._open(), name.encode(), _path(value))
            return
        if not isinstance(value, np.ndarray):
            value = _array(tensor, value)
        if value.dtype != tensor.dtype:
            raise TypeError(f"expected {tensor.dtype} for {name}, got {value.dtype}; x.astype({tensor.dtype.name!r}) converts it")
        # A buffer has no shape: a tensor of one dimension takes as many elements in any.
        if value.shape != tensor.shape and (value.size,) != tensor.shape:
            raise ValueError(f"expected shape {tensor.shape} for {name}, got {value.shape}")
        array = np.ascontiguousarray(value)
        element = ctypes.c_uint32(_DTYPES.index(tensor.dtype))
        data = ctypes.c_void_p(array.ctypes.data)
        _call("bind", self._open(), name.encode(), element, data, ctypes.c_size_t(array.nbytes))

    def bind_weights(self, path: Path) -> None:
        """Gives every weight another value: from a .safetensors file, or a directory with a NAME.npy for each."""
        _call("bind_weights", self._open(), _path(path))

    def unbind(self, name: str) -> None:
        """Takes a value away: a weight and a state have the recording's again, an intermediate what its layer computes."""
        _call("unbind", self._open(), _text("a tensor", name))

    def reset_states(self) -> None:
        """Gives every state the value again that it has when the recording is opened."""
        _call("reset_states", self._open())

    def keep(self, name: str) -> None:
        """Keeps the value that an intermediate has when its layer ends, for `read`."""
        _call("keep", self._open(), _text("a tensor", name))

    def layer(self, name: Union[str, int]) -> int:
        """The index of a layer of a name."""
        if isinstance(name, str):
            return self.layers.index(name)
        index = operator.index(name)
        if not 0 <= index < len(self.layers):
            raise ValueError(f"no layer {index}; there are {len(self.layers)}, counted from 0")
        return index

    def run(
        self,
        inputs: Optional[Mapping[str, Value]] = None,
        layers: Optional[tuple[Union[str, int], Union[str, int]]] = None,
    ) -> dict[str, np.ndarray]:
        """Binds inputs, runs all layers or those from the first up to and with the last, and gives the outputs that were computed."""
        if inputs is not None and not isinstance(inputs, Mapping):
            raise TypeError(f"expected inputs by name, got {type(inputs).__name__}")
        for name, value in (inputs or {}).items():
            self.bind(name, value)
        if layers is None:
            _call("run", self._open())
        else:
            first, last = (self.layer(name) for name in layers)
            _call("run_layers", self._open(), ctypes.c_size_t(first), ctypes.c_size_t(last + 1))
            if last + 1 < len(self.layers):
                return {}
        outputs = (name for name, tensor in self.tensors.items() if tensor.kind == "output")
        return {name: self.read(name) for name in outputs}

    def read(self, name: str) -> np.ndarray:
        """The value of an output after a run, what the next run starts from of a state, or another tensor as it is in GPU memory now."""
        tensor = self._tensor(name)
        array = np.empty(tensor.shape, tensor.dtype)
        element = ctypes.c_uint32(_DTYPES.index(tensor.dtype))
        data = ctypes.c_void_p(array.ctypes.data)
        _call("read", self._open(), name.encode(), element, data, ctypes.c_size_t(array.nbytes))
        return array

    @property
    def timing(self) -> Timing:
        """Times of the last run."""
        timing = Timing()
        _call("timing", self._open(), ctypes.byref(timing))
        return timing

    def close(self) -> None:
        """Resets the GPU and gives the device back."""
        session, self._session = self._session, None
        if session is not None:
            _library.gpureplay_session_close(session)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_session", None) is not None:
            self.close()


def open(  # noqa: A001, as in gzip and tarfile
    recording: Union[Path, bytes],
    device: Optional[str] = None,
    *,
    threads: int = 0,
    retries: int = 0,
    any_gpu: bool = False,
    key: Optional[str] = None,
    minimum_counter: int = 0,
) -> Session:
    """Opens a recording (a directory, a file, a pack, or the bytes of a file) on a device.

    Without `device` that is "best": panfrost or panthor where it drives the recorded GPU and fits the recording, else the model.
    With `key` only what its owner has signed is used.
    """
    named = None if device is None else _text("device", device)
    options = _Options(named, _count("threads", threads, 32), 0, _count("retries", retries, 32), bool(any_gpu))
    handle = ctypes.c_void_p()
    if key is None and minimum_counter:
        raise ValueError("minimum_counter is of a signature: give its key too")
    if isinstance(recording, builtins.bytes):
        if key is not None:
            raise ValueError("a signature is checked for paths only")
        _call("open_bytes", recording, ctypes.c_size_t(len(recording)), ctypes.byref(handle))
    elif key is None:
        _call("open", _path(recording), ctypes.byref(handle))
    else:
        counter = ctypes.c_uint64(_count("minimum_counter", minimum_counter, 64))
        _call("open_signed", _path(recording), _text("key", key), counter, ctypes.byref(handle))
    try:
        return Session(handle, options)
    finally:
        _library.gpureplay_close(handle)

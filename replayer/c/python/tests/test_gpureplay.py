# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values that the module gives and errors that it raises. Needs pytest and the shared library.

    GPUREPLAY_LIBRARY=target/release/libgpureplay.so PYTHONPATH=replayer/c/python python3 -m pytest replayer/c/python/tests

Run it at the top of the tree, or let GPUREPLAY_DIGITS name the recording of the digits and GPUREPLAY_GENERATE that of a recurrent network.
"""
import base64
import hashlib
import os
import subprocess
import sys
import threading
from importlib import metadata
from pathlib import Path

import gpureplay
import numpy as np
import pytest

DIGITS = Path(os.environ.get("GPUREPLAY_DIGITS", "recordings/digits-g52"))
GENERATE = Path(os.environ.get("GPUREPLAY_GENERATE", "recordings/generate-g52"))


def image(digit):
    return np.load(DIGITS / f"inputs/{digit}.npy").astype(np.float32)


def expected(digit):
    return np.load(DIGITS / f"expected/{digit}.npy")


@pytest.fixture
def net():
    with gpureplay.open(DIGITS) as session:
        yield session


@pytest.mark.parametrize("digit", range(10))
def test_probabilities_are_those_of_the_recorded_stack(net, digit):
    probabilities = net.run({"input": image(digit)})["probabilities"]
    assert probabilities.dtype == np.float32
    assert probabilities.shape == (10,)
    assert probabilities.argmax() == digit
    assert probabilities.tobytes() == expected(digit).astype("<f4").tobytes()


def test_inputs_of_one_session_do_not_mix(net):
    for digit in (3, 8, 3):
        assert net.run({"input": image(digit)})["probabilities"].tobytes() == expected(digit).tobytes()


def test_an_array_with_gaps_is_taken(net):
    twice = np.repeat(image(3), 2, axis=1)
    assert net.run({"input": twice[:, ::2]})["probabilities"].tobytes() == expected(3).tobytes()


def test_a_file_is_an_input(net):
    assert net.run({"input": DIGITS / "inputs/3.npy"})["probabilities"].argmax() == 3


def test_bytes_are_a_recording():
    with gpureplay.open((DIGITS / "recording.gpr").read_bytes()) as session:
        assert session.run({"input": image(3)})["probabilities"].argmax() == 3


def test_layers_in_two_parts_give_what_all_give(net):
    last = len(net.layers) - 1
    middle = last // 2
    net.bind("input", image(3))
    assert net.run(layers=(0, middle)) == {}
    rest = net.run(layers=(net.layers[middle + 1], last))
    assert rest["probabilities"].tobytes() == expected(3).tobytes()


def test_tensors_have_types(net):
    tensor = net.tensors["input"]
    assert (tensor.kind, tensor.dtype, tensor.shape) == ("input", np.dtype("float32"), (8, 8))
    assert net.tensors["probabilities"].kind == "output"


def test_times_add_up(net):
    net.run({"input": image(3)})
    timing = net.timing
    assert timing.chains > 0
    assert timing.retries == 0
    assert 0 < timing.device <= timing.run


def test_states_are_read_written_and_reset():
    def write(session, characters):
        own = np.array([-1], np.int32)
        return b"".join(session.run({"forced": own})["character"].tobytes() for _ in range(characters))

    with gpureplay.open(GENERATE) as session:
        names = [name for name, tensor in session.tensors.items() if tensor.kind == "state"]
        assert names == ["hidden", "token"]
        assert write(session, 30) == b"ten little frogs on the log, o"
        states = {name: session.read(name) for name in names}
        rest = write(session, 26)
        assert rest == b"ne hopped off, nine left.\n"
        for name, value in states.items():
            session.bind(name, value)
        assert write(session, 26) == rest
        session.reset_states()
        assert write(session, 10) == b"ten little"
        for name in names:
            session.unbind(name)
        assert write(session, 10) == b"ten little"
    with gpureplay.open(GENERATE) as other:
        for name, value in states.items():
            other.bind(name, value)
        assert write(other, 26) == rest


def test_sessions_of_threads_are_their_own():
    found = {}

    def classify(digit):
        with gpureplay.open(DIGITS, threads=1) as session:
            found[digit] = session.run({"input": image(digit)})["probabilities"].argmax()

    threads = [threading.Thread(target=classify, args=(digit,)) for digit in (3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {3: 3, 7: 7}


def test_another_type_is_refused(net):
    with pytest.raises(TypeError, match="expected float32 for input, got int64"):
        net.run({"input": image(3).astype(np.int64)})


def test_another_shape_is_refused(net):
    with pytest.raises(ValueError, match=r"expected shape \(8, 8\) for input, got \(64,\)"):
        net.run({"input": image(3).reshape(64)})


def test_lists_are_taken(net):
    assert net.run({"input": image(3).tolist()})["probabilities"].tobytes() == expected(3).tobytes()


def test_what_is_no_array_is_named(net):
    with pytest.raises(TypeError, match="lists of numbers or a path for input, got NoneType"):
        net.run({"input": None})
    with pytest.raises(TypeError, match="for input: "):
        net.run({"input": [[1.0], [2.0, 3.0]]})
    with pytest.raises(ValueError, match=r"expected shape \(8, 8\) for input, got \(2,\)"):
        net.run({"input": [1.0, 2.0]})


def test_a_missing_library_names_the_variable():
    environment = {**os.environ, "GPUREPLAY_LIBRARY": "/nowhere/libgpureplay.so"}
    command = [sys.executable, "-c", "import gpureplay"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True).stderr
    assert "OSError" in said and "GPUREPLAY_LIBRARY=" in said


def test_an_unknown_tensor_is_named(net):
    with pytest.raises(KeyError, match="no tensor picture; there are input"):
        net.run({"picture": image(3)})


def test_a_run_without_its_input_says_which(net):
    with pytest.raises(gpureplay.Error, match="input") as raised:
        net.run()
    assert raised.value.status != 0


def test_a_recording_that_is_not_there():
    with pytest.raises(gpureplay.Error, match="nowhere.gpr"):
        gpureplay.open("nowhere.gpr")


def test_a_damaged_recording_is_refused():
    damaged = bytearray((DIGITS / "recording.gpr").read_bytes())
    del damaged[len(damaged) // 2 :]
    with pytest.raises(gpureplay.Error) as raised:
        gpureplay.open(bytes(damaged))
    assert raised.value.status == 3


def test_an_unknown_device_names_those_that_there_are():
    with pytest.raises(gpureplay.Error, match="devices are: best, model"):
        gpureplay.open(DIGITS, device="toaster")


def test_a_closed_session_refuses(net):
    net.close()
    with pytest.raises(ValueError, match="closed"):
        net.run({"input": image(3)})


WRONG = [None, 1, 1.5, b"x", [], {}, (), object(), np.zeros(3), np.zeros((8, 8), object), 3 + 4j, bytearray(b"x")]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_wrong_types_are_named(net, value):
    for call in (net.unbind, net.keep, lambda it: net.read(it), lambda it: net.bind(it, image(3))):
        with pytest.raises((TypeError, KeyError)):
            call(value)
    with pytest.raises(TypeError):
        net.layer(value if not isinstance(value, int) else 1.0)
    if value is not None and not isinstance(value, dict):
        with pytest.raises(TypeError):
            net.run(value)
    if value is not None:
        with pytest.raises(TypeError):
            gpureplay.open(DIGITS, device=value)
        with pytest.raises(TypeError):
            gpureplay.open(DIGITS, key=value)
    if not isinstance(value, int):
        for name in ("threads", "retries"):
            with pytest.raises(TypeError):
                gpureplay.open(DIGITS, **{name: value})


def test_a_text_is_not_cut_at_a_nul(net):
    for call in (
        lambda: gpureplay.open(f"{DIGITS}\0other"),
        lambda: gpureplay.open(DIGITS, device="model\0other"),
        lambda: net.keep("input\0"),
        lambda: net.bind("input", f"{DIGITS}/inputs/3.npy\0"),
        lambda: net.bind_weights(f"{DIGITS}\0"),
    ):
        with pytest.raises(ValueError, match="holds a NUL"):
            call()


def test_numbers_that_c_has_no_room_for_are_refused(net):
    for name in ("threads", "retries"):
        for number in (-1, 1 << 32, 1 << 70):
            with pytest.raises(ValueError, match=f"{name} must be from 0 to 4294967295"):
                gpureplay.open(DIGITS, **{name: number})
    with pytest.raises(ValueError, match="minimum_counter"):
        gpureplay.open(DIGITS, key="x", minimum_counter=1 << 64)
    with pytest.raises(ValueError, match="give its key too"):
        gpureplay.open(DIGITS, minimum_counter=2)
    net.bind("input", image(3))
    for layers in ((0, 1 << 64), (-1, 0), (0, -2), (1 << 64, 1 << 64), (0, len(net.layers))):
        with pytest.raises(ValueError, match="no layer"):
            net.run(layers=layers)
    assert net.run()["probabilities"].argmax() == 3


@pytest.fixture
def package():
    try:
        return metadata.distribution("gpureplay")
    except metadata.PackageNotFoundError:
        pytest.skip("the module is not installed")


def test_the_version_is_the_package_s(package):
    assert gpureplay.version() == package.version


def test_files_are_those_of_the_package_s_record(package):
    files = {str(file): file for file in package.files}
    assert {"gpureplay/__init__.py", "gpureplay/py.typed", "gpureplay/libgpureplay.so.0"} <= set(files)
    assert Path(gpureplay.__file__) == Path(files["gpureplay/__init__.py"].locate())
    for name in files:
        if name.startswith("gpureplay/") and name.endswith((".py", ".0", ".typed")):
            data = Path(files[name].locate()).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (files[name].hash.value, files[name].size) == (digest, len(data))

"""The parts that all tests of tests/interop use."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def refused(error, call, *words):
    """`call` must raise `error`, with these words: the exception."""
    try:
        call()
    except error as raised:
        missing = [word for word in words if word not in str(raised)]
        assert not missing, f"{raised!r} lacks {missing}"
        return raised
    raise AssertionError(f"not refused: {call}")


def structure(capsule, name):
    """Where the structure is that a capsule of DLPack holds."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


#: gemm8's kernel (examples/gemm8/kernels) by its pointers, and how long those are at least.
GEMM8 = {"a": "reads", "b": "reads", "bias": "reads", "c": "writes"}
GEMM8_LENGTHS = {"a": "m*k", "b": "k*n", "bias": "4*n", "c": "m*n"}


def gemm8_job(region, m, n, k):
    """Buffers for gemm8, the first three filled, their shapes, and the sums that it must find."""
    rng = np.random.default_rng(7)
    shapes = {"a": ((m, k), "int8"), "b": ((k, n), "int8"), "bias": ((n,), "int32"), "c": ((m, n), "int32")}
    bufs = {name: region.allocate(*shape) for name, shape in shapes.items()}
    values = {name: rng.integers(-128, 128, shape).astype(dtype) for name, (shape, dtype) in shapes.items()}
    for name in ("a", "b", "bias"):
        np.asarray(bufs[name])[:] = values[name]
    return bufs, shapes, values["a"].astype("int32") @ values["b"].astype("int32") + values["bias"]


def tests_of(names):
    """The tests of a module, given its `vars`: the functions whose names begin with `test_`."""
    return [test for name, test in names.items() if name.startswith("test_")]


class Skipped(Exception):
    """A test's tools are not here; why."""


def by_own_build(program, *words):
    """The output of `program`, a file of this folder, with the build of own/, in a process of its
    own."""
    own = os.environ.get("CONTIGO_OWN")
    if not own:
        raise Skipped("CONTIGO_OWN names no build of tests/interop/own (tests/interop/run makes one)")
    env = {**os.environ, "PYTHONPATH": f"{own}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    ran = subprocess.run([sys.executable, Path(__file__).with_name(program), *words], capture_output=True, text=True, timeout=120, env=env)
    assert ran.returncode == 0, ran.stderr or ran.stdout
    return ran.stdout


def in_threads(*bodies):
    """What each of them returns, or raises, in a thread of its own. All of them end soon."""
    ends = [None] * len(bodies)

    def run(at):
        try:
            ends[at] = bodies[at]()
        except Exception as error:
            ends[at] = error

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "it waits on"
    return ends


def microseconds(call, count=20_000):
    """How long a call takes, at best."""
    best = float("inf")
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - begun) / count * 1e6)
    return best

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


class Tensor(ctypes.Structure):
    """dlpack.h: DLTensor."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    """dlpack.h: DLManagedTensorVersioned."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def inside(capsule, of=Versioned):
    """The fields that a consumer of the capsule reads; a `Tensor` before DLPack 1.0."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return of.from_address(get(capsule, b"dltensor" if of is Tensor else b"dltensor_versioned"))


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


def output(*command, timeout=120, **how):
    """What a program prints that succeeds; `how` are words of `subprocess.run`."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **how)
    assert ran.returncode == 0, f"{command}: {ran.stderr or ran.stdout}"
    return ran.stdout


def by_own_build(program, *words):
    """The output of `program`, a file of this folder, with the build of own/, in a process of its
    own."""
    own = os.environ.get("CONTIGO_OWN")
    if not own:
        raise Skipped("CONTIGO_OWN names no build of tests/interop/own (tests/interop/run makes one)")
    env = {**os.environ, "PYTHONPATH": f"{own}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return output(sys.executable, Path(__file__).with_name(program), *words, env=env)


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

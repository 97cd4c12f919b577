"""Kernels that a function of Python's computes on a simulated board."""

import asyncio
import gc
import os
import signal
import threading
import time

import contigo
import numpy as np
from common import ROOT, refused

FIR = ROOT / "docs" / "examples" / "xfir_hw.h"
DESIGN = ROOT / "tests" / "tests" / "design" / "zynq.hwh"
RULES = {"directions": {"x": "reads", "y": "writes"}, "lengths": {"x": "4*n", "y": "4*n"}}


def doubled(x, y, n):
    y[:] = 2 * x
    return n


def simulated(function, count=100, dtypes="int32", **how):
    """A kernel, and two arrays for it."""
    device = contigo.simulate(FIR, function, dtypes=dtypes, **{**RULES, **how})
    region = device.memory("sim")
    return device.kernel(), region.allocate(count, "int32"), region.allocate(count, "int32")


def test_own_function_is_a_kernel():
    kernel, x, y = simulated(doubled)
    np.asarray(x)[:] = np.arange(100)
    assert kernel(x, y, 100) == 100 and (np.asarray(y) == 2 * np.arange(100)).all()
    assert asyncio.run(kernel.call(x, y, n=7)) == 7
    job = kernel.start(x, y, 50)
    assert job.wait().words[0] == 50
    # The driver's checks are as on a board.
    refused(contigo.BufferError, lambda: kernel(x, y, 101), "404", "400")
    with kernel.engine:
        queue = contigo.Queue(kernel.engine)
        operands, words = kernel.job(x, y, 100)
        queue.push(operands, *words)
        assert [done.words[0] for done in queue] == [100]


def test_function_gets_what_the_kernel_may_access():
    seen = []

    def looks(x, y, n):
        seen.append((x.dtype.str, len(x), x.flags.writeable, y.dtype.str, len(y), y.flags.writeable, int(y[1])))
        y[0] = 1
        return 0

    kernel, x, y = simulated(looks, dtypes={"x": "float32", "y": "uint8"})
    np.asarray(y)[:] = 5
    kernel(x, y, 10)
    assert seen == [("<f4", 10, False, "|u1", 40, True, 0)] and np.asarray(y)[:2].tolist() == [1, 5]
    # Without a rule: as many bytes as the job was given, for reading and writing.
    kernel, x, y = simulated(looks, directions=None, lengths=None)
    kernel(x, y, 0)
    assert seen[1] == ("<i4", 100, True, "<i4", 100, True, 0)
    # What a function did not write stays as it was.
    np.asarray(y)[:] = 9
    kernel(x, y, 0)
    assert np.asarray(y)[:3].tolist() == [1, 9, 9]


def test_job_fails_where_its_function_does():
    def raises(x, y, n):
        raise ZeroDivisionError("its own fault")

    def leaves(x, y, n):
        y[n] = 1

    def alters(x, y, n):
        x[0] = 1

    for function, words in [
        (raises, ["FIR: its function raised ZeroDivisionError: its own fault (simulations.py, line "]),
        (leaves, ["IndexError: index 10 is out of bounds"]),
        (alters, ["ValueError: assignment destination is read-only"]),
        (lambda x, y, n: None, ["FIR: TypeError: <lambda> returned None, and the kernel returns ap_return"]),
        (lambda x, y, n: {"z": 1}, ["returned {'z': 1}, and the kernel returns ap_return"]),
        (lambda x, y, n: 1 << 32, ["returned 4294967296 as ap_return, which has 32 bits"]),
        (lambda x, y, n: 0.5, ["<lambda> returned 0.5 as ap_return, which is no integer (where C has a float: "]),
    ]:
        kernel, x, y = simulated(function)
        for _ in range(2):
            refused(contigo.DeviceError, lambda: kernel(x, y, 10), *words)
            assert (x.owner, y.owner) == ("cpu", "cpu")
    # A text that no file can have.
    kernel, x, y = simulated(lambda x, y, n: exec('raise ValueError("\\udc80")'))
    for _ in range(2):
        refused(contigo.DeviceError, lambda: kernel(x, y, 10), "ValueError: \\udc80")
    # No bytes at all, and a number with a sign.
    kernel, x, y = simulated(lambda x, y, n: len(x) if n == 0 else n, signed=["n", "ap_return"], lengths={"x": "4"})
    assert kernel(x, y, -1) == -1 and kernel(x, y, 0) == 1
    kernel, x, y = simulated(lambda x, y, n: len(x))
    assert kernel(x, y, 0) == 0
    kernel, x, y = simulated(lambda x, y, n: x.sum() / n, floats=["ap_return"], dtypes="float32")
    np.asarray(x)[:] = np.full(100, -2.5, "float32").view("int32")
    assert kernel(x, y, 4) == -2.5
    # The same kernel computes the next job.
    answers = iter([1, None, 3])
    kernel, x, y = simulated(lambda x, y, n: next(answers))
    assert kernel(x, y, 10) == 1
    refused(contigo.DeviceError, lambda: kernel(x, y, 10), "returned None")
    assert kernel(x, y, 10) == 3


def test_function_that_takes_its_time():
    begun, may_end = threading.Event(), threading.Event()

    def waits(x, y, n):
        begun.set()
        assert may_end.wait(30)
        return n

    kernel, x, y = simulated(waits)
    kernel.timeout = 0.01
    threading.Timer(0.3, may_end.set).start()
    assert kernel(x, y, 10) == 10, "its time does not count"
    # One that does not return fails its job, and the buffers are back.
    may_end.clear()
    kernel, x, y = simulated(waits, limit=0.2)
    refused(contigo.DeviceError, lambda: kernel(x, y, 10), "FIR: its function has not returned within 0.2 s")
    assert (x.owner, y.owner) == ("cpu", "cpu")
    may_end.set()
    # The answer that comes late is no other job's.
    assert kernel(x, y, 20) == 20


def test_job_is_stopped_while_its_function_computes():
    begun, may_end = threading.Event(), threading.Event()

    def waits(x, y, n):
        begun.set()
        may_end.wait(30)
        return n

    for stops in ["cancel", "stop", "close", "drop", "interrupt"]:
        begun.clear()
        may_end.clear()
        kernel, x, y = simulated(waits)
        job, engine, began = kernel.start(x, y, 10), kernel.engine, time.monotonic()
        # Its look gives the job to the function.
        while not begun.is_set():
            assert job.wait_for(0) is None
        if stops == "cancel":
            job.cancel()
            refused(contigo.ContigoError, job.wait, "cancelled")
        elif stops == "interrupt":
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            refused(KeyboardInterrupt, lambda: job.wait(10))
        elif stops == "drop":
            del job, kernel, engine
            gc.collect()
        else:
            getattr(engine, stops)()
        assert (x.owner, y.owner) == ("cpu", "cpu"), stops
        assert time.monotonic() - began < 5, stops
        # Its answer, which comes late, is no other job's.
        may_end.set()
        if stops in ("cancel", "stop", "interrupt"):
            assert kernel(x, y, 20) == 20


def test_event_loop_does_not_count_its_time():
    def slow(x, y, n):
        time.sleep(0.3)
        return n

    kernel, x, y = simulated(slow)
    kernel.timeout = 0.05
    assert asyncio.run(kernel.call(x, y, 9)) == 9
    queue = contigo.Queue(kernel.engine)
    operands, words = kernel.job(x, y, 8)
    queue.push(operands, *words)

    async def first():
        return [done.words[0] async for done in queue]

    assert asyncio.run(first()) == [8]


def test_header_and_function_that_do_not_fit():
    refused(TypeError, lambda: simulated(lambda x, y: 0), "<lambda>(x, y) does not take the kernel's arguments (x, y, n)")
    refused(TypeError, lambda: simulated(lambda y, x, n: 0), "(x, y, n): it has them in another order")
    refused(TypeError, lambda: simulated(None), "None is no function")
    refused(ValueError, lambda: simulated(doubled, dtypes={"x": "int8", "z": "int8"}), "y, z: the pointers of FIR are x, y, and each has a type")
    refused(TypeError, lambda: simulated(doubled, dtypes="int99"), "int99")
    refused(ValueError, lambda: simulated(doubled, limit=-1), "seconds, from 0 to 3600")
    refused(TypeError, lambda: contigo.simulate(contigo.KernelMap(FIR), doubled, lengths={"x": "n"}), "a KernelMap has them")
    refused(TypeError, contigo.Device("sim:zdma").kernel, 'kernel("xfir_hw.h")')
    kernel, x, y = simulated(doubled, dtypes={"x": "int32", "y": "int64"})
    refused(contigo.DeviceError, lambda: kernel(x, y, 1), "y has 4 bytes, which is no whole number of int64")


def test_core_of_an_overlay_behaves():
    with contigo.Overlay(DESIGN, simulated=7) as ol:
        scale = ol.scale_0

        def inverts(from_r, to_r, n):
            to_r[:n] = ~from_r[:n]
            return n

        a, b = scale.behaves(inverts).allocate(64, "uint8"), scale.allocate(64, "uint8")
        np.asarray(a)[:] = 0x0F
        assert scale(a, b, 64) == 64 and (np.asarray(b) == 0xF0).all()
        scale.behaves(lambda from_r, to_r, n: len(to_r)).describe(lengths={"to_r": "n"})
        a, b = scale.allocate(64, "uint8"), scale.allocate(64, "uint8")
        assert scale(a, b, 5) == 5
    refused(contigo.UnsupportedError, lambda: contigo.Overlay(DESIGN).scale_0.behaves(doubled), "simulated=True")


def test_simulations_leave_nothing():
    def files_and_threads():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    before = files_and_threads()
    for _ in range(50):
        kernel, x, y = simulated(doubled)
        assert kernel(x, y, 1) == 1
    del kernel, x, y
    # Those of tests before may end meanwhile.
    until = time.monotonic() + 5
    while max(now - then for now, then in zip(files_and_threads(), before)) > 0:
        assert time.monotonic() < until, (before, files_and_threads())
        time.sleep(0.01)

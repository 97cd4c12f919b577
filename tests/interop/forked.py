"""What a child of fork may not have: its parent's memory. It is told so, its garbage touches nothing, and the parent goes on."""

import multiprocessing
import os
import subprocess
import sys

import contigo
import numpy as np
from common import refused


def uses(heap, buf, handover, engine, imported, device):
    """Each thing that a child could do with what it finds."""
    run = dict(a=buf, b=buf, bias=buf, c=buf, m=1, n=16, k=16)
    return [
        lambda: heap.allocate(16, "float32"),
        lambda: heap.size,
        heap.stats,
        heap.gemm8,
        lambda: heap.from_dlpack(np.zeros(16, np.float32)),
        lambda: buf.owner,
        lambda: buf.device_address,
        lambda: np.asarray(buf),
        lambda: np.from_dlpack(buf),
        buf.to_device,
        buf.sync_to_device,
        buf.sync_from_device,
        buf.freebuffer,
        lambda: handover.address,
        handover.__dlpack__,
        handover.end,
        lambda: handover.__exit__(None, None, None),
        lambda: imported.device_address,
        lambda: engine.run(**run),
        lambda: contigo.open_memory("sim"),
        lambda: contigo.allocate(16),
        lambda: device.memory("sim", 1 << 16),
        lambda: device.read32(0x11C),
        lambda: device.address,
        lambda: contigo.Device("sim:zdma"),
    ]


# A child that collects all that it found, as an interpreter does at its end, while a thread of its parent is in a job.
COLLECTS = """
import os, threading, time
import contigo
heap = contigo.open_memory("sim")
bufs = [heap.allocate(1 << 14, dtype) for dtype in ("int8", "int8", "int32", "int32")]
given, engine = heap.allocate(16, "int8"), heap.gemm8()
handover = given.to_device()
done = threading.Event()

def work():
    while not done.is_set():
        engine.run(*bufs, m=128, n=128, k=128, timeout_ms=60_000)

thread = threading.Thread(target=work)
thread.start()
time.sleep(0.05)
pid = os.fork()
if pid == 0:
    raise SystemExit(7)
_, status = os.waitpid(pid, 0)
done.set()
thread.join()
handover.end()
print(os.waitstatus_to_exitcode(status), given.owner)
"""


def in_a_child(things, queue):
    """Runs in the child."""
    try:
        contigo._default = things[0]
        for number, use in enumerate(uses(*things)):
            try:
                refused(contigo.ForkedError, use, f"child of process {os.getppid()}")
            except Exception as error:
                raise AssertionError(f"use {number}: {error!r}") from error
        assert all(repr(thing) for thing in things)
        queue.put("nothing")
    except BaseException as error:
        queue.put(repr(error))


def a_child_of_fork_gets_nothing():
    assert issubclass(contigo.ForkedError, contigo.ContigoError)
    heap = contigo.open_memory("sim:5")
    bufs = [heap.allocate(size, dtype) for size, dtype in [(64, "int8"), (1024, "int8"), (16, "int32"), (16, "int32")]]
    for buf, value in zip(bufs, [1, 2, 3, 0]):
        np.asarray(buf)[:] = value
    given, view = heap.allocate(16, "float32"), np.asarray(bufs[0])
    engine, imported, handover = heap.gemm8(), heap.from_dlpack(np.from_dlpack(heap.allocate(16, "float32"))), given.to_device()
    device = contigo.Device("sim:zdma")
    device.read32(0x11C)
    before, default = heap.stats(), contigo._default
    fork = multiprocessing.get_context("fork")
    for buf in [bufs[0], heap.allocate(16, "float32")]:
        queue = fork.SimpleQueue()
        child = fork.Process(target=in_a_child, args=([heap, buf, handover, engine, imported, device], queue))
        child.start()
        said = queue.get()
        child.join(60)
        assert (said, child.exitcode) == ("nothing", 0), (said, child.exitcode)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", COLLECTS], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "7 cpu\n", (ran.stdout, ran.stderr)

    # The parent goes on.
    assert (given.owner, bufs[0].views, contigo._default) == ("device", 1, default)
    handover.end()
    del view, buf
    stats = heap.stats()
    assert stats["carves"] == before["carves"] + 1, (before, stats)
    engine.run(*bufs, m=1, n=16, k=64)
    assert (np.asarray(bufs[3]) == 64 * 2 + 3).all()
    return []

"""A child of fork may not have its parent's memory. Each use there raises ForkedError, the child's
garbage touches nothing, and the parent goes on."""

import multiprocessing
import os
import sys

import contigo
import numpy as np
from common import output, refused


def uses(region, buf, handover, engine, imported, device, job, frames):
    """Each thing that a child could do with what it finds."""
    queue = contigo.Queue(engine)
    return [
        lambda: region.allocate(16, "float32"),
        lambda: region.size,
        region.stats,
        lambda: region.from_dlpack(np.zeros(16, np.float32)),
        lambda: buf.owner,
        lambda: buf.device_address,
        lambda: np.asarray(buf),
        lambda: np.from_dlpack(buf),
        buf.give,
        buf.sync_to_device,
        buf.sync_from_device,
        buf.freebuffer,
        lambda: handover.address,
        handover.__dlpack__,
        handover.take_back,
        lambda: handover.__exit__(None, None, None),
        lambda: imported.device_address,
        lambda: engine.start([buf, buf]),
        lambda: engine.in_flight,
        lambda: engine.counts,
        lambda: engine.next(0),
        engine.arm,
        engine.stop,
        engine.close,
        engine.take_back,
        lambda: job.wait(0),
        job.wait_for,
        job.done,
        job.cancel,
        buf.reads,
        lambda: buf._first(1),
        lambda: next(iter(queue)),
        lambda: next(iter(contigo.Stream(engine, frames, operands=lambda frame: [frame]))),
        frames.take,
        lambda: contigo.open_memory("sim"),
        lambda: contigo.allocate(16),
        lambda: device.memory("sim", 1 << 16),
        lambda: device.read32(0x11C),
        lambda: device.write32(0x11C, 0),
        lambda: device.wait32(0x11C, 1, timeout=0),
        device.arm,
        device.fileno,
        lambda: device.driver("zdma"),
        lambda: device.address,
        lambda: contigo.Device("sim:zdma"),
    ]


# A child that collects all that it found, as an interpreter does at its end, while a thread of its
# parent is in a job.
COLLECTS = """
import os, threading, time
import contigo
device = contigo.Device("sim:zdma")
region = device.memory("sim")
bufs = [region.allocate(1 << 20, "int8") for _ in range(2)]
given, engine = region.allocate(16, "int8"), device.driver("zdma")
handover = given.give()
done = threading.Event()

def work():
    while not done.is_set():
        engine.start(bufs).wait(timeout=60)

thread = threading.Thread(target=work)
thread.start()
time.sleep(0.05)
pid = os.fork()
if pid == 0:
    raise SystemExit(7)
_, status = os.waitpid(pid, 0)
done.set()
thread.join()
handover.take_back()
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


def test_a_child_of_fork_gets_nothing():
    assert issubclass(contigo.ForkedError, contigo.ContigoError)
    device = contigo.Device("sim:zdma@5")
    region, other = device.memory("sim"), contigo.Device("sim:zdma")
    bufs = [region.allocate(16, "int32") for _ in range(2)]
    np.asarray(bufs[0])[:] = 2
    given, view, frames = region.allocate(16, "float32"), np.asarray(bufs[0]), region.pool(16, "int32", 2)
    engine, imported, handover = device.driver("zdma"), region.from_dlpack(np.from_dlpack(region.allocate(16, "float32"))), given.give()
    other.read32(0x11C)
    flying = [region.allocate(16, "int32") for _ in range(2)]
    job = engine.start(flying)
    before, default = region.stats(), contigo._default
    fork = multiprocessing.get_context("fork")
    for buf in [bufs[0], region.allocate(16, "float32")]:
        queue = fork.SimpleQueue()
        child = fork.Process(target=in_a_child, args=([region, buf, handover, engine, imported, other, job, frames], queue))
        child.start()
        said = queue.get()
        child.join(60)
        assert (said, child.exitcode) == ("nothing", 0), (said, child.exitcode)
    said = output(sys.executable, "-W", "ignore", "-c", COLLECTS)
    assert said == "7 cpu\n", said

    # The parent goes on.
    assert (given.owner, bufs[0].views, contigo._default) == ("device", 1, default)
    handover.take_back()
    del view, buf
    stats = region.stats()
    assert stats["carves"] == before["carves"] + 1, (before, stats)
    job.wait()
    assert [flew.owner for flew in flying] == ["cpu"] * 2
    engine.start(bufs).wait()
    assert (np.asarray(bufs[1]) == 2).all()

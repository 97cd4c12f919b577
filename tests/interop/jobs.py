"""Devices, and jobs on their drivers: nothing is lost, whatever way a program goes, and nothing
waits for ever."""

import gc
import signal
import threading
import time

import contigo
import numpy as np
from common import in_threads, refused

#: ZDMA's registers (UG1087, module ZDMA).
ZDMA = {"ISR": 0x100, "CTRL0": 0x110, "STATUS": 0x11C, "SRC": (0x128, 44), "SRC_SIZE": 0x130, "DST": (0x138, 44), "DST_SIZE": 0x140, "CTRL2": 0x200}
DMA_DONE, EN = 1 << 10, 1


def copier(bytes=1 << 20, name="sim:zdma"):
    """A copier of a board of its own, and memory of it."""
    device = contigo.Device(name)
    return device, device.memory("sim", bytes)


def filled(region, values, dtype="int32"):
    buf = region.allocate(len(values), dtype)
    np.asarray(buf)[:] = values
    return buf


def owners(*bufs):
    return [buf.owner for buf in bufs]


def test_a_job_copies_and_says_its_end():
    device, region = copier()
    source, target = filled(region, range(64)), filled(region, [0] * 64)
    with device.driver("zdma") as engine:
        assert (engine.name, engine.depth, engine.in_flight) == ("zdma", 1, 0)
        assert [operand["direction"] for operand in engine.operands] == ["reads", "writes"]
        job = engine.start([source, target])
        assert owners(source, target) == ["device"] * 2 and job.buffers[1] is target
        refused(BufferError, lambda: np.asarray(target), "in a job")
        refused(BufferError, target.freebuffer, "in a job")
        refused(BufferError, target.sync_from_device, "in a job")
        done = job.wait(timeout=1.0)
        assert job.done() and done.buffers[0] is source and len(done.words) == 4 and owners(source, target) == ["cpu"] * 2
        assert (np.asarray(target) == range(64)).all() and job.wait(0).status == done.status
        # A part of each, and no byte beside it.
        np.asarray(target)[:] = -1
        engine.start([source.reads(4 * 4, offset=4 * 8), target.writes(4 * 4, offset=4 * 16)]).wait()
        assert list(np.asarray(target)[15:21]) == [-1, 8, 9, 10, 11, -1]
        # The program kept no reference to the job: the engine has it, and the error says where.
        engine.start([source, target])
        refused(BufferError, lambda: np.asarray(target), "in its engine's `jobs`", "stop() ends it")
        engine.jobs[0].wait()
        assert engine.jobs == [] and owners(source, target) == ["cpu"] * 2
        counts = engine.counts
        assert (counts["pushed"], counts["completed"], counts["cancelled"]) == (3, 3, 0), counts
    refused(contigo.ContigoError, lambda: engine.start([source, target]), "closed")


def test_a_refused_job_leaves_its_buffers():
    device, region = copier()
    a, b, small = filled(region, range(64)), filled(region, [0] * 64), filled(region, [0])
    engine = device.driver("zdma")
    view = np.asarray(b)
    refused(BufferError, lambda: engine.start([a, b]), "1 view(s)", "race the device")
    del view
    refused(BufferError, lambda: engine.start([a, a]), "one buffer as two operands")
    refused(contigo.ContigoError, lambda: engine.start([a.writes(), b]), "operand 0")
    refused(contigo.ContigoError, lambda: engine.start([a, small]), "operand 1")
    refused(ValueError, lambda: engine.start([a]), "operands")
    refused(ValueError, lambda: engine.start([a, b, small]), "operands")
    refused(TypeError, lambda: engine.start([a, np.zeros(64, np.int32)]), "operand 1", "ndarray", "region.allocate")
    refused(ValueError, lambda: engine.start([a, b], 1 << 32), "32 bits")
    refused(ValueError, lambda: a.reads(257), "0 to 257 of a buffer of 256")
    refused(ValueError, lambda: a.reads(offset=256), "256 to 256")
    elsewhere = filled(contigo.open_memory("sim", 1 << 16), range(64))
    refused(contigo.ContigoError, lambda: engine.start([elsewhere, b]), "operand 0")
    for wrong in [-1, float("nan"), float("inf")]:
        refused(ValueError, lambda: engine.next(wrong), "seconds")
    assert owners(a, b, small, elsewhere) == ["cpu"] * 4 and engine.in_flight == 0
    job = engine.start([a, b])
    refused(contigo.ContigoError, lambda: engine.start([small, elsewhere]), "jobs in flight: 1")
    job.wait()
    assert (np.asarray(b) == range(64)).all()


def test_a_driver_has_the_device_alone():
    device, region = copier()
    refused(ValueError, lambda: device.driver("vta"), 'there is no driver "vta"', "zdma", "pl330")
    refused(contigo.ContigoError, lambda: device.driver("zdma", speed=3), "setting")
    refused((TypeError, OverflowError), lambda: device.driver("zdma", speed="fast"))
    assert device.read32(0x110) == 0x80
    engine = device.driver("zdma")
    refused(contigo.ContigoError, lambda: device.read32(0x110), "has a driver")
    refused(contigo.ContigoError, lambda: device.driver("zdma"), "has a driver")
    engine.close()
    assert device.read32(0x110) == 0x80
    # With memory of its own, which comes back with the driver: there is not enough for two.
    for _ in range(100):
        with device.driver("zdma", memory=region, memory_bytes=region.size // 2) as engine:
            a, b = filled(region, range(64)), filled(region, [0] * 64)
            engine.start([a, b]).wait()
            assert (np.asarray(b) == range(64)).all()
    # Another driver, with settings; and one that lacks its memory.
    device, region = copier(name="sim:pl330")
    refused(contigo.ContigoError, lambda: device.driver("pl330"), "pl330")
    a, b = filled(region, range(64)), filled(region, [0] * 64)
    refused(ValueError, lambda: device.driver("pl330", memory=region, channel=9), "channel")
    with device.driver("pl330", memory=region, channel=2) as engine:
        engine.start([a, b]).wait()
    assert (np.asarray(b) == range(64)).all()


def test_channels_share_a_device():
    """Two channels of one controller are in flight, and one is stopped while the other goes on."""
    device, region = copier(name="sim:pl330")
    jobs = [(filled(region, range(1000)), filled(region, [-1] * 1000)) for _ in range(2)]
    first, second = [device.driver("pl330", memory=region, channel=number) for number in range(2)]
    for taken in [{"channel": 1}, {"channel": 2, "event": 1}, {}]:
        refused(contigo.ContigoError, lambda: device.driver("pl330", memory=region, **taken), "has a driver")
    refused(contigo.ContigoError, lambda: device.read32(0), "has a driver")
    cancelled, job = first.start(jobs[0]), second.start(jobs[1])
    assert (first.in_flight, second.in_flight) == (1, 1)
    first.stop()
    refused(contigo.ContigoError, cancelled.wait, "stopped")
    job.wait()
    assert (np.asarray(jobs[1][1]) == range(1000)).all() and not (np.asarray(jobs[0][1]) == range(1000)).all()
    assert (first.counts["stopped"], second.counts["stopped"]) == (1, 0)
    # Each in a thread of its own.
    def copies(engine, buffers):
        for _ in range(50):
            np.asarray(buffers[1])[:] = -1
            engine.start(buffers).wait()
            assert (np.asarray(buffers[1]) == range(1000)).all()

    assert in_threads(*[lambda work=work: copies(*work) for work in zip([first, second], jobs)]) == [None] * 2
    # The registers come back with the last one.
    first.close()
    refused(contigo.ContigoError, lambda: device.read32(0), "has a driver")
    second.close()
    assert device.read32(0) == 0


def test_registers_have_names():
    """A driver of one's own in Python, by registers: a copy."""
    device = contigo.Device("sim:zdma", registers=ZDMA)
    region = device.memory("sim", 1 << 20)
    registers = device.registers
    assert registers["CTRL0"] == device["CTRL0"] == device[0x110] == device.read32(0x110) == 0x80
    assert list(registers) == list(ZDMA) and len(registers) == 8 and "ISR" in registers and registers.offset("ISR") == 0x100
    refused(KeyError, lambda: registers["GO"], "GO", "CTRL2")
    refused(ValueError, lambda: device.write32(0x102, 0), "multiples of 4")
    refused(ValueError, lambda: device.write32(1 << 20, 0), "multiples of 4")
    refused(ValueError, lambda: registers.__setitem__("SRC_SIZE", 1 << 32), "32 bits")
    refused((ValueError, OverflowError), lambda: device.write32(0x130, -1))
    source, target = filled(region, range(64)), filled(region, [0] * 64)
    with source.give(writes=False) as one, target.give(reads=False) as other:
        device["CTRL0"] = 0
        registers["SRC"], registers["DST"] = one.address, other.address
        assert registers["SRC"] == one.address
        device[0x130] = device["DST_SIZE"] = one.nbytes
        device["CTRL2"] = EN
        assert device.wait("ISR", DMA_DONE, DMA_DONE, timeout=1.0) & DMA_DONE
    assert (np.asarray(target) == range(64)).all()
    # A wait for a value that never comes takes no longer than its limit, in the simulated device's
    # own time.
    begun = time.monotonic()
    refused(TimeoutError, lambda: device.wait(0x11C, 0xDEAD, timeout=0.5), "0x11c", "0.5 s", "0xdead")
    assert time.monotonic() - begun < 5
    refused(contigo.ContigoError, device.fileno, "interrupt=True")
    assert device.arm() is None and device.window_bytes >= 0x204


def test_python_s_signals_end_a_wait():
    """Ctrl-C, while a register is waited for that never comes."""
    device = contigo.Device("sim:zdma")

    def interrupt(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        # Simulated time: an hour of it is soon over.
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        begun = time.monotonic()
        refused(KeyboardInterrupt, lambda: device.wait32(0x11C, 0xDEAD, timeout=3600))
        assert time.monotonic() - begun < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_a_job_lets_other_threads_go_on():
    """Python's lock is not held while a device works."""
    device, region = copier(48 << 20)
    source, target = region.allocate(20 << 20, "uint8"), region.allocate(20 << 20, "uint8")
    engine, ticks, done = device.driver("zdma"), [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    for _ in range(5):
        engine.start([source, target]).wait(timeout=60)
    ended = time.monotonic()
    done.set()
    thread.join()
    meanwhile = [tick for tick in ticks if begun < tick < ended]
    assert len(meanwhile) > (ended - begun) * 100, f"{len(meanwhile)} ticks in {ended - begun:.3f} s"


def test_a_job_that_is_late_is_stopped():
    device, region = copier(40 << 20)
    source, target = region.allocate(16 << 20, "uint8"), region.allocate(16 << 20, "uint8")
    engine = device.driver("zdma")
    # 16 MiB take the model milliseconds of its own time.
    job = engine.start([source, target])
    assert job.wait_for(1e-5) is None and not job.done() and repr(job) == "contigo.Job(in flight)"
    refused(TimeoutError, lambda: job.wait(timeout=1e-5), "the device was stopped")
    assert owners(source, target) == ["cpu"] * 2 and job.done() and "cancelled" in repr(job)
    refused(contigo.ContigoError, job.wait_for, "cancelled")
    job = engine.start([source, target])
    job.cancel()
    assert owners(source, target) == ["cpu"] * 2 and engine.counts["stopped"] == 2
    assert engine.start([source, target]).wait(timeout=60) and engine.take_back() == []
    # A job without a reference ends all the same; an engine without one is stopped.
    engine.start([source, target])
    while engine.in_flight:
        engine.next(timeout=0.1)
    assert owners(source, target) == ["cpu"] * 2
    job = engine.start([source, target])
    del engine
    gc.collect()
    assert owners(source, target) == ["device"] * 2, "a job keeps its engine"
    del job
    gc.collect()
    assert owners(source, target) == ["cpu"] * 2

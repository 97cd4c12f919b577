"""HLS kernels, called like functions, from the files that their tools write."""

import asyncio
import gc
import inspect
import json
import tempfile
from pathlib import Path

import contigo
import numpy as np
from common import ROOT, refused
from jobs import filled, owners

# The kernel `sim:ap_ctrl`: `int copy(const char *from, char *to, unsigned n)`, which returns n.
COPY = {
    "name": "copy",
    "protocol": "ap_ctrl_chain",
    "interrupt": True,
    "pointers": [
        {"name": "from", "offset": 0x18, "bits": 64, "direction": "in", "align": 1, "bytes": "n"},
        {"name": "to", "offset": 0x24, "bits": 64, "direction": "out", "bytes": "n"},
    ],
    "scalars": [{"name": "n", "offset": 0x30, "bits": 32}],
    "results": [{"name": "ap_return", "offset": 0x10, "bits": 32}],
}
SOURCE = json.dumps(COPY).encode()
FILES = ROOT / "tests" / "tests" / "drivers" / "ap_ctrl"


def kernel_of_a_board(**more):
    device = contigo.Device("sim:ap_ctrl")
    region = device.memory("sim", 1 << 20)
    return device.kernel(SOURCE, **more), region


def test_a_kernel_is_called_like_a_function():
    kernel, region = kernel_of_a_board()
    source, target = filled(region, range(64)), filled(region, [0] * 64)
    assert repr(kernel) == "contigo.Kernel(copy(from, to, n), 0 in flight)" and kernel.map.arguments == ["from", "to", "n"]
    assert kernel(source, target, 256) == 256 and (np.asarray(target) == range(64)).all()
    np.asarray(target)[:] = 0
    assert kernel(source, target, n=np.int16(16)) == 16 and list(np.asarray(target)[:6]) == [0, 1, 2, 3, 0, 0]
    assert kernel(n=8, to=target.writes(8, offset=64), **{"from": source.reads(8, offset=4)}) == 8
    assert list(np.asarray(target)[15:19]) == [0, 1, 2, 0]
    for wrong, words in [
        (lambda: kernel(source, target), "lacks n"),
        (lambda: kernel(source, target, 1, 2), "takes 3 arguments"),
        (lambda: kernel(source, target, 1, n=2), "n is given twice"),
        (lambda: kernel(source, target, size=2), "size is none of its arguments (from, to, n)"),
        (lambda: kernel(source, np.zeros(64, np.int32), 4), "operand 1: ndarray is no buffer"),
        (lambda: kernel(source, target, "4"), "is an integer"),
    ]:
        refused(Exception, wrong, words)
    refused(ValueError, lambda: kernel(source, target, 1 << 32), "32 bits")
    # The map's rule: as many bytes as n says.
    refused(contigo.ContigoError, lambda: kernel(source, target, 257), "257")
    assert owners(source, target) == ["cpu"] * 2
    kernel.close()
    refused(contigo.ContigoError, lambda: kernel(source, target, 4), "closed")


def test_a_kernel_stands_behind_a_gate():
    device = contigo.Device("sim:ap_ctrl_gated")
    region = device.memory("sim", 1 << 20)
    source, target = filled(region, range(64)), filled(region, [0] * 64)
    for wrong, words in [(0, "this is no axi_gate"), (0x11000, "axi_gate needs a register window"), (device, "close() gives it back")]:
        refused(contigo.ContigoError, lambda: device.kernel(SOURCE, gate=wrong), words)
    refused(TypeError, lambda: device.kernel(SOURCE, gate="0x10000"), "the offset of its registers in bytes")
    with device.kernel(SOURCE, gate=0x10000) as kernel:
        assert kernel(source, target, 256) == 256 and (np.asarray(target) == range(64)).all()
        kernel.engine.stop()
        assert kernel(source, target, 16) == 16
    # Bit 0 and no other: idle, open, no error.
    assert device[0x10010] == 1


def test_a_kernel_s_jobs_follow_one_another():
    """A chain takes a job while the one before it goes on."""
    kernel, region = kernel_of_a_board()
    pairs = [(filled(region, [number] * 256), filled(region, [0] * 256)) for number in range(8)]
    with kernel:
        queue, left = contigo.Queue(kernel.engine), iter(pairs)
        assert queue.depth == 2
        for pair in (next(left), next(left)):
            operands, words = kernel.job(*pair, n=1024)
            queue.push(operands, *words)
        refused(contigo.ContigoError, lambda: kernel.start(*pairs[5], n=4), "jobs in flight: 2")
        seen = []
        for done in queue:
            assert kernel.returned(done) == 1024
            seen.append(int(np.asarray(done.buffers[1])[255]))
            for pair in left:
                operands, words = kernel.job(*pair, n=1024)
                queue.push(operands, *words)
                break
        assert seen == list(range(8)), seen
        # Left in the middle, with one in flight.
        jobs = [queue.push([pair[0], pair[1]], 1024) for pair in pairs[:2]]
        try:
            for done in queue:
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert len(queue) == 0 and all(owners(*pair) == ["cpu"] * 2 for pair in pairs)
        assert jobs[0].done() and jobs[1].done() and kernel(*pairs[3], n=4) == 4


def test_maps_come_from_files():
    header = contigo.KernelMap(FILES / "xfilter_hw.h", directions={"from_r": "reads", "to_r": "writes"}, lengths={"to_r": "2*n"})
    assert header.name == "FILTER" and header.arguments == ["from_r", "to_r", "n", "mode"], header
    assert [each["name"] for each in header.results] == ["ap_return", "peak"]
    assert header.registers["to_r"] == (0x24, 64) and header.registers["CTRL"] == (0, 32) and header.registers["mode"] == (0x38, 3)
    assert [each["direction"] for each in header.pointers] == ["reads", "writes"]
    found = contigo.KernelMap((FILES / "system.hwh").read_bytes(), instance="filter_0")
    assert set(found.arguments) >= {"n"} and found.pointers, found
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_bytes(SOURCE)
        assert contigo.KernelMap(file.name).json == contigo.KernelMap(SOURCE).json
    refused(ValueError, lambda: contigo.KernelMap(b"{"), "the kernel's map")
    refused(ValueError, lambda: contigo.KernelMap(SOURCE, directions={"m": "reads"}), "has no argument 'm'; it has: from, to, n")
    refused(ValueError, lambda: contigo.KernelMap(SOURCE, directions={"to": "out"}), "writes")
    refused(ValueError, lambda: contigo.KernelMap(SOURCE, floats=["from"]), "from", "no float")
    refused(FileNotFoundError, lambda: contigo.KernelMap("no-such-kernel.json"))
    # A device takes its names.
    device = contigo.Device("sim:ap_ctrl", registers=contigo.KernelMap(SOURCE).registers)
    device["n"], device["to"] = 77, 0x1_2345_6780
    assert device[0x30] == 77 == device["n"] and device["to"] == 0x1_2345_6780 and device["CTRL"] & 4


def test_a_device_that_will_not_stop_raises():
    """A kernel cannot be aborted, and this one is given too little time to end. Its job ends
    meanwhile."""
    device = contigo.Device("sim:ap_ctrl")
    region = device.memory("sim", 1 << 20)
    pool = region.pool(1024, "uint8", 4)
    other = json.dumps({**COPY, "protocol": "ap_ctrl_hs"}).encode()
    refused(contigo.ContigoError, lambda: device.kernel(other), "protocol", "is 0, and for this simulated core it must be 1")
    assert pool.free == 4
    kernel = device.kernel(json.dumps(COPY).encode(), stop_us=1)
    assert kernel(pool.take(), pool.take(), n=1024) == 1024 and pool.free == 4
    job = kernel.start(pool.take(), pool.take(), n=1024)
    refused(contigo.ContigoError, kernel.engine.stop, "did not stop within 1 us", "reset it")
    assert kernel.returned(job.wait()) == 1024 and owners(*job.buffers) == ["cpu"] * 2
    refused(contigo.ContigoError, lambda: kernel(pool.take(), pool.take(), n=1024), "the queue was stopped")
    refused(contigo.ContigoError, lambda: device.read32(0), "has a driver")
    del job, kernel
    gc.collect()
    assert pool.free == 4


def test_a_map_that_is_not_the_kernel_s_is_an_error():
    """The map says 16 bytes, and the kernel copies as many as its argument says."""
    pointers = [{**each, "bytes": "16"} for each in COPY["pointers"]]
    for hs in (False, True):
        device = contigo.Device("sim:ap_ctrl_hs" if hs else "sim:ap_ctrl")
        region = device.memory("sim", 1 << 20)
        kernel = device.kernel(json.dumps({**COPY, "protocol": "ap_ctrl_hs" if hs else "ap_ctrl_chain", "pointers": pointers}).encode())
        source, target = filled(region, range(64)), filled(region, [0] * 64)
        short = source.reads(16), target.writes(16)
        assert kernel(*short, 16) == 16
        why = "ap_ctrl, simulated, made 2 accesses to bytes that were not handed over", "and 0 to addresses", "is the map this kernel's"
        refused(contigo.DeviceError, lambda: kernel(*short, 64), *why)
        assert owners(source, target) == ["cpu"] * 2 and device.simulated["unowned_accesses"] == 2
        job = kernel.start(*short, 64)
        refused(contigo.DeviceError, job.wait, *why)
        assert kernel(*short, 16) == 16, "the next one is right"
        queue = contigo.Queue(kernel)
        queue.push([*short], 64)
        refused(contigo.DeviceError, lambda: list(queue), *why)
        queue.push([*short], 16)
        assert len(list(queue)) == 1
        device.allow_wrong_accesses()
        assert kernel(*short, 64) == 64, "a test provokes it"
        device.allow_wrong_accesses(False)
        refused(contigo.DeviceError, lambda: kernel(*short, 64), *why)


def test_numbers_have_c_s_bits():
    from contigo.kernel import _words

    assert _words("n", -1, 32) == [0xFFFF_FFFF] and _words("n", -1, 8) == [0xFF] and _words("n", 1 << 40, 64) == [0, 256]
    assert _words("x", 1.0, 32) == [0x3F80_0000] == _words("x", np.float32(1), 32) and _words("x", 1.0, 64) == [0, 0x3FF0_0000]
    refused(ValueError, lambda: _words("n", 8, 3), "3 bits")
    refused(TypeError, lambda: _words("n", 0.5, 16), "no float")
    assert _words("x", 3, 32, True) == [0x4040_0000] and _words("n", 3, 32, False) == [3], "an integer for a float is that float"
    refused(TypeError, lambda: _words("n", 250.0, 32, False), "n=250.0", "is an integer", "floats=['n']")


def test_a_kernel_tells_its_arguments_and_keeps_signs():
    device = contigo.Device("sim:ap_ctrl")
    region = device.memory("sim", 1 << 20)
    small = {**COPY, "results": [{"name": "ap_return", "offset": 0x10, "bits": 8}]}
    source, target = filled(region, range(64)), filled(region, [0] * 64)
    for signed, expected in [((), 200), (["ap_return"], -56)]:
        with device.kernel(json.dumps(small).encode(), signed=signed) as kernel:
            assert str(inspect.signature(kernel)) == "(from_, to, n)", "`from` is a word of Python's"
            assert kernel(from_=source, to=target, n=4) == 4
            assert kernel(source, target, 200) == expected and kernel(source, target, 100) == 100
    refused(ValueError, lambda: contigo.KernelMap(SOURCE, signed=["m"]), "m is none of its results and scalars (ap_return, n)")
    refused(TypeError, lambda: contigo.KernelMap(SOURCE, signed="ap_return"), "a list of names")
    assert "args" in str(inspect.signature(contigo.Kernel.__call__)) and inspect.signature(contigo.Kernel)
    from contigo.kernel import _python_names

    names = _python_names(["from", "from_", "3x", "grid", "a[0]"], {"grid"})
    assert list(names) == ["from__", "from_", "_3x", "grid_", "a_0_"] and list(names.values())[3] == "grid"


def test_a_cell_runs_again():
    device = contigo.Device("sim:ap_ctrl")

    def cell():
        region = device.memory("sim", 1 << 20)
        return device.kernel(SOURCE), filled(region, range(64)), filled(region, [0] * 64)

    for _ in range(3):
        kernel, source, target = cell()
        assert kernel(source, target, 256) == 256
    old, old_target = kernel, target
    # One that has a job is not closed under it.
    job = old.start(source, target, 4)
    refused(contigo.BusyError, cell, "has a driver already")
    job.wait()
    kernel, source, target = cell()
    refused(contigo.ContigoError, lambda: old(source, old_target, 4), "closed")
    assert kernel(source, target, 4) == 4
    # Another board's kernel is another's, also where this board's makes room.
    other, *mine = kernel_of_a_board()
    kernel, *_ = cell()
    assert other(filled(mine[0], [1] * 64), filled(mine[0], [0] * 64), 4) == 4
    # A queue's engine, too; one with ends that were not taken is not idle.
    queue = contigo.Queue(kernel)
    del kernel, _
    queue.push([source, target], 4)
    refused(contigo.BusyError, cell, "has a driver already")
    assert queue.next().words[0] == 4
    cell()
    # A KernelMap has these already.
    refused(TypeError, lambda: device.kernel(contigo.KernelMap(SOURCE), signed=["ap_return"]), "signed: a KernelMap has them")


def test_a_buffer_is_read_and_written_in_place():
    kernel, region = kernel_of_a_board()
    source, target = (region.allocate((4, 16), "i4") for _ in range(2))
    source[...] = 7
    source[1, 2:4] = [8, 9]
    assert kernel(source, target, 256) == 256 and source.views == target.views == 0, "no view stays"
    assert target[1, 3] == 9 and list(target[1][1:4]) == [7, 8, 9] and (target[0] == 7).all() and len(list(target)) == 4
    assert 9 in target and 5 not in target and target.views == 0
    refused(TypeError, lambda: list(region.allocate((), "i4")), "0-d")
    got = target[1]
    source[...] = 1
    kernel(source, target, 256)
    assert list(got[:4]) == [7, 7, 8, 9], "a copy"
    refused(ValueError, lambda: got.__setitem__(0, 1), "read-only")
    refused(IndexError, lambda: target[4], "out of bounds")
    job = kernel.start(source, target, 256)
    for wrong in (lambda: target[0], lambda: target.__setitem__(0, 1)):
        refused(contigo.BufferError, wrong, "in a job")
    job.wait()


def test_a_job_is_awaited():
    kernel, region = kernel_of_a_board()
    source, target = filled(region, range(64)), filled(region, [0] * 64)

    async def runs():
        beside = asyncio.ensure_future(asyncio.sleep(0))
        done = await kernel.start(source, target, 256)
        assert kernel.returned(done) == 256 and beside.done(), "other tasks run"
        assert kernel.returned(await asyncio.wait_for(kernel.start(source, target, 4), 10)) == 4
        assert await kernel.call(source, target, 4) == 4
        kernel.timeout = 1e-9
        try:
            await kernel.call(source, target, 256)
        except contigo.TimeoutError as error:
            assert "within 1e-09 s" in str(error) and source.owner == "cpu", "the device was stopped"
        else:
            raise AssertionError("no time was enough")
        kernel.timeout = 1.0
        wrong = kernel.start(source, target, 4)
        assert await wrong is not None and (await wrong).words == (await wrong).words, "as often as one likes"
        kernel.close()
        assert kernel.returned(await wrong) == 4, "it ended before"

    asyncio.run(runs())
    # One that does not end: nothing sends.
    device = contigo.Device("sim:axi_dma")
    region = device.memory("sim", 1 << 20)
    with device.driver("axi_dma", memory=region, channel=1) as engine:
        frame = region.allocate(64, "u1")

        async def waits():
            job = engine.start([frame])
            try:
                await asyncio.wait_for(job, 0.05)
            except asyncio.TimeoutError:
                return job
            raise AssertionError("nothing came, and it ended")

        job = asyncio.run(waits())
        assert frame.owner == "cpu" and "cancelled" in repr(job), "the device was stopped"

"""Contigo's memory as NumPy has it: views, hand-overs, pools, and deleters that come late."""

import gc
import sys

import contigo
import numpy as np
from common import in_threads, microseconds, refused

REGION = contigo.open_memory("sim")


def array(buf):
    return np.asarray(buf)


def pointer(a):
    return np.from_dlpack(a).ctypes.data


class Copies:
    """The runtime's own count of what it copied."""

    def __enter__(self):
        self.before = REGION.stats()["bytes_copied"]
        return self

    def __exit__(self, *_):
        self.bytes = REGION.stats()["bytes_copied"] - self.before


def test_numpy_both_ways():
    rows = []
    for dtype in ["int8", "uint8", "int32", "float16", "float32", "float64", "complex64", "bool"]:
        buf = REGION.allocate((4, 16), dtype)
        with Copies() as copies:
            mine, theirs = np.asarray(buf), np.from_dlpack(buf)
            theirs[2, 3] = 1
            assert mine[2, 3] == 1 and mine.dtype == np.dtype(dtype) and mine.shape == (4, 16)
            mine[0] = 1
            assert theirs[0].all()
        same = mine.ctypes.data == theirs.ctypes.data and mine.ctypes.data % 256 == 0
        rows.append(("NumPy", f"Contigo → {dtype}", 256, same, copies.bytes))
    buf = REGION.allocate(1024, "uint8")
    base = array(buf)
    for offset in [0, 4, 16, 32, 64, 100, 256]:
        part = base[offset : offset + 256].view(np.float32)
        with Copies() as copies:
            found = REGION.from_dlpack(part, "numpy")
        same = found.device_address == buf.device_address + offset
        rows.append(("NumPy", f"→ Contigo, offset {offset}", offset & -offset or 256, same, copies.bytes))
    found = REGION.from_dlpack(base.reshape(32, 32)[::2, 1::3], "numpy")
    assert found.nbytes == 15 * 2 * 32 + 10 * 3 + 1 and found.device_address == buf.device_address + 1
    refused(BufferError, lambda: REGION.from_dlpack(base.reshape(32, 32).T, "tvm"), "stride")
    refused(contigo.ContigoError, lambda: REGION.from_dlpack(np.zeros(16, np.float32)), "not in this region", "64 bytes")
    return rows


def test_dtypes_are_numpy_s():
    """By each name that NumPy has for them, and never in another byte order than they are in."""
    short = ["u1", "i1", "u2", "i2", "<i4", "=u4", "|u1", "u8", "f2", "f4", "<f8", "c8", "?", "b1"]
    for one in [*short, "I", "double", "single", "B", int, float, np.int16, np.dtype("<u4"), np.dtype("=f4"), bool]:
        buf = REGION.allocate(4, one)
        assert np.asarray(buf).dtype == np.dtype(one) and buf.dtype == np.dtype(one).name, one
    for wrong in [">i4", "!u2", np.dtype(">i4"), np.dtype(">f8"), "S4", np.dtype([("a", "i4")]), "nothing", None, 4, object]:
        refused(TypeError, lambda: REGION.allocate(4, wrong), "none that a device takes", "byte order", "uint32")
        refused(TypeError, lambda: REGION.pool(4, wrong, 2), "none that a device takes")
    assert REGION.allocate(4).dtype == "uint32"
    for wrong in [-1, (4, -2)]:
        refused(ValueError, lambda: REGION.allocate(wrong), f"shape {wrong}", "0 or more")


def test_a_view_blocks_the_device():
    buf = REGION.allocate(64, "float32")
    one = np.asarray(buf)
    two = np.from_dlpack(buf)
    refused(BufferError, buf.sync_to_device, "2 view(s)", "race the device")
    part = one[3:5]
    del one, two
    refused(BufferError, lambda: buf.give(), "1 view(s)")
    del part
    with buf.give(reads=False) as handover:
        assert handover.address == buf.device_address and buf.owner == "device"
        refused(BufferError, lambda: np.from_dlpack(buf), "a device has this buffer")
        refused(BufferError, lambda: np.asarray(buf), "a device has this buffer")
    refused(BufferError, buf.sync_from_device, "no device has this buffer")
    refused(BufferError, lambda: buf.__dlpack__(copy=True))
    refused(BufferError, lambda: buf.__dlpack__(stream=1))
    refused(BufferError, lambda: buf.__dlpack__(dl_device=(2, 0)))
    buf.freebuffer()
    refused(BufferError, lambda: np.asarray(buf), "freed")
    refused(BufferError, buf.freebuffer, "freed")
    refused(MemoryError, lambda: REGION.allocate(1 << 40, "uint8"), str(1 << 40))
    refused(BufferError, lambda: REGION.allocate((1 << 40, 1 << 40), "uint8"), "size")


def test_a_handover_is_the_device_s_until_its_own_end():
    """An old hand-over ends no other, and a block that an exception ends says nothing of the
    device."""
    buf = REGION.allocate(64, "uint8")
    old = buf.give()
    old.take_back()
    with buf.give() as current:
        refused(BufferError, old.take_back, "this hand-over has ended")
        refused(BufferError, old.__dlpack__, "this hand-over has ended")
        with old:
            pass
        assert buf.owner == "device"
        current.take_back()
    assert buf.owner == "cpu"
    try:
        with buf.give() as current:
            raise TimeoutError("the device does not answer")
    except TimeoutError:
        pass
    assert buf.owner == "device"
    refused(BufferError, lambda: array(buf), "take_back")
    buf.sync_from_device()
    refused(BufferError, current.take_back, "no device has this buffer")
    assert buf.owner == "cpu"


def test_memory_comes_back():
    """Freed memory is used again: a loop of frames has one place, and pieces become one again."""
    addresses = set()
    for _ in range(1000):
        buf = REGION.allocate((3, 32, 32), "float32")
        kept = np.asarray(buf)
        addresses.add(buf.device_address)
        del buf
        kept[0, 0, 0] = 1
        del kept
    assert len(addresses) == 1, addresses
    region = contigo.open_memory("sim", 1 << 20)
    pieces, pool = [region.allocate(1024, "uint8") for _ in range(1000)], region.pool(1024, "uint8", 24)
    refused(MemoryError, lambda: region.allocate(1024, "uint8"))
    frames = [pool.take() for _ in range(24)]
    del pool, pieces[::2], pieces, frames
    assert region.allocate(1 << 20, "uint8").nbytes == region.size


def test_a_pool_s_arrays_come_and_go():
    """Equal arrays of the runtime's own pool: as many as there are, and each comes back with its
    last reference."""
    pool = REGION.pool((3, 5), "float32", 3)
    assert (len(pool), pool.free, pool.shape, pool.dtype) == (3, 3, (3, 5), "float32")
    frames = [pool.take() for _ in range(3)]
    addresses = [frame.device_address for frame in frames]
    assert addresses == [addresses[0] + 256 * slot for slot in range(3)] and addresses[0] % 256 == 0
    refused(MemoryError, pool.take, "all 3 slots")
    seen = array(frames[1])
    seen[:] = 2.5
    del frames[1]
    refused(MemoryError, pool.take, "all 3 slots")
    del seen
    again = pool.take()
    assert again.device_address == addresses[1] and array(again)[2, 4] == 2.5 and pool.free == 0
    with again.give(reads=False) as handover:
        assert (handover.address, handover.nbytes) == (addresses[1], 60)
        refused(BufferError, again.freebuffer, "a device has this buffer")
    again.freebuffer()
    assert pool.free == 1
    refused(ValueError, lambda: REGION.pool(16, "uint8", 0), "1")
    refused(ValueError, lambda: REGION.pool(16, "uint8", 1025), "1024")
    refused(MemoryError, lambda: REGION.pool(1 << 30, "uint8", 1024))


def test_deleters_on_other_threads():
    """Exports and releases from four threads, capsules that no consumer takes among them. Nothing
    is lost and nothing is freed twice."""
    buf = REGION.allocate((4, 16), "float32")
    rounds = 25_000

    def work(seed):
        for turn in range(rounds):
            if (turn + seed) % 3:
                np.from_dlpack(buf)
            else:
                buf.__dlpack__(max_version=(1, 0) if turn % 2 else None)

    assert in_threads(*[lambda seed=seed: work(seed) for seed in range(4)]) == [None] * 4
    gc.collect()
    assert buf.views == 0, buf.views
    kept = [np.from_dlpack(buf)]
    in_threads(kept.clear)
    assert buf.views == 0


def test_cost_of_an_export():
    buf = REGION.allocate((1, 3, 224, 224), "float32")

    export = microseconds(lambda: buf.__dlpack__(max_version=(1, 0)))
    whole = microseconds(lambda: np.from_dlpack(buf))
    print(f"export and release: {export:.2f} us; np.from_dlpack and release: {whole:.2f} us", file=sys.stderr)
    assert export < 50, export

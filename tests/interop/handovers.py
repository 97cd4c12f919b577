"""A buffer while a device owns it: one address with its length, the rights of a framework, and the
cache maintenance."""

import contigo
import numpy as np
from common import inside, refused

READ_ONLY = 1


def test_a_device_s_view_is_what_was_handed_over():
    region = contigo.open_memory("sim")
    buf, other = region.allocate(25, "uint8"), region.allocate(1, "uint8")
    # Neither has a part of the other's line: one is a device's while the CPU writes the other.
    assert abs(buf.device_address - other.device_address) >= 64
    for uses, written in (({"writes": False}, 0), ({"reads": False}, 64), ({}, 64)):
        before = region.stats()["bytes_synced_for_cpu"]
        with buf.give(**uses) as handover:
            assert (handover.address, handover.nbytes) == (buf.device_address, 25)
            np.asarray(other)[:] = 7
            capsule = handover.__dlpack__(max_version=(1, 0))
            seen = inside(capsule)
            assert (seen.tensor.data + seen.tensor.byte_offset, seen.tensor.shape[0]) == (handover.address, handover.nbytes)
            assert bool(seen.flags & READ_ONLY) == (written == 0)
            refused(BufferError, handover.take_back, "1 view(s)")
            del seen, capsule
            if written == 0:
                # The form before DLPack 1.0 cannot say that nothing may be written.
                refused(BufferError, handover.__dlpack__)
        assert region.stats()["bytes_synced_for_cpu"] - before == written, "whole lines, of what may have been written"
        assert np.asarray(other)[0] == 7


def test_a_device_reads_or_writes():
    """`give` says it from the device's side, and both is what is not said."""
    buf = contigo.open_memory("sim", 1 << 16).allocate(64, "uint8")
    refused(ValueError, lambda: buf.give(reads=False, writes=False), "reads, or writes, or both")
    refused(TypeError, lambda: buf.give("both"))
    refused(BufferError, buf.take_back, "no device has this buffer", "give(reads=False)")
    assert buf.owner == "cpu"
    for keywords in ({}, {"reads": True}, {"reads": True, "writes": False}, {"reads": False, "writes": True}):
        buf.give(**keywords)
        assert buf.owner == "device"
        buf.take_back()
    assert [buf.reads().direction, buf.writes().direction, buf.updates().direction] == ["reads", "writes", "both"]

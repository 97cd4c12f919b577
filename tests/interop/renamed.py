"""The names of 0.1: they work for this release, and each warns the line that uses it."""

import warnings
from pathlib import Path

import contigo
from common import refused

MAP = Path(__file__).parents[1] / "tests" / "ap_ctrl" / "xfilter_hw.h"


def warned(call, *words):
    """The answer of `call`, which warns once, for this file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        answer = call()
    assert [(one.category, one.filename) for one in said] == [(DeprecationWarning, __file__)], [str(one.message) for one in said]
    text = str(said[0].message)
    assert "is an old name, for this release: write " in text and all(word in text for word in words), text
    return answer


def an_old_name_works_and_warns():
    region = contigo.open_memory("sim", 1 << 16)
    buf = region.allocate(64, "uint8")
    for word, keywords in (("to_device", {"writes": False}), ("from_device", {"reads": False}), ("both", {})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old = buf.to_device(word)
        assert (old.nbytes, buf.owner) == (64, "device")
        warned(old.end, "take_back()")
        new = buf.give(**keywords)
        assert (old.address, old.nbytes) == (new.address, new.nbytes)
        new.take_back()
    warned(buf.to_device, "give(reads=…, writes=…)").take_back()

    assert warned(lambda: contigo.Heap, "contigo.Region") is contigo.Region
    assert warned(lambda: contigo.Region("sim", 1 << 16), 'open_memory("sim")').size == 1 << 16
    guarded = lambda: contigo.Region("dma-heap:linux,cma", kernel_port="no-such-device")
    refused(FileNotFoundError, lambda: warned(guarded, 'open_memory("dma-heap:linux,cma@guard:no-such-device")'), "kernel module contigo")
    assert warned(lambda: contigo.allocate(16, heap="sim:9"), "allocate(memory=…)").nbytes == 64
    assert list(warned(contigo.info, "inventory()")) == ["version", "u-dma-buf", "dma-heap", "kernel ports", "free huge pages"]
    refused(AttributeError, lambda: contigo.Tape, "Tape")
    return []


def an_old_direction_works_and_warns():
    old = warned(lambda: contigo.KernelMap(MAP, directions={"from_r": "to_device"}), '"to_device"', '"reads"')
    new = contigo.KernelMap(MAP, directions={"from_r": "reads"})
    assert old.json == new.json
    assert [each["direction"] for each in new.pointers if each["name"] == "from_r"] == ["reads"]
    return []


def a_device_reads_or_writes():
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
    return []


RENAMED = [an_old_name_works_and_warns, an_old_direction_works_and_warns, a_device_reads_or_writes]

"""Memory and devices by their names, which are the tool's and C's."""

import builtins
import errno
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import contigo
import numpy as np
from common import ROOT, Skipped, refused

def test_every_kind_is_listed_or_missed():
    found = contigo.inventory()
    for entry in found:
        assert list(entry) == ["what", "kind", "name", "state", "size", "address", "coherent", "note"]
        assert (entry["name"] is None) == (entry["state"] == "absent") and entry["note"], entry
    kinds = {(entry["what"], entry["kind"]) for entry in found}
    assert {("memory", "u-dma-buf"), ("memory", "dma-heap"), ("memory", "vfio"), ("device", "vfio"), ("device", "contigo")} <= kinds, kinds
    names = [(entry["what"], entry["name"]) for entry in found if entry["state"] == "ready"]
    assert {("memory", "sim"), ("device", "sim:zdma"), ("device", "sim:board")} <= set(names), names


def test_the_doctor_finds_a_planted_fault():
    with tempfile.TemporaryDirectory() as folder:
        refused(FileNotFoundError, lambda: contigo.doctor(machine=folder), "mount /proc")
        (Path(folder) / "proc").mkdir()
        (Path(folder) / "proc/meminfo").write_text("MemTotal: 500000 kB\n")
        found = contigo.doctor(machine=folder)
        assert len(found) >= 40 and all(check["verdict"] in ("fine", "skipped") for check in found), found
        (Path(folder) / "proc/cmdline").write_text("swiotlb=force\n")
        (bad,) = [check for check in contigo.doctor(machine=folder) if check["verdict"] == "fault"]
        assert (bad["id"], bad["found"]) == ("swiotlb-forced", "swiotlb=force") and bad["cause"] and bad["cure"], bad
    assert [check["id"] for check in contigo.doctor()] == [check["id"] for check in found]


def test_an_unknown_name_lists_what_there_is():
    has = "this machine has "
    for name in ["tape", "udmabuf0", "/dev/udmabuf0"]:
        refused(ValueError, lambda: contigo.open_memory(name), f"{name}: at byte 0: there is no such kind", "u-dma-buf:NAME", has, "sim")
        refused(ValueError, lambda: contigo.Device(name), f"{name}: at byte 0: there is no such kind", "uio:NODE", has, "sim:zdma")
    refused(ValueError, lambda: contigo.open_memory("vfio:01:00"), "at byte 5: a PCI function is written as 0000:01:00.0")
    refused(FileNotFoundError, lambda: contigo.open_memory("u-dma-buf:no-such-block"), has)
    refused(FileNotFoundError, lambda: contigo.open_memory("dma-heap:no-such-heap"), has)
    refused(FileNotFoundError, lambda: contigo.Device("sim:vta"), "simulated device; others that are here: zdma, ", "and")
    refused(FileNotFoundError, lambda: contigo.open_device("uio:no-such-node"), has)
    # A contigo device is looked for before its memory, and VFIO's function before its own.
    for dev_node in [
        lambda: contigo.Device("contigo:no-such-device"),
        lambda: contigo.open_memory("contigo:no-such-device"),
        lambda: contigo.open_memory("dma-heap:linux,cma@contigo:no-such-device"),
    ]:
        refused(FileNotFoundError, dev_node, "kernel module contigo", has)
    for vfio in [contigo.Device, contigo.open_memory]:
        refused((OSError, contigo.ContigoError), lambda: vfio("vfio:ffff:1f:1f.7"), "ffff:1f:1f.7")


def test_one_opening_serves_registers_and_memory():
    device = contigo.Device("sim:zdma@7")
    assert (device.name, device.address, repr(device)) == ("sim:zdma@7", None, "contigo.Device('sim:zdma@7')")
    one, two = device.memory("sim", 1 << 20), device.memory("sim:7", 1 << 16)
    assert (one.size, two.size, one.name, repr(two)) == (1 << 20, 1 << 16, "sim", "contigo.Region('sim:7', 65536)")
    # Both belong to one board: neither has the other's addresses.
    spans = sorted((region.allocate(64, "uint8").device_address, region.size) for region in (one, two))
    assert spans[0][0] + spans[0][1] <= spans[1][0], spans
    refused(contigo.ContigoError, lambda: device.memory("sim:8"), "device")
    for contigo_device in ["contigo", "contigo:f8003000", "dma-heap:linux,cma@contigo:f8003000"]:
        refused(contigo.ContigoError, lambda: device.memory(contigo_device), "device")
    refused(contigo.ContigoError, lambda: contigo.open_memory("contigo"), "device")
    # ZDMA_CH_CTRL0 after power-on (UG1087, zdma: 0x80), and what is no register.
    assert device.read32(0x110) == 0x80 == device.read32(0x110)
    for offset in [2, 1 << 20]:
        refused(ValueError, lambda: device.read32(offset), "multiples of 4")
    refused((ValueError, OverflowError), lambda: device.read32(-4))
    refused(contigo.UnsupportedError, lambda: contigo.Device("sim:board").read32(0), "memory alone")
    # Memory keeps its device.
    del device
    gc.collect()
    buf = one.allocate(16, "float32")
    np.asarray(buf)[:] = 1
    with buf.give() as handover:
        assert handover.address == buf.device_address


def test_device_without_module_leaves_no_stop():
    device = contigo.Device("sim:zdma@9")
    assert device.dev_node is None
    right = [("write", 0x10, 1), ("write", 0x10, 1, 3), ("until", 4, 1, 1, 0.5), ("else",), ("while", 4, 1, 1, 0.25)]
    refused(contigo.UnsupportedError, lambda: device.leave_stop(right), "contigo:NAME")
    for step in [(), ("writ", 0, 1), ("write", 0), ("until", 4, 1), ("else", 1), ("write", -1, 1), ("write", 0, 1 << 32), (1, 2, 3), ("until", 0, 1, 1, "x")]:
        refused(ValueError, lambda: device.leave_stop([step]), "a step is")
    refused(contigo.ArgumentError, lambda: device.leave_stop([("else",)]), "Else")
    refused(contigo.ArgumentError, lambda: device.leave_stop([("write", 0, 2, 1)]), "mask")
    refused(contigo.ContigoError, lambda: device.leave_stop(right * 7), "32")
    refused(contigo.ArgumentError, lambda: device.leave_stop([("until", 4, 1, 1, 3601)]), "3600000000")
    device.reset()


def test_memory_has_a_size_and_a_way_to_its_device():
    assert contigo.open_memory("sim").size == 16 << 20
    # A simulated board puts a port that is given on its own bus.
    wired = contigo.open_memory("sim:3", 1 << 16, port=("narrow", 0, 64, True)).allocate(64, "uint8")
    own = contigo.open_memory("sim:3", 1 << 16).allocate(64, "uint8")
    assert wired.device_address == own.device_address
    assert contigo.allocate(16, memory="sim:9").nbytes == 64


def test_a_port_has_a_name():
    """Wherever a port is taken it is a board's, by its name, or four values."""
    name, four = "zynq-hp0", ("mine", 0, 32, False)
    for port in (name, four):
        regions = [contigo.open_memory("sim", 1 << 16, port=port), contigo.Device("sim:zdma").memory("sim", 1 << 16, port=port)]
        regions.append(contigo.Device("sim:zdma", port=port).memory("sim", 1 << 16))
        for region in regions:
            assert region.allocate(64, "uint8").device_address % 256 == 0
    for open in (lambda port: contigo.open_memory("sim", port=port), lambda port: contigo.Device("sim:zdma", port=port)):
        refused(ValueError, lambda: open("zynq-hp9"), "no board has a port \"zynq-hp9\"", "cyclone-v-acp", "zynqmp-hpc0")
        for wrong in (7, ("hp0", 0, 32), ("hp0", "0", 32, False)):
            refused(TypeError, lambda: open(wrong), 'port="zynq-hp0"', "(name, offset, address bits, coherent)")


#: Made-up names of ports are kept, so there is an end to them.
NAMES = """
import contigo
for number in range(1025):
    for _ in range(2):
        contigo.open_memory("sim", 4096, port=(f"port-{number}", 0, 32, False))
"""


def test_what_is_imported_is_what_was_installed():
    """Also in the package's own folder; and a Python that cannot load it says why."""

    def ran(code):
        return subprocess.run([sys.executable, "-c", code], cwd=ROOT / "bindings" / "python", capture_output=True, text=True, timeout=60)

    assert ran("import contigo; print(contigo.__file__)").stdout.strip() == contigo.__file__
    error = ran("import sys; sys.abiflags = 't'; import contigo").stderr
    assert "ImportError: contigo: this is a free-threaded Python" in error and "python3.13, not" in error, error


def test_what_is_closed_is_refused():
    """By `with`, `close`, or both; a second time nothing happens. And each says its state."""
    with contigo.Device("sim:zdma") as device, device.memory("sim", 1 << 20) as region, device.driver("zdma") as engine:
        a, b = region.allocate(16), region.allocate(16)
        pool = region.pool(16, "u1", 4)
        one, queue = pool.take(), contigo.Queue(engine)
        job = queue.push([a, b])
        assert repr(queue) == "contigo.Queue(zdma, 1 in flight)" and "1 of 1 jobs in flight" in repr(engine), engine
        queue.close()
        assert repr(job) in ("contigo.Job(cancelled)", "contigo.Job(done)") and (a.owner, len(queue)) == ("cpu", 0), job
        queue.push([a, b])
        assert queue.next() is not None, "the engine goes on, and the queue with it"
        with a.give() as handover:
            assert repr(handover).endswith("nbytes=64, the device's)"), handover
        assert repr(handover).endswith("nbytes=64, ended)") and "3 of 4 free" in repr(pool), (handover, pool)
    assert repr(engine) == "contigo.Engine('zdma', operands=2, closed)"
    assert repr(device) == "contigo.Device('sim:zdma', closed)" and repr(region) == "contigo.Region('sim', closed)", (device, region)
    for closed, what in [(lambda: region.allocate(4), "region"), (lambda: device.read32(0), "device"), (lambda: device.memory("sim"), "device")]:
        refused(contigo.ContigoError, closed, f"this {what} was closed")
    device.close(), region.close()
    # The arrays and the pool keep their memory.
    np.asarray(a)[:] = 7
    assert (np.asarray(a) == 7).all() and pool.take().nbytes == one.nbytes == 16
    kernel = contigo.Device("sim:ap_ctrl").kernel(str(ROOT / "docs/examples/copy.json"))
    assert repr(kernel) == "contigo.Kernel(copy(from, to, n), 0 in flight)", kernel
    with kernel:
        pass
    assert repr(kernel) == "contigo.Kernel(copy(from, to, n), closed)", kernel


def test_names_that_a_program_makes_up_are_bounded():
    ran = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, timeout=120)
    assert "ValueError: port-1024: a program has 1024 different names of ports and kernels at most" in ran.stderr, ran.stderr


def test_huge_pages_open():
    free = int(Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").read_text())
    if not free or os.geteuid() != 0:
        refused((OSError, MemoryError, contigo.ContigoError), lambda: contigo.open_memory("hugetlb", 2 << 20), "huge")
        raise Skipped("no huge page is free, or this user may not look up addresses")
    region = contigo.open_memory("hugetlb", 2 << 20, port=("here", 0, 64, True))
    assert region.allocate(4096, "uint8").device_address % 256 == 0 and region.name == "hugetlb"


def test_each_error_has_its_class():
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    classes = {name for name in re.findall(r"^\| `\w+` \| `CONTIGO_E_\w+` \(-\d+\) \| `(\w+Error)` ", page, re.M)}
    assert len(classes) > 10, classes
    for name in classes:
        one = getattr(contigo, name)
        assert issubclass(one, contigo.ContigoError) and issubclass(one, getattr(builtins, name, RuntimeError)), name
    region = contigo.open_memory("sim", 4096)
    error = refused(ValueError, lambda: region.pool(64, "uint8", 1025))
    said = type(error), error.code, error.kind, error.errno
    assert said == (contigo.ArgumentError, "ARGUMENT", "request", errno.EINVAL), said
    error = refused(MemoryError, lambda: region.allocate(1 << 20, "uint8"))
    said = type(error), error.code, error.kind, error.errno
    assert said == (contigo.MemoryError, "EXHAUSTED", "memory", errno.ENOMEM), said
    assert str(error).startswith("no 1048576 contiguous bytes"), error
    # Python's own side answers in the same classes, and leaves the built-in ones alone.
    refused(contigo.ArgumentError, lambda: contigo.open_memory("zz:"), "at byte 0")
    a = region.allocate(64, "uint8")
    with a.give():
        refused(contigo.BufferError, lambda: a.give().__enter__(), "already")
    engine = contigo.Device("sim:zdma@41").driver("zdma")
    refused(contigo.ArgumentError, lambda: engine.next(3601), "3600000000")
    assert contigo.OSError(5, "x").errno == 5 and contigo.BufferError("x").errno == 0
    everything = {}
    exec("from contigo import *", everything)
    assert not {"OSError", "TimeoutError", "MemoryError", "PermissionError", "BufferError"} & set(everything)

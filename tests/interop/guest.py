#!/usr/bin/python3 -B
"""The checks that root runs in the guest of a board of the lab, in a Debian with Python and the
wheel alone.

VFIO and the kernel module contigo are there: their devices and their memory, in Python, by the
names that the tool and C take. Each check is a line `@row`.
"""

import asyncio
import ctypes
import glob
import os
import select
import sys
import time
import traceback

import contigo

# A device of each board, memory of it, its port where the program says it, a register, the
# register's value, and its driver. The values: EDU's identification (QEMU, docs/specs/edu.rst:
# 0x00), and the PL330's periph_id_0 (Arm DDI 0424C, chapter 3: 0xFE0).
DEVICES = {
    "virt-smmu": ("vfio:0000:00:01.0", "vfio:0000:00:01.0", None, 0x0, 0x010000ED, None),
    "zynq-6.1": ("contigo:f8003000", "contigo:f8003000", ("dmac", 0, 32, False), 0xFE0, 0x30, "pl330"),
    "zynq-6.12": ("contigo:f8003000", "contigo:f8003000", ("dmac", 0, 32, False), 0xFE0, 0x30, "pl330"),
}
BYTES = 1 << 20
# The board whose kernel has UIO, too, and a node that dmac.hwh names.
DESIGNED = "zynq-6.1"
PL330 = "/sys/bus/platform/devices/f8003000.dmac"


def inventory_lists_the_device_and_its_memory(name, memory, *_rest):
    listed = []
    for what, wanted in [("device", name), ("memory", memory)]:
        ready = [entry["name"] for entry in contigo.inventory() if (entry["what"], entry["state"]) == (what, "ready")]
        # A contigo device's whole name has its node's too: contigo:f8003000.dma-controller.
        found = [one for one in ready if one == wanted or one.startswith(f"{wanted}.")]
        assert len(found) == 1, f"{wanted} is not among {ready}"
        listed.append(f"{what} {found[0]}")
    return ", ".join(listed)


def one_opening_serves_registers_and_memory(name, memory, port, register, value, _driver):
    device = contigo.Device(name)
    region = device.memory(memory, BYTES, port=port)
    address = handed_over(region)
    assert (region.name, region.size) == (memory, BYTES), region
    seen = device.read32(register)
    assert seen == value, f"{register:#x} reads {seen:#x}, not {value:#x}"
    return f"{region!r} at {address:#x}, {device!r}.read32({register:#x}) is {seen:#x}"


def memory_alone_opens_its_device(_name, memory, port, *_rest):
    region = contigo.open_memory(memory, BYTES, port=port)
    return f"{region!r} at {handed_over(region):#x}"


def a_driver_copies_by_its_name(name, memory, port, _register, _value, driver):
    """Its registers and its interrupt, by a wait and by an event loop's file. Nothing here can look
    at the bytes: the board's own tests do."""
    said, device = [], contigo.Device(name, port=port)
    region = device.memory(memory, BYTES)
    source, target = (region.allocate(4096, "uint8") for _ in range(2))
    for interrupt in (True, False):
        with device.driver(driver, memory=region, interrupt=interrupt) as engine:
            fd = engine.arm()
            assert (fd is not None) == interrupt, fd
            if device.dev_node:
                assert device.dev_node["armed"] and device.dev_node["buffers"] == 1 and not device.dev_node["quarantined"], device.dev_node
            queue = contigo.Queue(engine)
            queue.push([source, target])
            if interrupt:
                assert select.select([fd], [], [], 5.0)[0] == [fd], "no interrupt came"
            done = list(queue)
            assert len(done) == 1 and done[0].buffers[1] is target
            for _ in range(100):
                engine.start([target, source]).wait(timeout=1.0)
            said.append(f"{engine!r} with interrupt={interrupt}: {engine.counts}")
    if device.dev_node:
        # An empty program disarms; the driver's is left again by the next one.
        device.leave_stop([])
        assert not device.dev_node["armed"], device.dev_node
        device.leave_stop([("until", 0xFE0, 0x30, 0xFF, 0.0)])
        assert device.dev_node["armed"], device.dev_node
        said.append(f"{device.dev_node}")
    return ", ".join(said)


def handed_over(region):
    """The address of a buffer of it that was the device's in between."""
    buffer = region.allocate(4096, "uint8")
    with buffer.give(writes=False) as handover:
        assert (handover.nbytes, buffer.owner) == (4096, "device"), (handover.nbytes, buffer.owner)
        address = handover.address
    assert buffer.owner == "cpu", buffer.owner
    return address


def an_unknown_name_is_told_what_there_is(name, *_rest):
    kind = name.partition(":")[0]
    said = []
    for wrong in ["tape:0", f"{kind}:ffff:1f:1f.7"]:
        try:
            contigo.Device(wrong)
        except (ValueError, OSError, contigo.ContigoError) as refused:
            assert wrong in str(refused) and f" {name}" in str(refused), refused
            said.append(f"{type(refused).__name__}: {refused}")
        else:
            raise AssertionError(f"{wrong} was opened")
    return "; ".join(said)


class Tensor(ctypes.Structure):
    """DLPack's: as much of it as says where its bytes are."""
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("ndim", ctypes.c_int), ("dtype", ctypes.c_int32)]
    _fields_ += [("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


def copied(buffer, new=None):
    """The bytes of a buffer, by what NumPy would do; `new` are written first."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = buffer.__dlpack__()
    tensor = Tensor.from_address(pointer(capsule, b"dltensor"))
    at = tensor.data + tensor.byte_offset
    if new is not None:
        ctypes.memmove(at, new, len(new))
    return ctypes.string_at(at, buffer.nbytes)


async def an_interrupt_is_awaited(core):
    """A real one: the PL330's manager executes DMASEV of event 0 (DDI 0424C, 3.3.20 and 4.3)."""
    def fires():
        core["DBGINST0"], core["DBGINST1"] = 0x34 << 16, 0
        core["DBGCMD"] = 0

    core["INTCLR"], core["INTEN"] = 1, 1
    began = time.monotonic()
    asyncio.get_running_loop().call_later(0.2, fires)
    await core.interrupt(timeout=5.0)
    waited = time.monotonic() - began
    assert core["INTMIS"] == 1 and 0.2 <= waited < 5.0, (core["INTMIS"], waited)
    # The core still asks for it.
    await core.interrupt(timeout=5.0)
    core["INTCLR"] = 1
    try:
        await core.interrupt(timeout=0.2)
        raise AssertionError("an interrupt came after INTCLR")
    except contigo.TimeoutError as error:
        assert "dmac: no interrupt came within 0.2 s" in str(error), error
    core["INTEN"] = 0
    return f"after {waited:.3f} s"


async def jobs_are_awaited(engine, source, target):
    """Each with its bytes."""
    queue, wrong = contigo.Queue(engine, timeout=5.0), 0
    for number in range(20):
        copied(source, bytes((number + at) % 256 for at in range(source.nbytes)))
        copied(target, bytes(target.nbytes))
        queue.push([source, target])
        async for done in queue:
            wrong += copied(done.buffers[1]) != copied(source)
    assert not wrong, f"{wrong} of 20 jobs"
    return f"{engine.counts}"


def of_the_design(kind, port):
    """The PL330 as a core of a design: registers by their names, its interrupt, and its jobs."""
    unloaded = contigo.Overlay("/dmac.hwh")
    try:
        unloaded.dmac["PERIPH_ID_0"]
        raise AssertionError("the fabric's manager says that there is no bitstream")
    except contigo.DeviceError as error:
        assert "nothing was touched" in str(error), error
    # This core is not of the fabric.
    core = contigo.Overlay("/dmac.hwh", loaded=True).dmac
    core.port = port
    seen = core["PERIPH_ID_0"]
    assert seen == 0x30 and core.device.name.startswith(f"{kind}:dmac@f8003000"), (seen, core.device)
    irq = asyncio.run(an_interrupt_is_awaited(core))
    source, target = (core.allocate(4096, "uint8") for _ in range(2))
    with core.device.driver("pl330", memory=core.memory()) as engine:
        counts = asyncio.run(jobs_are_awaited(engine, source, target))
    return f"{core.device!r}, an interrupt {irq}, {counts}; {unloaded.fabric}"


def an_overlay_s_core_over_its_contigo_device(_name, _memory, port, *_rest):
    return of_the_design("contigo", port)


def an_overlay_s_core_over_uio(*_device):
    """UIO maintains no caches, and QEMU has none: the lab's port snoops."""
    return of_the_design("uio", ("lab", 0, 32, True))


CHECKS = [
    inventory_lists_the_device_and_its_memory,
    an_unknown_name_is_told_what_there_is,
    memory_alone_opens_its_device,
    one_opening_serves_registers_and_memory,
    a_driver_copies_by_its_name,
    an_overlay_s_core_over_its_contigo_device,
    an_overlay_s_core_over_uio,
]


def row(name, status, reason):
    """The guest's Python has no module json. A letter that JSON would escape becomes a space."""
    plain = "".join(letter if letter.isprintable() and letter not in '"\\' else " " for letter in reason)
    print(f'@row {{"kind":"check","name":"{name}","user":"{os.getuid()}","status":"{status}","reason":"{plain}"}}', flush=True)


def bind(driver):
    """Binds the PL330 to `driver`, and shares its file as the board's setup does."""
    for file, text in [("driver/unbind", "f8003000.dmac"), ("driver_override", driver)]:
        with open(f"{PL330}/{file}", "w") as to:
            to.write(text)
    with open("/sys/bus/platform/drivers_probe", "w") as to:
        to.write("f8003000.dmac")
    for file in glob.glob("/dev/uio*") + glob.glob("/dev/contigo/*"):
        os.chown(file, 0, 1000)
        os.chmod(file, 0o660)


def run(check, name, device):
    """Its row, and its end."""
    try:
        row(name, "passed", check(*device))
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        row(name, "failed", repr(error))
        return 1
    return 0


def main():
    board = os.environ["CONTIGO_BOARD"]
    device, failed = DEVICES[board], 0
    for check in CHECKS:
        if check is a_driver_copies_by_its_name and device[-1] is None:
            continue
        if "an_overlay" in check.__name__ and board != DESIGNED:
            continue
        if check is an_overlay_s_core_over_uio:
            bind("uio_pdrv_genirq")
        name = f"Python: {check.__name__.replace('_', ' ')}"
        # Each in a process of its own: a device whose memory was opened is open until that ends.
        child = os.fork()
        if child == 0:
            os._exit(run(check, name, device))
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if end < 0:
            row(name, "failed", f"it was ended by signal {-end}")
        failed |= end != 0
        if check is an_overlay_s_core_over_uio:
            bind("contigo")
    return failed


sys.exit(main())

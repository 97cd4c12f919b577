#!/usr/bin/python3 -B
"""The checks that root runs in the guest of a board of the lab, in a Debian with Python and the
wheel alone.

VFIO and the kernel module contigo are there: their devices and their memory, in Python, by the
names that the tool and C take. Each check is a line `@row`.
"""

import os
import select
import sys
import traceback

import contigo

# A device of each board, memory of it, its port where the program says it, a register, the
# register's value, and its driver. The values: EDU's identification (QEMU, docs/specs/edu.rst:
# 0x00), and the PL330's periph_id_0 (Arm DDI 0424C, chapter 3: 0xFE0).
DEVICES = {
    "virt-smmu": ("vfio:0000:00:01.0", "vfio:0000:00:01.0", None, 0x0, 0x010000ED, None),
    "zynq-6.12": ("guard:f8003000", "dma-heap:linux,cma@guard:f8003000", ("dmac", 0, 32, False), 0xFE0, 0x30, "pl330"),
}
BYTES = 1 << 20


def inventory_lists_the_device_and_its_memory(name, memory, *_rest):
    listed = []
    for what, wanted in [("device", name), ("memory", memory)]:
        ready = [entry["name"] for entry in contigo.inventory() if (entry["what"], entry["state"]) == (what, "ready")]
        # A guard's whole name has its node's too: guard:f8003000.dma-controller.
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
            if device.guard:
                assert device.guard["armed"] and device.guard["imports"] == 1 and not device.guard["kept"], device.guard
            queue = contigo.Queue(engine)
            queue.push([source, target])
            if interrupt:
                assert select.select([fd], [], [], 5.0)[0] == [fd], "no interrupt came"
            done = list(queue)
            assert len(done) == 1 and done[0].buffers[1] is target
            for _ in range(100):
                engine.start([target, source]).wait(timeout=1.0)
            said.append(f"{engine!r} with interrupt={interrupt}: {engine.counts}")
    if device.guard:
        # An empty program disarms; the driver's is left again by the next one.
        device.leave_stop([])
        assert not device.guard["armed"], device.guard
        device.leave_stop([("until", 0xFE0, 0x30, 0xFF, 0.0)])
        assert device.guard["armed"], device.guard
        said.append(f"{device.guard}")
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


CHECKS = [
    inventory_lists_the_device_and_its_memory,
    an_unknown_name_is_told_what_there_is,
    memory_alone_opens_its_device,
    one_opening_serves_registers_and_memory,
    a_driver_copies_by_its_name,
]


def row(name, status, reason):
    """The guest's Python has no module json. A letter that JSON would escape becomes a space."""
    plain = "".join(letter if letter.isprintable() and letter not in '"\\' else " " for letter in reason)
    print(f'@row {{"kind":"check","name":"{name}","user":"{os.getuid()}","status":"{status}","reason":"{plain}"}}', flush=True)


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
    device = DEVICES[os.environ["CONTIGO_BOARD"]]
    failed = 0
    for check in CHECKS:
        if check is a_driver_copies_by_its_name and device[-1] is None:
            continue
        name = f"Python: {check.__name__.replace('_', ' ')}"
        # Each in a process of its own: a device whose memory was opened is open until that ends.
        child = os.fork()
        if child == 0:
            os._exit(run(check, name, device))
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if end < 0:
            row(name, "failed", f"it was ended by signal {-end}")
        failed |= end != 0
    return failed


sys.exit(main())

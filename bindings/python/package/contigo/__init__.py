"""DMA memory and devices for FPGAs and SoCs: what NumPy, TVM and ONNX Runtime read is what the accelerator reads.

    import contigo, numpy as np
    device = contigo.Device("sim:zdma")             # or "uio:axi_dma@40400000", "contigo:f8003000", "vfio:0000:01:00.0"
    region = device.memory("sim")                   # or "contigo", "u-dma-buf:udmabuf0", "hugetlb"
    a, b = region.allocate(16, "int32"), region.allocate(16, "int32")
    np.asarray(a)[:] = 7                            # the same memory; no copy
    with device.driver("zdma") as engine:           # it copies operand 0 to operand 1
        engine.start([a, b]).wait(timeout=1.0)      # seconds; no array of them is alive
    assert (np.asarray(b) == 7).all()
"""

from __future__ import annotations

import sys as _sys

if "t" in _sys.abiflags:
    raise ImportError(
        "contigo: this is a free-threaded Python, which loads no module of Python's stable ABI: use the ordinary build of the same "
        "version (python3.13, not python3.13t); its other threads go on while one waits for a job"
    )

from ._contigo import (
    Buffer, Done, Engine, Handover, Imported, Job, Operand, Pool, Region, View, __version__, doctor, inventory,
    load_driver, open_memory,
)
from .errors import ArgumentError, BusyError, ContigoError, DeviceError, ForkedError, NotFoundError, UnsupportedError
from .errors import BufferError as BufferError, MemoryError as MemoryError, OSError as OSError
from .errors import PermissionError as PermissionError, TimeoutError as TimeoutError
from .cores import Core
from .device import MMIO, Device, Registers
from .kernel import Function, Kernel, KernelMap
from .overlay import Overlay
from .queues import Queue
from .simulation import simulate
from .streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._contigo import Shape as Shape

# Not those whose names are Python's: `from contigo import *` leaves the built-in ones alone.
__all__ = [
    "ArgumentError", "Buffer", "BusyError", "ContigoError", "Core", "Device", "DeviceError", "Done",
    "Engine", "ForkedError", "Function", "Handover", "Imported", "Job", "Kernel", "KernelMap",
    "MMIO", "NotFoundError", "Operand", "Overlay", "Pool", "Queue", "Region", "Registers", "Stream",
    "UnsupportedError", "View", "__version__", "allocate", "doctor", "inventory", "load_driver",
    "open_device", "open_memory", "simulate",
]

open_device = Device

_default: Region | None = None


def allocate(
    shape: Shape,
    dtype: Any = "uint32",
    *,
    memory: Region | str | None = None,
    align: int = 256,
    zeroed: bool = True,
) -> Buffer:
    """An array of `memory`: a Region, or its name, which is opened once and kept as the default.

    shape: a number or a tuple; dtype: a name or NumPy's type; align: bytes, a power of two.
    Without `memory` it is the last one that was named here.
    """
    global _default
    if isinstance(memory, str):
        if _default is None or _default.name != memory:
            _default = open_memory(memory)
        memory = _default
    elif memory is None:
        if _default is None:
            here = [entry["name"] for entry in inventory() if entry["what"] == "memory" and entry["state"] == "ready"]
            raise ArgumentError(f"which memory? memory=\"sim\", or one that this machine has: {', '.join(here)}")
        memory = _default
    return memory.allocate(shape, dtype, align=align, zeroed=zeroed)

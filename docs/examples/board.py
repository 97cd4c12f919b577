"""Pages "Install on a board" and "Coming from PYNQ": a real board; compiled, and not run."""

import contigo
import numpy as np

hp0 = ("zynq-hp0", 0, 32, False)                # a name for errors, offset, address bits, coherent
device = contigo.Device("uio:copy@40000000", port=hp0)
region = device.memory("u-dma-buf:udmabuf0")
copy = device.kernel("xcopy_hw.h",
                     directions={"from": "to_device", "to": "from_device"},
                     lengths={"from": "n", "to": "n"})
a, b = region.allocate(1000, "uint8"), region.allocate(1000, "uint8")
np.asarray(a)[:] = 7
print(copy(a, b, 1000))

slow = device.kernel("xcopy_hw.h", stop_us=2_000_000)   # its longest job takes two seconds

"""docs/frameworks.md."""

import contigo
import numpy as np
import tvm

device = contigo.Device("sim:zdma")                     # on a board: contigo:…, uio:…, vfio:…
region = device.memory("sim", 1 << 20)                  # on a board: contigo, u-dma-buf:…
image = region.allocate((3, 32, 32), "float32", align=4096)     # 256 bytes where nothing is said
answer = region.allocate((3, 32, 32), "float32", align=32)
assert image.device_address % 4096 == 0 and answer.device_address % 32 == 0

lent = tvm.runtime.from_dlpack(image)                   # an ordinary tensor of TVM: kDLCPU
assert np.from_dlpack(lent).ctypes.data == np.asarray(image).ctypes.data
np.asarray(image)[:] = 7
del lent                                                # the device gets it back

with device.driver("zdma") as engine:                   # gets the bus address, and the caches' turn
    engine.start([image, answer]).wait(timeout=1.0)
assert (np.asarray(answer) == 7).all() and region.stats()["bytes_copied"] == 0
print(f"one run at {image.device_address:#x}, nothing copied")

"""docs/frameworks.md."""

import contigo
import numpy as np

region = contigo.open_memory("sim")
buf = region.allocate((4, 16), "int32")

shared = np.from_dlpack(buf)                    # the same elements
row = np.asarray(buf)[2]                        # a framework's array that lies in the region
found = region.from_dlpack(row, "numpy")
print(hex(found.device_address))                # as a device would be told
assert found.device_address == buf.device_address + 2 * 16 * 4

"""README: a kernel of Vitis HLS in ten lines, on a simulated board."""

import contigo
import numpy as np

device = contigo.Device("sim:ap_ctrl")          # "contigo:copy@40000000", port="zynq-hp0"
region = device.memory("sim")                   # "contigo"
copy = device.kernel("copy.json")               # or xcopy_hw.h, or Vivado's .hwh
a, b = region.allocate(1000, "uint8"), region.allocate(1000, "uint8")
np.asarray(a)[:] = 7                            # the same memory: nothing is copied
print(copy(a, b, 1000))                         # the C function's return value
assert (np.asarray(b) == 7).all()

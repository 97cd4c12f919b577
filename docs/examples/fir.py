"""docs/my-accelerator.md: a kernel of one's own, before there is a bitstream."""

import contigo
import numpy as np


def fir(x, y, n):                               # what the C++ does, over NumPy's arrays
    y[:] = np.convolve(x, [1, 2, 1])[:n]
    return int(y.max())


MAP = contigo.KernelMap(
    "xfir_hw.h",                                # the file that Vitis HLS wrote for your kernel
    directions={"x": "reads", "y": "writes"},   # what the file does not say
    lengths={"x": "4*n", "y": "4*n"},           # in bytes
    signed=["ap_return"],                       # C's int; for a float: floats=["ap_return"]
)
device = contigo.simulate(MAP, fir, dtypes="int32")     # contigo.Device("contigo:fir")
region = device.memory("sim")                   # "contigo"
kernel = device.kernel(MAP)
x, y = region.allocate(100, "int32"), region.allocate(100, "int32")
np.asarray(x)[:] = np.arange(100)
most = kernel(x, y, 100)                        # as the C function
assert most == 4 * 98 and (np.asarray(y)[2:] == 4 * np.arange(1, 99)).all()
print(f"fir: {most}")

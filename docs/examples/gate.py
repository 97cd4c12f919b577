"""docs/stopping.md, on a simulated board."""

import contigo
import numpy as np

device = contigo.Device("sim:ap_ctrl_gated")
region = device.memory("sim")
kernel = device.kernel("copy.json", gate=0x10000)     # in the core's window, from there on
# or a device of its own: gate=contigo.Device("uio:gate@40010000")
a, b = region.allocate(1000, "uint8"), region.allocate(1000, "uint8")
np.asarray(a)[:] = 7
assert kernel(a, b, 1000) == 1000
kernel.engine.stop()                                  # also where the core hangs
assert kernel(a, b, 1000) == 1000 and (np.asarray(b) == 7).all()

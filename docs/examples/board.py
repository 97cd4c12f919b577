"""docs/boards.md and docs/stopping.md: compiled, and not run."""

import contigo
import numpy as np

device = contigo.Device("contigo:copy@40000000", port="zynq-hp0")   # a board's port, by its name
region = device.memory("contigo", 1 << 20)
copy = device.kernel("xcopy_hw.h",
                     directions={"from": "reads", "to": "writes"},
                     lengths={"from": "n", "to": "n"})
a, b = region.allocate(1000, "uint8"), region.allocate(1000, "uint8")
np.asarray(a)[:] = 7
print(copy(a, b, 1000))

copy.close()
slow = device.kernel("xcopy_hw.h", stop_us=2_000_000)   # its longest job takes two seconds

core = contigo.Device("contigo:fft@40010000", registers={"CONTROL": 0x00})
core.leave_stop([("write", 0x00, 0, 1),                 # clear GO, bit 0 of CONTROL
                 ("until", 0x00, 0, 1, 0.1)])           # it has stopped when GO reads 0, in 0.1 s

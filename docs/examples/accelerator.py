"""docs/my-accelerator.md, on a simulated board."""

import contigo
import numpy as np

# 1. A kernel of Vitis HLS.
device = contigo.Device("sim:ap_ctrl")
region = device.memory("sim")
copy = device.kernel("copy.json")               # on a board: "xcopy_hw.h", from Vitis
a, b = region.allocate(1000, "uint8"), region.allocate(1000, "uint8")
np.asarray(a)[:] = 7
assert copy(a, b, 1000) == 1000                 # as the C function that you wrote
assert (np.asarray(b) == 7).all()

# 2. A stream behind an AXI DMA: here it comes back.
dma = contigo.Device("sim:axi_dma")
memory = dma.memory("sim", 1 << 20)
stream = dma.driver("axi_dma", memory=memory)   # its descriptors are in this memory too
packet, answer = memory.allocate(1000, "uint8"), memory.allocate(4096, "uint8")
np.asarray(packet)[:] = 7
done = stream.start([packet, answer]).wait(timeout=0.02)
assert done.nbytes == 1000                      # so much came; there was room for 4096
assert (np.asarray(answer)[:1000] == 7).all()

# 3. Registers of your own: the same kernel, by hand.
core = contigo.Device("sim:ap_ctrl", registers={"CTRL": 0x00, "FROM": (0x18, 64), "TO": (0x24, 64), "N": 0x30})
own = core.memory("sim")
x, y = own.allocate(1000, "uint8"), own.allocate(1000, "uint8")
np.asarray(x)[:] = 7
with x.give(reads=True, writes=False) as source, y.give(reads=False, writes=True) as target:
    core["FROM"], core["TO"], core["N"] = source.address, target.address, 1000
    core["CTRL"] = 1                            # go
    core.wait("CTRL", 2, mask=2, timeout=0.02)  # bit 1: done
assert (np.asarray(y) == 7).all()               # both are yours again

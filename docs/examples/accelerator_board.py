"""docs/my-accelerator.md, on a PYNQ-Z2: compiled, and not run."""

import contigo
import numpy as np

dma = contigo.Device("contigo:axi_dma@40400000", port="zynq-hp0")
memory = dma.memory("contigo", 1 << 20)
stream = dma.driver("axi_dma", memory=memory, length_bits=23)  # as in the block design
packet, answer = memory.allocate(1000, "uint8"), memory.allocate(4096, "uint8")
np.asarray(packet)[:] = 7
done = stream.start([packet, answer]).wait(timeout=0.02)

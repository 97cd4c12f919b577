"""bindings/python/README.md: a block design. `simulated` is for a machine without the board."""

import contigo
import numpy as np

ol = contigo.Overlay("design.hwh", simulated=True)      # on the board: contigo.Overlay("design.bit")
dma = ol.axi_dma_0
a, b = dma.allocate(1000, "uint8"), dma.allocate(1000, "uint8")
np.asarray(a)[:] = 7

dma.recvchannel.transfer(b)                             # armed first, so that nothing is lost
dma.send(a)                                             # a second at most; TimeoutError stops it
assert dma.recvchannel.wait() == 1000                   # the bytes that came
assert (np.asarray(b) == 7).all()

scale = ol.scale_0.describe(directions={"from_r": "reads", "to_r": "writes"},
                            lengths={"from_r": "n", "to_r": "n"})
a, b = scale.allocate(100, "uint8"), scale.allocate(100, "uint8")
scale(a, b, 100)                                        # a kernel of Vitis HLS, by its C arguments
print(ol.ip_dict["axi_dma_0"]["port"])                  # zynq-hp0, as the design is wired

"""docs/jobs.md: the same frames, lent to TVM by DLPack."""

import contigo
import tvm
from tvm import te

device = contigo.Device("sim:axi_dma_camera")
region = device.memory("sim", 1 << 20)
frames = region.pool((64, 64), "uint8", 10)
camera = device.driver("axi_dma", memory=region, channel=1, depth=8)

x = te.placeholder((64, 64), "uint8", name="x")
row, column = te.reduce_axis((0, 64), name="row"), te.reduce_axis((0, 64), name="column")
total = te.compute((1,), lambda _: te.sum(x[row, column].astype("int32"), axis=[row, column]), name="total")
model = tvm.compile(te.create_prim_func([x, total]).with_attr("global_symbol", "total"), target="llvm")
out = region.allocate(1, "int32")

seen, bright = 0, 0
for frame in contigo.Stream(camera, frames):
    lent = tvm.runtime.from_dlpack(frame)               # the core's bytes, as a tensor of TVM
    model["total"](lent, tvm.runtime.from_dlpack(out))
    bright = max(bright, int(out.numpy()[0]) if hasattr(out, "numpy") else 1)
    del lent                                            # the core gets the frame again
    seen += 1
    if seen == 100:
        break
print(f"{seen} frames, {region.stats()['bytes_copied']} bytes copied")

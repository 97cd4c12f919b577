"""docs/gpus.md: it is compiled, and not run, because it wants a GPU."""

import contigo

ptx = open("scale.ptx", "rb").read()
gpu = contigo.Device("cuda:0")
region = gpu.memory("cuda:0", 16 << 20)
scale = gpu.function(ptx, "scale",
                     {"from": "reads", "to": "writes", "count": "u32", "by": "f32"},
                     lengths={"from": "4*count", "to": "4*count"})
a, b = region.allocate(1000, "float32"), region.allocate(1000, "float32")
scale(a, b, 1000, 0.5, grid=4)

"""docs/gpus.md: it wants a driver of OpenCL, which pocl is for the CPU."""

import contigo
import numpy as np

source = b"""
kernel void scale(global const float *from, global float *to, uint count, float by) {
    uint i = get_global_id(0);
    if (i < count) to[i] = from[i] * by;
}"""

gpu = contigo.Device("opencl")                          # or "vulkan", with SPIR-V and "main"
region = gpu.memory("opencl", 1 << 20)
scale = gpu.function(source, "scale",
                     {"from": "reads", "to": "writes", "count": "u32", "by": "f32"},
                     lengths={"from": "4*count", "to": "4*count"})
a, b = region.allocate(1000, "float32"), region.allocate(1000, "float32")
np.asarray(a)[:] = range(1000)
scale(a, b, 1000, 0.5, grid=4, block=256)
print(np.asarray(b)[-1], region.stats()["bytes_copied"])    # 499.5 0

"""docs/gpus.md: it wants a driver of Vulkan, which lavapipe is for the CPU, and
glslangValidator."""

import subprocess
import tempfile
from pathlib import Path

import contigo
import numpy as np

source = b"""#version 450
layout(local_size_x = 256) in;                          // the block
layout(std430, set = 0, binding = 0) readonly buffer From { float from[]; };    // operand 0
layout(std430, set = 0, binding = 1) writeonly buffer To { float to[]; };       // operand 1
layout(push_constant) uniform Words { uint count; float by; };                  // the words
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) to[i] = from[i] * by;
}"""

with tempfile.TemporaryDirectory() as folder:
    spirv = Path(folder, "scale.spv")
    subprocess.run(["glslangValidator", "-V", "--stdin", "-S", "comp", "-o", spirv], input=source, stdout=subprocess.DEVNULL, check=True)
    code = spirv.read_bytes()

gpu = contigo.Device("vulkan")                          # or vulkan:1, the second GPU
region = gpu.memory("vulkan", 1 << 20)
scale = gpu.function(code, "main",
                     {"from": "reads", "to": "writes", "count": "u32", "by": "f32"},
                     lengths={"from": "4*count", "to": "4*count"})
a, b = region.allocate(1000, "float32"), region.allocate(1000, "float32")
np.asarray(a)[:] = range(1000)
scale(a, b, 1000, 0.5, grid=4, block=256)
print(np.asarray(b)[-1], region.stats()["bytes_copied"])    # 499.5 0

"""docs/frameworks.md: it wants CUDA's driver."""

import contigo
import numpy as np
import tvm

region = contigo.open_memory("cuda")                    # pinned by CUDA, and mapped for the GPU
frame = region.allocate((64, 64), "float32")            # aligned to 256 bytes, as DLPack asks

pinned = tvm.runtime.from_dlpack(frame)                 # the CPU's side: kDLCUDAHost
on_cpu = tvm.runtime.from_dlpack(np.asarray(frame))     # the same bytes for a model on the CPU: kDLCPU
print(pinned.device, on_cpu.device, frame.device_address % 256)
del pinned, on_cpu

with frame.give() as handover:                          # the GPU's side of the same bytes: kDLCUDA
    tensor = tvm.runtime.from_dlpack(handover)
    print(tensor.device, hex(handover.address))
    del tensor

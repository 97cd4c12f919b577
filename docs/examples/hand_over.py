"""docs/gpus.md: does this GPU's driver copy at a hand-over? `hand_over.py opencl`"""

import sys
import time

import contigo
import numpy as np

name = sys.argv[1]
region = contigo.Device(name).memory(name, 64 << 20)
for mib in (1, 16):
    frame, taken = region.allocate(mib << 20, "uint8"), []
    for turn in range(20):
        np.asarray(frame)[:] = turn                     # bytes that the GPU does not have yet
        begun = time.perf_counter()
        with frame.give():                              # to the GPU, and back
            pass
        taken.append(time.perf_counter() - begun)
    print(f"{mib} MiB: {min(taken) * 1e6:.0f} µs")

"""docs/frameworks.md, on a GPU: `copies_cuda.py before` lets
PyTorch copy, `copies_cuda.py after` gives it Contigo's buffer. Both print the same sum."""

import sys

import contigo
import numpy as np
import torch

RUNS = 100
array = np.linspace(-1, 1, 512 * 512, dtype=np.float32).reshape(512, 512)
region = contigo.open_memory("cuda", 4 << 20)           # pinned by CUDA, and mapped for the GPU
frame = region.allocate((512, 512), "float32")


def before():
    np.asarray(frame)[:] = array                        # here a camera or a core writes
    on_gpu = torch.from_numpy(np.asarray(frame)).cuda()     # allocates, and copies to the GPU
    return float(torch.relu(on_gpu).cpu().numpy().sum())    # allocates, and copies back


def after():
    np.asarray(frame)[:] = array
    with frame.give() as handover:                      # the GPU's view of the same bytes
        tensor = torch.from_dlpack(handover)
        torch.relu_(tensor)
        torch.cuda.synchronize()                        # the GPU has written all of it
        del tensor
    return float(np.asarray(frame).sum())


run = {"before": before, "after": after}[sys.argv[1]]
for _ in range(RUNS):
    result = run()
assert abs(result - np.maximum(array, 0).sum()) < 1
allocated = torch.cuda.memory_stats()["allocation.all.allocated"]
print(f"{sys.argv[1]}: {RUNS} runs, sum {result:.1f}, {allocated} allocations of PyTorch's")

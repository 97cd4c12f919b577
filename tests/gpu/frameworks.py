"""PyTorch and CuPy compute on a GPU in the memory that the CPU sees, without a copy.

    python3 tests/gpu/frameworks.py

It needs a GPU, the package `contigo`, and a CUDA build of the framework. One that is not installed
is skipped by name."""

import importlib
import sys

import contigo
import numpy as np

CUDA = 2
COUNT = 1 << 16


def torch_adds(torch, handover):
    tensor = torch.from_dlpack(handover)
    assert tensor.device.type == "cuda" and tensor.data_ptr() == handover.address, tensor.device
    tensor.add_(1)
    torch.cuda.synchronize()


def cupy_adds(cupy, handover):
    array = cupy.from_dlpack(handover)
    assert array.data.ptr == handover.address, array.data.ptr
    array += 1
    cupy.cuda.Device().synchronize()


def adds_in_place(region, module, add):
    """The CPU writes, the framework adds one on the GPU, the CPU reads: one block of memory."""
    buf = region.allocate((COUNT,), "float32")
    np.asarray(buf)[:] = np.arange(COUNT)
    with buf.give() as handover:
        assert handover.__dlpack_device__() == (CUDA, 0)
        add(module, handover)
    assert np.array_equal(np.asarray(buf), np.arange(COUNT) + 1), np.asarray(buf)[:8]


def main():
    region = contigo.Device("cuda:0").memory("cuda:0", 1 << 20)
    for name, add in {"torch": torch_adds, "cupy": cupy_adds}.items():
        try:
            module = importlib.import_module(name)
        except ImportError as why:
            print(f"skipped: {name}: {why}")
            continue
        adds_in_place(region, module, add)
        stats = region.stats()
        assert stats["bytes_copied"] == 0, stats
        print(f"{name} {module.__version__}: {COUNT} elements in place, 0 bytes copied")


if __name__ == "__main__":
    sys.exit(main())

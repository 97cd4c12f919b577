"""DMA memory for FPGA and SoC accelerators: what NumPy, TVM and ONNX Runtime read is what the accelerator reads.

    import contigo, numpy as np
    heap = contigo.Heap("sim")                      # or "u-dma-buf:udmabuf0", "dma-heap:linux,cma", "hugetlb", "cuda"
    x = heap.allocate((4, 16), "int8")
    np.asarray(x)[:] = 1                            # the same memory; no copy
    with x.to_device("to_device") as handover:      # no array of it is alive: caches cleaned
        ip.write(0x10, handover.address)            # the bus address
"""

from ._contigo import Buffer, ContigoError, ForkedError, Gemm8, Handover, Heap, Imported, Pool, View, __version__, info

__all__ = ["Buffer", "ContigoError", "ForkedError", "Gemm8", "Handover", "Heap", "Imported", "Pool", "View", "__version__", "allocate", "info"]

_default = None


def allocate(shape, dtype="uint32", *, heap=None, align=256, zeroed=True):
    """An array of `heap`: a Heap, or its name, which is opened once and kept as the default.

    shape: a number or a tuple; dtype: a name or NumPy's type; align: bytes, a power of two.
    Without `heap` it is the last one that was named here.
    """
    global _default
    if isinstance(heap, str):
        if _default is None or _default.name != heap:
            _default = Heap(heap)
        heap = _default
    elif heap is None:
        if _default is None:
            raise ContigoError(f"which memory? heap=\"sim\", or one that this machine has: {info()}")
        heap = _default
    return heap.allocate(shape, dtype, align=align, zeroed=zeroed)

"""Memory that CUDA pins, from Python: the CPU's view, the GPU's, and a kernel. interop.py runs it
in a process of its own, with libcuda.so.1 a driver that stands in for NVIDIA's. On a machine with a
GPU it runs by itself."""

import sys
from pathlib import Path

import contigo
import numpy as np
import tvm
from common import GEMM8, GEMM8_LENGTHS, Tensor, gemm8_job, inside, refused

CUDA, CUDA_HOST, EXT_DEV = 2, 3, 12
READ_ONLY = 1


def told(capsule):
    """The pointer, the device and the first dimension of a tensor in the form before DLPack 1.0."""
    tensor = inside(capsule, Tensor)
    return tensor.data, *tensor.device, tensor.shape[0]


def flags(capsule):
    """Of a tensor in the form of DLPack 1.0; the capsule lives meanwhile."""
    return inside(capsule).flags


def the_cpu_s_view(region):
    buf = region.allocate((4, 16), "float32")
    view = np.asarray(buf)
    view[:] = 3
    assert buf.__dlpack_device__() == (CUDA_HOST, 0)
    assert buf.device_address % 256 == 0 and view.ctypes.data % 256 == 0
    assert np.from_dlpack(buf).ctypes.data == view.ctypes.data
    pinned = tvm.runtime.from_dlpack(buf)
    assert str(pinned.device).startswith("cuda_host"), pinned.device
    on_cpu = tvm.runtime.from_dlpack(np.asarray(buf))
    assert str(on_cpu.device).startswith("cpu") and np.from_dlpack(on_cpu).ctypes.data == view.ctypes.data
    assert region.from_dlpack(view[1:], "any").device_address == buf.device_address + 64
    refused(BufferError, lambda: region.from_dlpack(buf, "tvm"), "device type 1")


def the_gpu_s_view(region):
    buf = region.allocate((4, 16), "float32")
    with buf.give() as handover:
        assert handover.address == buf.device_address
        assert handover.__dlpack_device__() == (CUDA, 0)
        capsule = handover.__dlpack__(stream=1)
        assert told(capsule) == (handover.address, CUDA, 0, 4), told(capsule)
        refused(BufferError, handover.take_back, "still has the device's view")
        del capsule
        tensor = tvm.runtime.from_dlpack(handover)
        assert str(tensor.device).startswith("cuda") and tuple(tensor.shape) == (4, 16), tensor.device
        refused(BufferError, handover.take_back, "1 view(s): a framework still has the device's view")
        assert buf.owner == "device"
        del tensor
        refused(BufferError, lambda: handover.__dlpack__(copy=True), "never copied")
        for stream in (0, -2):
            refused(BufferError, lambda: handover.__dlpack__(stream=stream), f"stream {stream} is none")
        refused(BufferError, lambda: handover.__dlpack__(dl_device=(CUDA_HOST, 0)), "the device's view")
        refused(BufferError, buf.__dlpack__, "a device has this buffer")
    assert buf.owner == "cpu"
    refused(BufferError, handover.__dlpack__, "this hand-over has ended")
    # A framework may only read a buffer that a device only reads.
    with buf.give(writes=False) as handover:
        refused(BufferError, handover.__dlpack__, "for reading only")
        assert flags(handover.__dlpack__(max_version=(1, 0))) == READ_ONLY
    with buf.give(reads=False) as handover:
        assert flags(handover.__dlpack__(max_version=(1, 0))) == 0


def another_device_s_view():
    buf = contigo.open_memory("sim", 1 << 16).allocate((8,), "uint8")
    with buf.give() as handover:
        assert handover.__dlpack_device__() == (EXT_DEV, 0)
        assert told(handover.__dlpack__()) == (buf.device_address, EXT_DEV, 0, 8)
        refused(BufferError, lambda: handover.__dlpack__(stream=1), "no streams")


def products_on_the_gpu(device, region):
    """gemm8's kernel (examples/gemm8/kernels/gemm8.cu) by its parameters alone: the job layer knows
    no more of it."""
    image = (Path(__file__).parents[2] / "examples" / "gemm8" / "kernels" / "gemm8.ptx").read_bytes()
    numbers = {"m": "u32", "n": "u32", "k": "u32", "flags": 32}
    # PTX is a text, too.
    gemm8 = device.function(image.decode(), "gemm8", {**GEMM8, **numbers}, lengths=GEMM8_LENGTHS)
    m, n, k = 8, 32, 48
    bufs, _, expected = gemm8_job(region, m, n, k)
    view = np.asarray(bufs["b"])
    refused(BufferError, lambda: gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=1), "1 view(s)")
    del view
    gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=1)
    assert np.array_equal(np.asarray(bufs["c"]), expected)
    # RELU, int8, and a shift of 7; by position, in a queue.
    queue = contigo.Queue(gemm8)
    operands, words = gemm8.job(*bufs.values(), m, n, k, 1 | 2 | 7 << 8, grid=(1, 1), block=(256, 1, 1))
    queue.push(operands, *words)
    assert queue.depth > 1 and len(queue) == 1
    assert [done.buffers[3] is bufs["c"] for done in queue] == [True]
    shifted = np.clip((np.maximum(expected, 0) + 64) >> 7, -128, 127).astype("int8")
    assert np.array_equal(np.asarray(bufs["c"]).view("int8").reshape(-1)[: m * n].reshape(m, n), shifted)
    # The lengths are compared before a launch; a kernel's image is loaded once.
    for wrong, words in [
        (lambda: gemm8(**bufs, m=m, n=n, k=64, flags=0, grid=1), "operand 0"),
        (lambda: gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=0), "launch"),
        (lambda: gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=-1), "grid=-1"),
        (lambda: gemm8(**bufs, m=-m, n=n, k=k, flags=0, grid=1), "m=-8"),
        (lambda: device.function(image, "gemm9", {"a": "both"}), "gemm9: cuModuleGetFunction"),
        (lambda: device.function(b"no image", "gemm8", {"a": "both"}), "gemm8: cuModuleLoadDataEx"),
        (lambda: device.function(b"", "gemm8", {"a": "both"}), "gemm8: the image is empty"),
        (lambda: device.function(image, "gemm8", {"a": "both"}, lengths={"a": "4*n"}), "4*n"),
        (lambda: contigo.Device("sim:zdma").function(image, "gemm8", {"a": "both"}), "for a GPU"),
    ]:
        refused((ValueError, contigo.ContigoError), wrong, words)
    assert all(buf.owner == "cpu" for buf in bufs.values())


def main():
    device = contigo.Device("cuda")
    assert device.gpu and f"gpu='{device.gpu}'" in repr(device), device
    assert contigo.Device("sim:zdma").gpu is None and repr(contigo.Device("sim:zdma")) == "contigo.Device('sim:zdma')"
    region = device.memory("cuda", 1 << 20)
    products_on_the_gpu(device, region)
    for test in (the_cpu_s_view, the_gpu_s_view):
        test(region)
    another_device_s_view()
    stats = region.stats()
    assert stats["bytes_copied"] == 0 and stats["syncs"] == 0, stats
    print("pinned")


if __name__ == "__main__":
    sys.exit(main())

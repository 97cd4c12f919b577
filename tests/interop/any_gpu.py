"""A GPU through Vulkan and OpenCL, without a copy: gemm8's kernels, and the device's tensors with
their byte offsets. A process of its own, because these drivers bring compilers that a framework may
have too. On a machine without a GPU Mesa's lavapipe and pocl are the drivers.

    any_gpu.py vulkan|opencl
"""

import ctypes
import sys
from pathlib import Path

import contigo
import numpy as np

KERNELS = Path(__file__).parents[2] / "examples" / "gemm8" / "kernels"
#: Of each interface: the code, the kernel in it, and DLPack's tag.
INTERFACES = {"vulkan": ("gemm8.spv", "main", 7), "opencl": ("gemm8.cl", "gemm8", 4)}
BLOCK = 64


def refused(words, call):
    try:
        call()
    except (BufferError, ValueError, OSError, contigo.ContigoError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def told(capsule):
    """Data pointer, device and byte offset of a tensor in the form before DLPack 1.0."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = get(capsule, b"dltensor")
    kind, ordinal = (ctypes.c_int32 * 2).from_address(at + 8)
    return ctypes.c_void_p.from_address(at).value, (kind, ordinal), ctypes.c_uint64.from_address(at + 40).value


def products(gpu, region, code, entry):
    pointers = {"a": "reads", "b": "reads", "bias": "reads", "c": "writes"}
    lengths = {"a": "m*k", "b": "k*n", "bias": "4*n", "c": "m*n"}
    gemm8 = gpu.function(code, entry, {**pointers, "m": 32, "n": 32, "k": 32, "flags": 32}, lengths=lengths)
    m, n, k = 8, 32, 48
    rng = np.random.default_rng(7)
    shapes = {"a": ((m, k), "int8"), "b": ((k, n), "int8"), "bias": ((n,), "int32"), "c": ((m, n), "int32")}
    bufs = {name: region.allocate(*shape) for name, shape in shapes.items()}
    values = {name: rng.integers(-128, 128, shape).astype(dtype) for name, (shape, dtype) in shapes.items()}
    for name in ("a", "b", "bias"):
        np.asarray(bufs[name])[:] = values[name]
    gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=1, block=BLOCK)
    expected = values["a"].astype("int32") @ values["b"].astype("int32") + values["bias"]
    assert np.array_equal(np.asarray(bufs["c"]), expected)
    # Several in flight, and each ends in its order.
    queue = contigo.Queue(gemm8.engine)
    outputs = [region.allocate((m, n), "int32") for _ in range(3)]
    for output in outputs:
        operands, words = gemm8.job(bufs["a"], bufs["b"], bufs["bias"], output, m, n, k, 0, grid=1, block=BLOCK)
        if output is outputs[0]:
            queue.push(operands, *words)
        else:
            # A's buffer is in a job.
            refused("in a job", lambda: queue.push(operands, *words))
    assert [done.buffers[3] is outputs[0] for done in queue] == [True]
    assert np.array_equal(np.asarray(outputs[0]), expected)
    refused("operand 0", lambda: gemm8(**bufs, m=m, n=n, k=64, flags=0, grid=1, block=BLOCK))
    refused("launch", lambda: gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=0, block=BLOCK))
    board = contigo.open_memory("sim", 1 << 16)
    strange = {name: board.allocate(*shape) for name, shape in shapes.items()}
    refused("operand 0", lambda: gemm8(**strange, m=m, n=n, k=k, flags=0, grid=1, block=BLOCK))
    assert all(buf.owner == "cpu" for buf in (*bufs.values(), *strange.values()))
    return bufs


def the_device_s_tensors(bufs, tag):
    """One object; each buffer's place in it is beside the handle, to which nothing was added."""
    handles, offsets = set(), []
    for buf in bufs:
        assert buf.__dlpack_device__() == (1, 0)
        with buf.give() as handover:
            assert handover.__dlpack_device__() == (tag, 0)
            capsule = handover.__dlpack__()
            handle, device, offset = told(capsule)
            assert device == (tag, 0), device
            refused("still has the device's view", handover.take_back)
            refused("no streams", lambda: handover.__dlpack__(stream=1))
            del capsule
        handles.add(handle)
        offsets.append(offset)
    assert len(handles) == 1 and offsets == sorted(set(offsets)) and offsets[-1] > 0, (handles, offsets)
    starts = [np.asarray(buf).ctypes.data for buf in bufs]
    assert [at - starts[0] for at in starts] == [offset - offsets[0] for offset in offsets]


def tvm_passes_it_on(buf, name):
    """Its wheel has no device code for this GPU, and hands object and offset on as they are."""
    import tvm

    with buf.give() as handover:
        given = told(handover.__dlpack__())
        tensor = tvm.runtime.from_dlpack(handover)
        assert str(tensor.device) == f"{name}:0" and tensor.shape == buf.shape, tensor.device
        assert told(tensor.__dlpack__()) == given and given[2] > 0, given
        refused("still has the device's view", handover.take_back)
        del tensor


def main(name):
    file, entry, tag = INTERFACES[name]
    code = (KERNELS / file).read_bytes()
    try:
        gpu = contigo.Device(name)
    except (OSError, contigo.ContigoError) as error:
        print(f"missing: {error}")
        return
    region = gpu.memory(name, 1 << 20)
    bufs = products(gpu, region, code, entry)
    the_device_s_tensors(list(bufs.values()), tag)
    tvm_passes_it_on(bufs["c"], name)
    refused("belongs to a device", lambda: contigo.Device("sim:zdma").memory(name))
    wrong, words = (code.replace(b"uint columns", b"", 1), "compiler says") if name == "opencl" else (code[:30], "length")
    refused(words, lambda: gpu.function(wrong, entry, {"a": "both"}))
    words = "clCreateKernel" if name == "opencl" else "entry point"
    refused(words, lambda: gpu.function(code, "gemm9", {"a": "both"}))
    refused("GPU", lambda: contigo.Device("sim:zdma").function(code, entry, {"a": "both"}))
    assert region.stats()["bytes_copied"] == 0
    print("right")


if __name__ == "__main__":
    main(sys.argv[1])

"""A GPU through Vulkan and OpenCL, without a copy: gemm8's kernels, and the device's tensors with
their byte offsets. A process of its own, because these drivers bring compilers that a framework may
have too. On a machine without a GPU Mesa's lavapipe and pocl are the drivers.

    any_gpu.py vulkan|opencl
"""

import sys
from pathlib import Path

import contigo
import numpy as np
from common import GEMM8, GEMM8_LENGTHS, Tensor, gemm8_job, inside, refused
from contigo.kernel import Function, _Signature

KERNELS = Path(__file__).parents[2] / "examples" / "gemm8" / "kernels"
#: Of each interface: the code, the kernel in it, and DLPack's tag.
INTERFACES = {"vulkan": ("gemm8.spv", "main", 7), "opencl": ("gemm8.cl", "gemm8", 4)}
BLOCK = 64
REFUSED = (BufferError, ValueError, OSError, contigo.ContigoError)
SCALE = """
kernel void scale(global const float *from, global float *to, uint count, float by) {
    uint i = get_global_id(0);
    if (i < count) to[i] = from[i] * by;
}"""


def told(capsule):
    """Data pointer, device and byte offset of a tensor in the form before DLPack 1.0."""
    tensor = inside(capsule, Tensor)
    return tensor.data, tuple(tensor.device), tensor.byte_offset


def products(gpu, region, code, entry):
    gemm8 = gpu.function(code, entry, {**GEMM8, "m": 32, "n": 32, "k": 32, "flags": 32}, lengths=GEMM8_LENGTHS)
    m, n, k = 8, 32, 48
    bufs, shapes, expected = gemm8_job(region, m, n, k)
    gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=1, block=BLOCK)
    assert np.array_equal(np.asarray(bufs["c"]), expected)
    # Several in flight, and each ends in its order.
    queue = contigo.Queue(gemm8)
    assert queue.depth == gemm8.engine.depth > 1
    refused(TypeError, lambda: contigo.Queue(gpu), "takes no jobs")
    outputs = [region.allocate((m, n), "int32") for _ in range(3)]
    for output in outputs:
        operands, words = gemm8.job(bufs["a"], bufs["b"], bufs["bias"], output, m, n, k, 0, grid=1, block=BLOCK)
        if output is outputs[0]:
            queue.push(operands, *words)
        else:
            # A's buffer is in a job.
            refused(REFUSED, lambda: queue.push(operands, *words), "in a job")
    assert [done.buffers[3] is outputs[0] for done in queue] == [True]
    assert np.array_equal(np.asarray(outputs[0]), expected)
    refused(REFUSED, lambda: gemm8(**bufs, m=m, n=n, k=64, flags=0, grid=1, block=BLOCK), "operand 0")
    refused(REFUSED, lambda: gemm8(**bufs, m=m, n=n, k=k, flags=0, grid=0, block=BLOCK), "launch")
    no_wraps(gemm8, bufs)
    board = contigo.open_memory("sim", 1 << 16)
    strange = {name: board.allocate(*shape) for name, shape in shapes.items()}
    refused(REFUSED, lambda: gemm8(**strange, m=m, n=n, k=k, flags=0, grid=1, block=BLOCK), "operand 0")
    assert all(buf.owner == "cpu" for buf in (*bufs.values(), *strange.values()))
    return bufs


def no_wraps(gemm8, bufs):
    """No number of a launch, and no argument word, becomes another one."""
    given = {**bufs, "m": 8, "n": 32, "k": 48, "flags": 0}
    for name in ("grid", "block", "shared_bytes"):
        launch = {"grid": 1, "block": BLOCK}
        for wrong in (-1, 1 << 32):
            refused(ValueError, lambda: gemm8(**given, **{**launch, name: wrong}), f"{name}={wrong}: {name} is an integer of 32 bits, from 0 to 4294967295")
        refused(TypeError, lambda: gemm8(**given, **{**launch, name: 1000 / 256}), f"{name}=3.90625: {name} is an integer")
    refused(ValueError, lambda: gemm8(**given, grid=(1, -1), block=BLOCK), "grid=-1")
    for wrong in ((), (1, 1, 1, 1)):
        refused(ValueError, lambda: gemm8(**given, grid=1, block=wrong), f"block={wrong}: it is a number, or up to three")
    operands, words = gemm8.job(**given, grid=np.int64(1), block=(np.uint8(BLOCK), 1))
    assert words == [1, 1, 1, BLOCK, 1, 1, 0, 8, 32, 48, 0], words
    for wrong, error in ((1 << 32, ValueError), (-(1 << 31) - 1, ValueError), (1 << 70, ValueError), (0.5, TypeError)):
        refused(error, lambda: gemm8.engine.push(operands, *words[:10], wrong), f"argument word 10 is {wrong}: it is an integer of 32 bits")


def numbers_are_of_their_kinds():
    """A number becomes what its parameter's kind says, or is refused."""

    def words(kind, value):
        signature = _Signature("one", {"x": kind}, {})
        return Function(None, signature).job(value, grid=1)[1][7:]

    assert words("f32", 2) == [0x4000_0000] == words("f32", np.int8(2)) and words("f64", 2) == [0, 0x4000_0000]
    assert words("i8", -1) == [0xFF] and words("u16", 65535) == [65535] and words("i64", -2) == [0xFFFF_FFFE, 0xFFFF_FFFF]
    # Of bare bits the number's own type chooses.
    assert words(32, 2) == [2] and words(32, 2.0) == [0x4000_0000] and words(32, -1) == words(32, (1 << 32) - 1)
    for bits in (8, 16, 32, 64):
        for kind, low, high in ((f"u{bits}", 0, (1 << bits) - 1), (f"i{bits}", -(1 << bits - 1), (1 << bits - 1) - 1)):
            assert len(words(kind, low)) == len(words(kind, high)) == (bits + 31) // 32
            for wrong in (low - 1, high + 1):
                refused(ValueError, lambda: words(kind, wrong), f"x={wrong}: x is an integer of {bits} bits, from {low} to {high}")
            refused(TypeError, lambda: words(kind, 2.0), "x=2.0: x is an integer")
    refused(ValueError, lambda: words("f32", 1e300), "x=1e+300: x is a float of 32 bits")
    refused(TypeError, lambda: words("f32", "2"), "x='2': x is a number")
    for wrong in (96, 0, 33, "int", "f16", ["f32"], None):
        refused(ValueError, lambda: words(wrong, 0), f"one: x is {wrong!r}: a pointer is one of")
    refused(ValueError, lambda: _Signature("one", {"to": "writes", "by": "f32"}, {"to": "4*by"}), "'4*by' is no product")


def a_float_is_one(gpu, region):
    """OpenCL C as a text; an integer for the float, converted."""
    parameters = {"from": "reads", "to": "writes", "count": "u32", "by": "f32"}
    scale = gpu.function(SCALE, "scale", parameters, lengths={"from": "4*count", "to": "4*count"})
    a, b = region.allocate(1000, "float32"), region.allocate(1000, "float32")
    np.asarray(a)[:] = range(1000)
    scale(a, b, 1000, 2, grid=4)
    assert np.array_equal(np.asarray(b), np.arange(1000) * 2)
    refused(TypeError, lambda: scale(a, b, 1000.0, 2, grid=4), "count=1000.0: count is an integer")


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
            refused(REFUSED, handover.take_back, "still has the device's view")
            refused(REFUSED, lambda: handover.__dlpack__(stream=1), "no streams")
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
        refused(REFUSED, handover.take_back, "still has the device's view")
        del tensor


def main(name):
    file, entry, tag = INTERFACES[name]
    code = (KERNELS / file).read_bytes()
    try:
        gpu = contigo.Device(name)
    except (OSError, contigo.ContigoError) as error:
        print(f"missing: {error}")
        return
    assert gpu.gpu and repr(gpu) == f"contigo.Device('{name}', gpu='{gpu.gpu}')", gpu
    region = gpu.memory(name, 1 << 20)
    bufs = products(gpu, region, code, entry)
    the_device_s_tensors(list(bufs.values()), tag)
    tvm_passes_it_on(bufs["c"], name)
    refused(REFUSED, lambda: contigo.Device("sim:zdma").memory(name), "belongs to a device")
    numbers_are_of_their_kinds()
    if name == "opencl":
        a_float_is_one(gpu, region)
        wrong = code.replace(b"uint columns", b"", 1)
        error = refused(contigo.DeviceError, lambda: gpu.function(wrong, entry, {"a": "both"}), "; the driver's compiler says: ")
        assert error.code == "GPU" and str(error).startswith("gemm8: clBuildProgram: "), error
    else:
        refused(REFUSED, lambda: gpu.function(code[:30], entry, {"a": "both"}), "main: ")
        refused(TypeError, lambda: gpu.function("void main() {}", entry, {"a": "both"}), "SPIR-V is bytes")
    for nothing in (b"", ""):
        refused(ValueError, lambda: gpu.function(nothing, "gemm9", {"a": "both"}), "gemm9: the image is empty")
    words = "gemm9: clCreateKernel" if name == "opencl" else "gemm9: "
    refused(REFUSED, lambda: gpu.function(code, "gemm9", {"a": "both"}), words)
    refused(REFUSED, lambda: contigo.Device("sim:zdma").function(code, entry, {"a": "both"}), "GPU")
    assert region.stats()["bytes_copied"] == 0
    print("right")


if __name__ == "__main__":
    main(sys.argv[1])

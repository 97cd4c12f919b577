"""Contigo's memory in TVM, ONNX Runtime and PyTorch: whose pointer do they see, and is anything
copied?"""

import gc
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import contigo
import numpy as np
from common import ROOT, Skipped, by_own_build, in_threads, output, refused
from memory import REGION, Copies, array, pointer

HERE, EXAMPLES = Path(__file__).parent, ROOT / "docs" / "examples"


def test_tvm_relax():
    """A model compiled by LLVM: its inputs and its outputs lie here, and its kernels see these
    pointers."""
    import tvm
    from tvm import relax, te

    seen = []

    @tvm.register_global_func("contigo.test.see", override=True)
    def see(x):
        seen.append(pointer(x))
        return x

    shape = (16, 16)
    tensor = relax.TensorType(shape, "float32")
    x = te.placeholder(shape, "float32", name="x")
    y = te.compute(shape, lambda i, j: x[i, j] * 2.0 + 1.0, name="y")
    builder = relax.BlockBuilder()
    kernel = builder.add_func(te.create_prim_func([x, y]).with_attr("global_symbol", "twice"), "twice")
    given, out = relax.Var("given", tensor), relax.Var("out", tensor)
    with builder.function("main", [given, out], pure=False):
        looked = builder.emit(relax.Call(relax.ExternFunc("contigo.test.see"), [given], ty_args=[tensor]))
        builder.emit_func_output(builder.emit(relax.op.call_tir_inplace(kernel, relax.Tuple([looked, out]), [1], tensor)))
    machine = relax.VirtualMachine(tvm.compile(builder.get(), target="llvm"), tvm.cpu())

    rows = []
    result = REGION.allocate(shape, "float32")
    base = REGION.allocate(1024 + 4 * 256, "uint8")
    bytes_of_base = array(base)
    for offset in [0, 16, 32, 64, 128, 192, 256, 512]:
        part = bytes_of_base[offset : offset + 1024].view(np.float32).reshape(shape)
        part[:] = np.arange(256).reshape(shape)
        align = offset & -offset or 256
        try:
            REGION.from_dlpack(part, "tvm")
            allowed = True
        except BufferError:
            allowed = False
        if not allowed:
            # An offset that our contract refuses, TVM refuses too, and ours says it with the
            # numbers.
            refused(Exception, lambda: tvm.runtime.from_dlpack(part), "aligned to 64")
            rows.append(("TVM", f"input, offset {offset}", align, "refused by both", 0))
            continue
        seen.clear()
        with Copies() as copies:
            returned = machine["main"](tvm.runtime.from_dlpack(part), tvm.runtime.from_dlpack(result))
        same = seen == [part.ctypes.data] and pointer(returned) == array(result).ctypes.data
        assert (array(result) == part * 2 + 1).all()
        rows.append(("TVM", f"input, offset {offset}; output", align, same, copies.bytes))
        del returned
    # A machine keeps the arguments of its last call.
    del part, machine
    gc.collect()
    assert result.views == 0, f"TVM has let go of it, except for {result.views}"
    return rows


def test_digits_by_an_accelerator_and_tvm():
    """On gemm8, whose driver is in an example: in a build of one's own."""
    return json.loads(by_own_build("digits.py", "tvm"))


def test_digits_by_an_accelerator_and_pytorch():
    pytorch()
    return json.loads(by_own_build("digits.py", "torch"))


def test_onnx_runtime():
    """I/O binding: input and output of a session lie here."""
    import onnxruntime
    from onnx import TensorProto, helper

    shape = [8, 16]
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [info("x")], [info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = []
    x, y = REGION.allocate(tuple(shape), "float32"), REGION.allocate(tuple(shape), "float32")
    given, out = array(x), array(y)
    given[:] = np.linspace(-1, 1, 128).reshape(shape)
    for a in (given, out):
        REGION.from_dlpack(a, "onnxruntime")
    binding = session.io_binding()
    with Copies() as copies:
        binding.bind_input("x", "cpu", 0, np.float32, shape, given.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, shape, out.ctypes.data)
        session.run_with_iobinding(binding)
        (result,) = binding.get_outputs()
    same = result.data_ptr() == out.ctypes.data
    assert (out == np.maximum(given, 0)).all()
    rows.append(("ONNX Runtime", "input and output bound", 256, same, copies.bytes))
    value = onnxruntime.OrtValue.ortvalue_from_numpy(given)
    rows.append(("ONNX Runtime", "OrtValue of an array", 256, value.data_ptr() == given.ctypes.data, copies.bytes))
    return rows


def pytorch():
    try:
        import torch
    except ImportError as error:
        raise Skipped(os.environ.get("CONTIGO_NO_PYTORCH", f"PyTorch cannot be imported: {error}")) from None
    return torch


def test_torch_both_ways():
    """Every type and alignment; the results of PyTorch lie here."""
    torch = pytorch()
    rows = []
    types = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 bool"
    for dtype in types.split():
        buf = REGION.allocate((4, 16), dtype)
        with Copies() as copies:
            tensor = torch.from_dlpack(buf)
            assert tensor.dtype == getattr(torch, dtype) and tensor.shape == (4, 16), tensor
            found = REGION.from_dlpack(tensor, "dlpack")
        same = found.device_address == buf.device_address and found.nbytes == buf.nbytes and tensor.data_ptr() % 256 == 0
        if dtype != "bfloat16":
            # NumPy has none of these; that the address is the same was seen.
            tensor[2, 3] = 1
            assert array(buf)[2, 3] == 1 and np.count_nonzero(array(buf)) == 1
            same = same and tensor.data_ptr() == array(buf).ctypes.data
        rows.append(("PyTorch", f"Contigo → {dtype} → Contigo", 256, same, copies.bytes))

    shape = (16, 16)
    result, base = REGION.allocate(shape, "float32"), REGION.allocate(1024 + 4 * 256, "uint8")
    out, bytes_of_base = torch.from_dlpack(result), torch.from_dlpack(base)
    for offset in [0, 4, 16, 32, 64, 100, 128, 192, 256, 512]:
        part = bytes_of_base[offset : offset + 1024].view(torch.float32).view(shape)
        align = offset & -offset or 256
        with Copies() as copies:
            part.copy_(torch.arange(256).view(shape))
            torch.add(torch.mul(part, 2), 1, out=out)
            found = REGION.from_dlpack(part, "any")
        same = found.device_address == base.device_address + offset and found.offset - REGION.from_dlpack(bytes_of_base).offset == offset
        same = same and part.data_ptr() == array(base).ctypes.data + offset and out.data_ptr() == array(result).ctypes.data
        numbers = np.arange(256, dtype=np.float32).reshape(shape)
        assert (array(base)[offset : offset + 1024].view(np.float32).reshape(shape) == numbers).all() and (array(result) == numbers * 2 + 1).all()
        for contract, least in [("tvm", 64), ("dlpack", 256)]:
            if align % least == 0:
                assert REGION.from_dlpack(part, contract).device_address == found.device_address
            else:
                refused(BufferError, lambda: REGION.from_dlpack(part, contract), f"a multiple of {least} ", "found")
        rows.append(("PyTorch", f"→ Contigo, offset {offset}", align, same, copies.bytes))

    # Lines before it that are taken put a buffer where only its own alignment is.
    taken = []
    for align in [64, 256]:
        for _ in range(8):
            buf = REGION.allocate(16, "float32", align=align)
            tensor = torch.from_dlpack(buf)
            taken.append(buf)
            if align == 256 or tensor.data_ptr() % 256 == 64:
                break
        else:
            raise AssertionError("eight buffers of 64 bytes, and none lies 64 bytes after a multiple of 256")
        same = tensor.data_ptr() == array(buf).ctypes.data and tensor.data_ptr() % align == 0
        rows.append(("PyTorch", f"Contigo → allocated with align={align}", align, same, 0))

    square = bytes_of_base[:1024].view(32, 32)
    found = REGION.from_dlpack(square[::2, 1::3])
    assert found.nbytes == 15 * 2 * 32 + 10 * 3 + 1 and found.device_address == base.device_address + 1
    refused(BufferError, lambda: REGION.from_dlpack(square.T, "tvm"), "stride")
    refused(contigo.ContigoError, lambda: REGION.from_dlpack(torch.zeros(16)), "not in this region", "64 bytes")
    refused(BufferError, lambda: REGION.from_dlpack(torch.from_dlpack(result).requires_grad_()), "gradient")
    refused(BufferError, lambda: torch.from_dlpack(result, copy=True), "never copied")
    return rows


def test_torch_lets_go_on_another_thread():
    """A tensor, and an array imported from one, dropped on threads that did not make them. The
    buffer is free when the last is gone."""
    torch = pytorch()
    buf = REGION.allocate((4, 16), "float32")
    tensor = torch.from_dlpack(buf)
    kept = [tensor, tensor[1:], REGION.from_dlpack(tensor)]
    del tensor
    refused(BufferError, buf.sync_to_device, "1 view(s)", "race the device")
    # The first tensor goes, then what is a part of it, then what we imported: it is PyTorch that
    # counts these three.
    for left in [1, 1, 0]:
        in_threads(lambda: kept.__delitem__(0))
        assert buf.views == left, (buf.views, left, kept)

    def work(seed):
        for turn in range(2_000):
            tensor = torch.from_dlpack(buf)
            if (turn + seed) % 2:
                REGION.from_dlpack(tensor)

    assert in_threads(*[lambda seed=seed: work(seed) for seed in range(4)]) == [None] * 4
    assert buf.views == 0, buf.views
    with buf.give(reads=False):
        refused(BufferError, lambda: torch.from_dlpack(buf), "a device has this buffer")


def test_memory_that_cuda_pinned():
    """On a driver that stands in for NVIDIA's, found as that one is. A program looks for it once,
    so this is a process of its own."""
    fake = os.environ.get("CONTIGO_FAKE_CUDA")
    if not fake:
        raise Skipped("CONTIGO_FAKE_CUDA names no driver (tests/interop/run builds one)")
    with tempfile.TemporaryDirectory(prefix="contigo-cuda-") as folder:
        (Path(folder) / "libcuda.so.1").symlink_to(fake)
        path = f"{folder}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}"
        environment = {**os.environ, "LD_LIBRARY_PATH": path}
        assert output(sys.executable, HERE / "pinned.py", env=environment) == "pinned\n"
        said = output(sys.executable, EXAMPLES / "pinned_tensor.py", env=environment)
    assert said.startswith("cuda_host:0 cpu:0 0\ncuda:0 0x"), said
    refused(ValueError, lambda: contigo.open_memory("cuda:x"), "at byte 5: a number from 0 to")
    rows = [("NumPy", "CUDA-pinned", 256, True, 0), ("TVM", "CUDA-pinned", 256, True, 0)]
    return [*rows, ("TVM", "the GPU's view of it", 256, True, 0)]


def test_memory_of_vulkan_and_opencl():
    """Each in a process of its own, because a driver brings its compiler."""
    rows, missing = [], []
    for name, words in (("vulkan", "a VkBuffer and an offset"), ("opencl", "a cl_mem and an offset")):
        said = output(sys.executable, HERE / "any_gpu.py", name, timeout=300)
        if said.startswith("missing: "):
            missing.append(f"{name}: {said[9:].strip()}")
            continue
        assert said.endswith("right\n"), said
        rows.append((name, words, 256, True, 0))
    if missing:
        raise Skipped("; ".join(missing))
    shader = ["vulkan.py"] if shutil.which("glslangValidator") else []
    for program in ["opencl.py", *shader]:
        said = example(program)
        assert said.split() == ["499.5", "0"], said
    for name in ("vulkan", "opencl"):
        said = example("hand_over.py", name)
        assert re.fullmatch(r"1 MiB: \d+ µs\n16 MiB: \d+ µs\n", said), said
    found = re.fullmatch(r"max error (\S+), bytes copied 0\n", example("tvm_opencl.py"))
    assert found and float(found[1]) < 1e-3, found
    return [*rows, ("opencl", "a layer that TVM compiled", 256, True, 0)]


def example(name, *words):
    """The output of a program of docs/examples."""
    return output(sys.executable, EXAMPLES / name, *words, timeout=300)

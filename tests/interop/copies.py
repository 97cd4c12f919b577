"""One program in three frameworks, and every allocation and copy of it, before and after. A frame
of the application's goes into a model, and the model's result into the buffer of an accelerator.

Before, it is as a framework's manual has it: set_input, run, get_output, and a copy into the
buffer. After, frame and result are Contigo's buffers, which the framework takes by DLPack.

Counted are calls of at least LARGE bytes, by copies.c, which must be preloaded; counted.py does so.
The frameworks' own profilers are asked in runs of their own, because PyTorch copies by loops, which
are no calls: its copies are both. `known` is one copy of each framework, which must be found. It
prints one JSON value.
"""

import ctypes
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import contigo
import numpy as np

SHAPE = (512, 512)
#: A frame has 1 MiB, and nothing else here a sixteenth of it.
LARGE = 65536


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("allocations", "allocated_bytes", "copies", "copied_bytes")]


PRELOADED = ctypes.CDLL(None)
PRELOADED.copies_begin.argtypes = [ctypes.c_size_t]
PRELOADED.copies_end.argtypes = [ctypes.c_void_p]


class Copier:
    """An accelerator of the simulated board, its memory, and three buffers of it."""

    def __init__(self):
        device = contigo.Device("sim:zdma")
        self.region = device.memory("sim", 4 << 20)
        self.engine = device.driver("zdma")
        self.frame, self.result, self.seen = (self.region.allocate(SHAPE, "float32") for _ in range(3))

    def reads(self, expected):
        """The accelerator finds the model's result in its operand. The simulated board moves bytes
        for its caches and its engine, so nothing is counted here."""
        self.engine.start([self.result, self.seen]).wait(timeout=5.0)
        assert (np.asarray(self.seen) == expected).all()
        np.asarray(self.seen)[:] = 0
        np.asarray(self.result)[:] = 0


def counted(work):
    """The allocations and copies of `work`, in a run that is not its first: pools are full then."""
    work()
    work()
    counts = Counts()
    PRELOADED.copies_begin(LARGE)
    work()
    PRELOADED.copies_end(ctypes.byref(counts))
    return {name: getattr(counts, name) for name, _ in Counts._fields_}


class Tvm:
    """Relax's virtual machine, by LLVM: the graph executor is gone."""

    def __init__(self, copier):
        import tvm
        from tvm import relax, te

        self.tvm, self.copier = tvm, copier
        self.name = f"TVM {tvm.__version__}"
        tensor = relax.TensorType(SHAPE, "float32")
        x = te.placeholder(SHAPE, "float32", name="x")
        y = te.compute(SHAPE, lambda i, j: te.max(x[i, j], 0.0), name="y")
        builder = relax.BlockBuilder()
        kernel = builder.add_func(te.create_prim_func([x, y]).with_attr("global_symbol", "relu"), "relu")
        given = relax.Var("given", tensor)
        with builder.function("main", [given]):
            builder.emit_func_output(builder.emit(relax.call_tir(kernel, relax.Tuple([given]), tensor)))
        given, out = relax.Var("given", tensor), relax.Var("out", tensor)
        with builder.function("into", [given, out], pure=False):
            builder.emit_func_output(builder.emit(relax.op.call_tir_inplace(kernel, relax.Tuple([given, out]), [1], tensor)))
        with builder.function("idle", []):
            builder.emit_func_output(relax.prim_value(0))
        self.machine = relax.VirtualMachine(tvm.compile(builder.get(), target="llvm"), tvm.cpu())

    def known(self, frame):
        self.tvm.runtime.tensor(frame)

    def before(self, frame):
        self.machine.set_input("main", frame)
        self.machine.invoke_stateful("main")
        np.asarray(self.copier.result)[:] = self.machine.get_outputs("main").numpy()

    def after(self):
        take = self.tvm.runtime.from_dlpack
        self.machine["into"](take(self.copier.frame), take(self.copier.result))
        # A machine keeps the tensors of its last call, and no device may have these meanwhile.
        self.machine["idle"]()

    def profiled(self, work):
        """The machine's calls that make a tensor, or move one to another device, by its instrument.
        (`profile` is in builds with the profiler, and the wheels are not.)"""
        calls = Counter()

        def see(func, name, before_run, returned, *args):
            calls[name] += bool(before_run)
            return 0

        self.machine.set_instrument(see)
        work()
        self.machine.set_instrument(lambda *_: 0)
        return {name: calls[f"vm.builtin.{name}"] for name in ("alloc_storage", "alloc_tensor", "to_device")}


class Torch:
    def __init__(self, copier):
        import torch

        self.torch, self.copier = torch, copier
        self.name = f"PyTorch {torch.__version__.split('+')[0]}"

    def known(self, frame):
        self.torch.tensor(frame)

    def before(self, frame):
        y = self.torch.relu(self.torch.tensor(frame))
        np.asarray(self.copier.result)[:] = y.numpy()

    def after(self):
        x, y = self.torch.from_dlpack(self.copier.frame), self.torch.from_dlpack(self.copier.result)
        self.torch.clamp(x, min=0, out=y)

    def profiled(self, work):
        """PyTorch's operators that copy, and the bytes that it allocated."""
        profiler = self.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            work()
        counts = {event.key: event.count for event in profile.key_averages()}
        allocated = sum(max(event.self_cpu_memory_usage, 0) for event in profile.key_averages())
        return {**{name: counts.get(name, 0) for name in ("aten::copy_", "aten::_to_copy")}, "bytes allocated": allocated}


class Onnx:
    def __init__(self, copier):
        import onnxruntime
        from onnx import TensorProto, helper

        self.runtime, self.copier = onnxruntime, copier
        self.name = f"ONNX Runtime {onnxruntime.__version__}"
        info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [info("x")], [info("y")])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
        self.session = self.opened(onnxruntime.SessionOptions())

    def opened(self, options):
        return self.runtime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])

    def known(self, frame):
        self.runtime.OrtValue.ortvalue_from_numpy(frame).numpy()

    def before(self, frame):
        (y,) = self.session.run(None, {"x": frame})
        np.asarray(self.copier.result)[:] = y

    def after(self):
        binding = self.session.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, SHAPE, np.asarray(self.copier.frame).ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, SHAPE, np.asarray(self.copier.result).ctypes.data)
        self.session.run_with_iobinding(binding)

    def profiled(self, work):
        """The nodes that ran, and those of them that move a tensor from one device to another."""
        kept, options = self.session, self.runtime.SessionOptions()
        with tempfile.TemporaryDirectory() as folder:
            options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "run")
            self.session = self.opened(options)
            work()
            events = json.loads(Path(self.session.end_profiling()).read_text())
        self.session = kept
        nodes = [event["args"]["op_name"] for event in events if event.get("cat") == "Node" and "op_name" in event["args"]]
        return {"nodes": len(nodes), "Memcpy nodes": sum(name.startswith("Memcpy") for name in nodes)}


def measured(framework, frame):
    """The framework's row: counts before and after, and what its profiler says of each."""
    copier, expected = framework.copier, np.maximum(frame, 0)
    row = {"framework": framework.name}

    def look(name, work):
        row[name], row[f"own {name}"] = counted(work), framework.profiled(work)

    look("known", lambda: framework.known(frame))
    look("before", lambda: framework.before(frame))
    copier.reads(expected)
    # As a camera does it, and no copy of the program's: the frame arrives in its buffer.
    np.asarray(copier.frame)[:] = frame
    audit = copier.region.stats()["bytes_copied"]
    look("after", framework.after)
    copier.reads(expected)
    row["audit after"] = copier.region.stats()["bytes_copied"] - audit
    return row


FRAMEWORKS = {"tvm": Tvm, "torch": Torch, "onnxruntime": Onnx}


def main():
    frame = np.linspace(-1, 1, SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
    copier = Copier()
    print(json.dumps([measured(FRAMEWORKS[name](copier), frame) for name in sys.argv[1:]]))


if __name__ == "__main__":
    main()

"""docs/gpus.md: TVM compiles a layer to OpenCL C, and
Contigo launches it. It wants a driver of OpenCL, which pocl is for the CPU."""

import re

import contigo
import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.s_tir import dlight

x, w = relax.Var("x", relax.TensorType((64, 256), "float32")), relax.Var("w", relax.TensorType((256, 128), "float32"))
builder = relax.BlockBuilder()
with builder.function("main", [x, w]):
    with builder.dataflow():
        y = builder.emit_output(relax.op.nn.relu(builder.emit(relax.op.matmul(x, w))))
    builder.emit_func_output(y)

with tvm.target.Target("opencl", host="llvm") as target:
    model = relax.get_pipeline("zero")(builder.get())   # matmul and relu become one function
    model = dlight.ApplyDefaultSchedule(dlight.gpu.Matmul(), dlight.gpu.Fallback())(model)
    (layer,) = [each for each in model.functions.values() if isinstance(each, tirx.PrimFunc)]
    built = tvm.compile(layer.with_attr("global_symbol", "layer"), target=target)
source = built.mod.imports[0].inspect_source()          # OpenCL C, which TVM's wheel writes

sizes = {}                                              # of the launch: the loops that TVM bound to threads


def see(loop):
    if loop.thread_binding is not None:
        sizes[loop.thread_binding.thread_tag] = int(loop.extent)


tvm_ffi.structural_walk(layer.body, (tirx.For, see))
grid, block = ([sizes.get(f"{kind}.{axis}", 1) for axis in "xyz"] for kind in ("blockIdx", "threadIdx"))
(arguments,) = re.findall(r"layer_kernel\((.*)\) {", source)
names = re.findall(r"(\w+)_ptr\b", arguments)           # TVM has an order of its own for them

gpu = contigo.Device("opencl")
region = gpu.memory("opencl", 1 << 20)
given, weights, result = (region.allocate(shape, "float32") for shape in ((64, 256), (256, 128), (64, 128)))
numbers = np.random.default_rng(7)
np.asarray(given)[:] = numbers.standard_normal((64, 256))   # here a camera or a core writes
np.asarray(weights)[:] = numbers.standard_normal((256, 128))

buffers = [{"x": given, "w": weights}.get(name, result) for name in names]
run = gpu.function(source.encode(), "layer_kernel",
                   {name: "reads" if name in ("x", "w") else "writes" for name in names},
                   lengths={name: str(buffer.nbytes) for name, buffer in zip(names, buffers)})
run(*buffers, grid=grid, block=block)
wrong = np.abs(np.asarray(result) - np.maximum(np.asarray(given) @ np.asarray(weights), 0)).max()
print(f"max error {wrong:.6f}, bytes copied {region.stats()['bytes_copied']}")

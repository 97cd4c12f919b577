"""docs/frameworks.md: a model of TVM's virtual machine gives its
result to an accelerator, with three copies, and with none."""

import contigo
import numpy as np
import tvm
from tvm import relax, te

device = contigo.Device("sim:zdma")
region = device.memory("sim", 4 << 20)
frame, result, seen = (region.allocate((512, 512), "float32") for _ in range(3))

tensor = relax.TensorType((512, 512), "float32")
x = te.placeholder((512, 512), "float32", name="x")
y = te.compute((512, 512), lambda i, j: te.max(x[i, j], 0.0), name="y")
builder = relax.BlockBuilder()
relu = builder.add_func(te.create_prim_func([x, y]).with_attr("global_symbol", "relu"), "relu")
given, out = relax.Var("given", tensor), relax.Var("out", tensor)
with builder.function("main", [given]):                 # TVM allocates the result
    builder.emit_func_output(builder.emit(relax.call_tir(relu, relax.Tuple([given]), tensor)))
with builder.function("into", [given, out], pure=False):    # the caller has its place
    builder.emit_func_output(builder.emit(relax.op.call_tir_inplace(relu, relax.Tuple([given, out]), [1], tensor)))
with builder.function("idle", []):
    builder.emit_func_output(relax.prim_value(0))
model = relax.VirtualMachine(tvm.compile(builder.get(), target="llvm"), tvm.cpu())


def before(array):
    model.set_input("main", array)                      # allocates a tensor, and copies
    model.invoke_stateful("main")
    answer = model.get_outputs("main").numpy()          # allocates an array, and copies
    np.asarray(result)[:] = answer                      # copies: the accelerator's buffer


def after():
    lent, place = tvm.runtime.from_dlpack(frame), tvm.runtime.from_dlpack(result)
    model["into"](lent, place)
    del lent, place
    model["idle"]()                                     # the model lets go of its last tensors


array = np.linspace(-1, 1, 512 * 512, dtype=np.float32).reshape(512, 512)
np.asarray(frame)[:] = array                            # here a camera or a core writes
with device.driver("zdma") as engine:
    for run in (lambda: before(array), after):
        run()
        engine.start([result, seen]).wait(timeout=5.0)
        assert (np.asarray(seen) == np.maximum(array, 0)).all()
        np.asarray(result)[:], np.asarray(seen)[:] = 0, 0
print(f"the accelerator saw both results, bytes copied by the runtime: {region.stats()['bytes_copied']}")

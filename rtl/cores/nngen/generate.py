"""Makes the demo's network as an accelerator in Verilog, by NNgen, into the folder given.

The weights are the ones of examples/gemm8/data: 64 inputs, 32 hidden values with ReLU and a
rounding shift to int8, 16 scores in int32. The files: mlp.v is the core, mlp.bin its weights as it
wants them in memory. Both are the same each time, byte for byte.
"""

import pathlib
import sys

import nngen as ng
import numpy as np

DATA = pathlib.Path(__file__).parents[3] / "examples/gemm8/data/digits-mlp.txt"
# Each array in memory is whole cache lines, so that no line has two owners.
LINE_BYTES = 64


def records(text):
    """The arrays of the file, by name."""
    lines = iter(line for line in text.splitlines() if line and not line.startswith("#"))
    found = {}
    for line in lines:
        name, *shape = line.split()
        rows = int(shape[0]) if len(shape) == 2 else 1
        found[name] = np.array([[int(field) for field in next(lines).split()] for _ in range(rows)], dtype=np.int64)
    return found


def main(folder):
    data = records(DATA.read_text())
    shift = int(data["layer1.shift"].ravel()[0])
    x = ng.placeholder(ng.int8, shape=(1, 64), name="x")
    weights = [ng.variable(ng.int8, shape=shape, name=name) for name, shape in (("w1", (32, 64)), ("w2", (16, 32)))]
    biases = [ng.variable(ng.int32, shape=shape, name=name) for name, shape in (("b1", (32,)), ("b2", (16,)))]
    sums = {"transposed_b": True, "mul_dtype": ng.int32, "sum_dtype": ng.int32}
    hidden = ng.matmul(x, weights[0], bias=biases[0], act_func=ng.relu, dtype=ng.int8, name="hidden", **sums)
    y = ng.matmul(hidden, weights[1], bias=biases[1], dtype=ng.int32, name="y", **sums)
    for layer, (weight, bias) in enumerate(zip(weights, biases), 1):
        weight.set_value(data[f"layer{layer}.weights"].T)
        bias.set_value(data[f"layer{layer}.bias"].ravel())
    hidden.attribute(cshamt_out=shift)
    y.attribute(cshamt_out=0)
    ng.to_verilog([y], "mlp", filename=str(folder / "mlp.v"), config={"maxi_datawidth": 32})
    ng.export_ndarray([y], LINE_BYTES).tofile(folder / "mlp.bin")


main(pathlib.Path(sys.argv[1]))

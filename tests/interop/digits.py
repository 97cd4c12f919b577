"""The demo's digits on gemm8, an int8 matrix engine, with a framework's tensors as its operands:
`digits.py tvm`, or `torch`.

interop.py runs it in a process of its own, with the build of `own/`, which registers the engine's
driver. It prints rows of the table.
"""

import json
import sys

import contigo
import numpy as np
from common import ROOT

DATA = ROOT / "examples" / "gemm8" / "data"
#: MODE (examples/gemm8/README.md): the bits above the shift.
RELU, RAW = 1 << 8, 1 << 9
PIXELS, HIDDEN, SCORES, CLASSES = 64, 32, 16, 10


class Tvm:
    name = "TVM"

    def __init__(self):
        from tvm import runtime

        self.tensor = runtime.from_dlpack

    def fill(self, tensor, numbers):
        tensor.copyfrom(numbers)

    def numbers(self, tensor):
        return tensor.numpy()

    def layer1(self, shift, pixels, weights, bias, out):
        import tvm
        from tvm import te

        count = pixels.shape[0]
        x, w, b = te.placeholder((count, PIXELS), "int8"), te.placeholder((PIXELS, HIDDEN), "int8"), te.placeholder((HIDDEN,), "int32")
        k = te.reduce_axis((0, PIXELS))
        sums = te.compute((count, HIDDEN), lambda i, j: te.sum(x[i, k].astype("int32") * w[k, j].astype("int32"), axis=k))
        relu = te.compute((count, HIDDEN), lambda i, j: te.max(sums[i, j] + b[j], tvm.tirx.const(0, "int32")))
        rounded = te.compute(
            (count, HIDDEN), lambda i, j: te.min((relu[i, j] + (1 << (shift - 1))) >> shift, tvm.tirx.const(127, "int32")).astype("int8")
        )
        tvm.compile(te.create_prim_func([x, w, b, rounded]), target="llvm")(pixels, weights, bias, out)


class Torch:
    name = "PyTorch"

    def __init__(self):
        import torch

        self.torch, self.tensor = torch, torch.from_dlpack

    def fill(self, tensor, numbers):
        tensor.copy_(self.torch.from_numpy(numbers))

    def numbers(self, tensor):
        return tensor.numpy().copy()

    def layer1(self, shift, pixels, weights, bias, out):
        sums = self.torch.addmm(bias, pixels.int(), weights.int()).relu_()
        out.copy_(((sums + (1 << (shift - 1))) >> shift).clamp_(max=127))


def network(path):
    """The demo's network: records of a name, a size, and numbers."""
    found, rows = {}, iter(line for line in path.read_text().splitlines() if not line.startswith("#"))
    for head in rows:
        name, *size = head.split()
        size = [int(n) for n in size]
        count = size[0] if len(size) == 2 else 1
        numbers = [int(n) for _ in range(count) for n in next(rows).split()]
        found[name] = np.array(numbers).reshape(size)
    return found


class Digits:
    """The digits, each layer's results in NumPy's integers, and the engine with its weights."""

    def __init__(self, framework):
        net, held_out = network(DATA / "digits-mlp.txt"), np.loadtxt(DATA / "optdigits.csv", delimiter=",", dtype=np.int64)[900:]
        self.images, self.labels = held_out[:, :PIXELS].astype(np.int8), held_out[:, PIXELS]
        self.count, self.shift = len(held_out), int(net["layer1.shift"][0])
        sums = np.maximum(self.images.astype(int) @ net["layer1.weights"] + net["layer1.bias"], 0)
        self.hidden = np.clip((sums + (1 << (self.shift - 1))) >> self.shift, -128, 127)
        self.scores = self.hidden @ net["layer2.weights"] + net["layer2.bias"]
        self.framework, self.pointers = framework, []
        device = contigo.Device("sim:gemm8")
        self.region, self.engine = device.memory("sim"), device.driver("gemm8")
        self.layers = [(self.filled(net[f"layer{n}.weights"], "int8"), self.filled(net[f"layer{n}.bias"], "int32")) for n in (1, 2)]

    def tensor(self, buf):
        """The framework's tensor of a buffer, with the buffer's pointer."""
        tensor = self.framework.tensor(buf)
        self.pointers.append(np.from_dlpack(tensor).ctypes.data == np.asarray(buf).ctypes.data)
        return tensor

    def filled(self, numbers, dtype):
        """A buffer that the framework wrote."""
        buf = self.region.allocate(numbers.shape, dtype)
        self.framework.fill(self.tensor(buf), numbers.astype(dtype))
        return buf

    def layer(self, number, rows, given, result):
        """Layer 1 or 2 of so many rows, by the engine: these very buffers are its operands."""
        (n, k), mode = {1: (HIDDEN, PIXELS), 2: (SCORES, HIDDEN)}[number], {1: RELU | self.shift, 2: RAW}[number]
        weights, bias = self.layers[number - 1]
        self.engine.start([given, weights, bias, result], rows, n, k, mode).wait(timeout=1.0)

    def row(self, way, scores):
        """These scores, bit for bit: a row of the table."""
        assert (scores == self.scores).all(), "the scores, bit for bit"
        right = int((scores[:, :CLASSES].argmax(axis=1) == self.labels).sum())
        assert right == 869, right
        same, self.pointers = all(self.pointers), []
        return f"{way} → {self.count} digits, {right} right", 256, same, self.region.stats()["bytes_copied"]


def first_layer_by_the_framework(digits):
    """The framework's kernel writes what the engine reads."""
    pixels, between = digits.filled(digits.images, "int8"), digits.region.allocate((digits.count, HIDDEN), "int8")
    scores = digits.region.allocate((digits.count, SCORES), "int32")
    digits.framework.layer1(digits.shift, *[digits.tensor(buf) for buf in (pixels, *digits.layers[0], between)])
    assert (np.asarray(between) == digits.hidden).all(), "the framework's layer, bit for bit"
    digits.layer(2, digits.count, between, scores)
    return digits.row("→ gemm8", digits.framework.numbers(digits.tensor(scores)))


def both_layers_by_the_engine(digits):
    """As the demo: an image at a time, two jobs each. The engine reads and writes the framework's
    tensors."""
    image, hidden = digits.region.allocate((1, PIXELS), "int8"), digits.region.allocate((1, HIDDEN), "int8")
    scores, seen = digits.region.allocate((1, SCORES), "int32"), []
    before = digits.engine.counts["completed"]
    for pixels in digits.images:
        digits.framework.fill(digits.tensor(image), pixels[None])
        digits.layer(1, 1, image, hidden)
        digits.layer(2, 1, hidden, scores)
        seen.append(digits.framework.numbers(digits.tensor(scores)))
    assert digits.engine.counts["completed"] - before == 2 * 897
    return digits.row("→ gemm8 → gemm8", np.concatenate(seen))


def main():
    digits = Digits({"tvm": Tvm, "torch": Torch}[sys.argv[1]]())
    ways = [first_layer_by_the_framework, both_layers_by_the_engine]
    print(json.dumps([(digits.framework.name, *way(digits)) for way in ways]))


if __name__ == "__main__":
    main()

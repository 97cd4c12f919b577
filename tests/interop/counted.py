"""The allocations and copies of three frameworks in one program, before and after: copies.py, with
the counting library of copies.c, and under a tool for NVTX."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Skipped, output

HERE = Path(__file__).parent
#: Of a frame.
MIB = 1 << 20


def library(folder):
    """The counting library."""
    if not shutil.which("cc"):
        raise Skipped("there is no C compiler (cc)")
    # A compiler that knows memcpy would make it call itself.
    options = "-std=gnu11 -O2 -fno-builtin -Wall -Wextra -Werror -shared -fPIC".split()
    built = Path(folder) / "libcopies.so"
    subprocess.run(["cc", *options, "-o", built, HERE / "copies.c", "-ldl"], check=True)
    return built


def rows(frameworks, environment):
    """The rows of copies.py."""
    with tempfile.TemporaryDirectory(prefix="contigo-copies-") as folder:
        environment = {**os.environ, "LD_PRELOAD": str(library(folder)), **environment}
        return json.loads(output(sys.executable, HERE / "copies.py", *frameworks, env=environment))


def copies(row, when):
    """Calls, and PyTorch's own copies, which are none: one that is known is found once."""
    return row[when]["copies"] + row[f"own {when}"].get("aten::copy_", 0)


def shown(row):
    """A line of the page's table."""
    cells = [row["framework"]]
    for when in ("before", "after"):
        cells += [row[when]["allocations"], copies(row, when)]
    print("| " + " | ".join(str(cell) for cell in cells) + f" | {row['own before']} → {row['own after']} |", file=sys.stderr)


def checked(row):
    name, known, before, after = row["framework"], row["known"], row["before"], row["after"]
    # ONNX Runtime takes and gives NumPy's arrays as they are.
    once = 0 if name.startswith("ONNX") else 1
    assert copies(row, "known") == once and known["copied_bytes"] in (0, MIB), row
    assert copies(row, "before") >= 1 and before["copied_bytes"] == MIB * before["copies"], row
    assert (after["allocations"], copies(row, "after"), after["copied_bytes"], row["audit after"]) == (0, 0, 0, 0), row
    made = [row["own after"].get(what, 0) for what in ("alloc_storage", "alloc_tensor", "to_device", "aten::_to_copy", "bytes allocated", "Memcpy nodes")]
    assert not any(made), row
    shown(row)
    return (name, f"copies before: {copies(row, 'before')}, after: {copies(row, 'after')}", 256, "the device read it", after["copied_bytes"])


def test_no_framework_copies():
    """The last column is 0 where frame and result are Contigo's buffers."""
    return [checked(row) for row in rows(["tvm", "onnxruntime"], {})]


def test_pytorch_does_not_copy():
    if why := os.environ.get("CONTIGO_NO_PYTORCH"):
        raise Skipped(why)
    return [checked(row) for row in rows(["torch"], {})]


def test_a_tool_for_nvtx_hears_the_package():
    """The accelerator's jobs are ranges beside the framework, and no copy is among them."""
    tool = os.environ.get("CONTIGO_NVTX_LINES")
    if not tool:
        raise Skipped("CONTIGO_NVTX_LINES names no tool (tests/interop/run builds one)")
    with tempfile.TemporaryDirectory(prefix="contigo-nvtx-") as folder:
        said = Path(folder) / "lines"
        rows(["onnxruntime"], {"NVTX_INJECTION64_PATH": tool, "NVTX_LINES": str(said)})
        lines = [line.split() for line in said.read_text().splitlines()]
    verbs = [verb.split(":")[0] for _, verb, *_ in lines]
    # The accelerator looks at the result twice.
    assert (verbs.count("start"), verbs.count("end")) == (2, 2), lines
    assert {name for _, verb, _, name, _ in lines if verb.startswith("start")} == {"job_on_sim-hp0"}, lines
    assert not [line for line in lines if line[3] == "copy"], lines

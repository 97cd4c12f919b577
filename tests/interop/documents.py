"""The programs that documents quote run: `docs/examples/*.py`."""

import ast
import os
import shutil
import sys
import tempfile
from pathlib import Path

import contigo
from common import ROOT, output
from counted import library

PROGRAMS = ROOT / "docs" / "examples"
#: They want a GPU, a board whose kernel stops a core, or what a program has of its own.
COMPILED = {"accelerator_board.py", "board.py", "copies_cuda.py", "gpu.py", "hand_over.py", "opencl.py", "package.py", "pinned_tensor.py"}
COMPILED |= {"tvm_opencl.py", "vulkan.py"}
#: With the counter: the program that has no copy left.
COUNTED = "\nafter: {'allocations': 0, 'allocated_bytes': 0, 'copies': 0, 'copied_bytes': 0}\n"


def names_exist(program, source):
    """Each `contigo.NAME` is one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "contigo":
            assert hasattr(contigo, node.attr), f"{program}: there is no contigo.{node.attr}"


def test_programs_of_documents_run():
    """Beside the files that they open."""
    programs = sorted(PROGRAMS.glob("*.py"))
    assert len(programs) > 3, programs
    with tempfile.TemporaryDirectory() as folder:
        for beside in PROGRAMS.iterdir():
            shutil.copy(beside, folder)
        for program in programs:
            source = program.read_text(encoding="utf-8")
            names_exist(program.name, source)
            if program.name in COMPILED:
                continue
            Path(folder, program.name).write_text(source, encoding="utf-8")
            is_counted = program.name == "count_copies.py" and shutil.which("cc")
            environment = {**os.environ, "LD_PRELOAD": str(library(folder))} if is_counted else os.environ
            said = output(sys.executable, program.name, cwd=folder, env=environment)
            assert not is_counted or COUNTED in said, said

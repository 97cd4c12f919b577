"""The wheel of a board, and the examples: here, and in a board's Python."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import contigo
from common import ROOT, Skipped, output

EXAMPLES = sorted((ROOT / "bindings" / "python" / "examples").glob("*.py"))


def test_examples_run():
    """Each checks what it says, and its last line reports that all cells have run."""
    for example in EXAMPLES:
        said = output(sys.executable, example)
        assert said.endswith("all cells have run\n"), f"{example.name}: {said}"
        without = [line for line in said.splitlines() if line.endswith("skipped")]
        assert not without, f"{example.name}: {without}"
    assert EXAMPLES, "no examples"


@functools.cache
def board_wheel():
    """For armv7, whose words have 32 bits; in a folder that goes with this process."""
    folder = tempfile.TemporaryDirectory(prefix="contigo-wheel-")
    # maturin is beside this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [str(ROOT / "bindings" / "python" / "build-wheels"), "--out", folder.name, "armv7-unknown-linux-gnueabihf"]
    built = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, "PATH": path, "PYTHONPATH": ""})
    if built.returncode == 3:
        raise Skipped(built.stderr.strip().splitlines()[-1])
    assert built.returncode == 0, built.stderr
    (wheel,) = Path(folder.name).iterdir()
    return folder, wheel


def test_a_wheel_for_a_board():
    """The wheel's content, its processor, and the glibc that it wants."""
    wheel = board_wheel()[1]
    assert wheel.name == f"contigo-{contigo.__version__}-cp39-abi3-manylinux_2_27_armv7l.whl", wheel.name
    with zipfile.ZipFile(wheel) as files:
        info = f"contigo-{contigo.__version__}.dist-info"
        names = ["__init__.py", "_contigo.abi3.so", "_contigo.pyi", "channels.py", "cores.py", "device.py", "errors.py"]
        names += ["kernel.py", "overlay.py", "py.typed", "queues.py", "simulation.py", "streams.py"]
        code = {f"contigo/{name}" for name in names}
        papers = {f"{info}/{name}" for name in ["METADATA", "RECORD", "WHEEL", "licenses/LICENSE-APACHE", "licenses/LICENSE-MIT"]}
        assert set(files.namelist()) == code | papers, files.namelist()
        assert b"Tag: cp39-abi3-manylinux_2_27_armv7l\n" in files.read(f"{info}/WHEEL")
        library = files.read("contigo/_contigo.abi3.so")
    # ELF, 32 bits, little endian; e_machine 40 is ARM.
    assert library[:6] == b"\x7fELF\x01\x01" and int.from_bytes(library[18:20], "little") == 40, library[:20]
    needed = {tuple(map(int, version)) for version in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    assert needed and max(needed) <= (2, 27), needed
    here = [folder for folder in (Path.home(), ROOT) if f"{folder}/".encode() in library]
    assert not here, f"the library names {here}"


def test_a_board_runs_the_examples():
    """The wheel in Debian's Python for armv7, under qemu-user."""
    folder, wheel = board_wheel()
    root, emulator = os.environ.get("CONTIGO_BOARD_PYTHON"), shutil.which("qemu-arm-static")
    if not emulator:
        raise Skipped("qemu-arm-static is not installed: `cargo cross setup` gets it")
    if not root:
        raise Skipped(os.environ.get("CONTIGO_NO_BOARD_PYTHON", "CONTIGO_BOARD_PYTHON names no Python"))
    site = Path(folder.name) / "site"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)
    libraries = f"{root}/usr/lib/arm-linux-gnueabihf"
    env = {
        "PYTHONHOME": f"{root}/usr",
        "PYTHONPATH": f"{site}:{root}/usr/lib/python3/dist-packages",
        "LD_LIBRARY_PATH": f"{libraries}/blas:{libraries}/lapack",
    }
    for example in EXAMPLES:
        said = output(emulator, "-L", root, f"{root}/usr/bin/python3", example, timeout=300, env=env)
        assert said.endswith("all cells have run\n"), f"{example.name}: {said}"

"""Drivers in shared libraries: the example in C, which loaded.c loads too, and the one in Rust."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import contigo
import numpy as np
from common import refused

CAPI = Path(__file__).resolve().parents[2] / "bindings" / "c"


def compiled(folder, source, *options):
    library = Path(folder) / f"lib{Path(source).stem}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", CAPI / "include", *options, "-o", library, source], check=True)
    return library


def copies(device, name, **options):
    """A hundred jobs of the driver `name` on a new engine."""
    region = device.memory("sim", 64 * 1024)
    a, b = region.allocate(1024, "int32"), region.allocate(1024, "int32")
    with device.driver(name, **options) as engine:
        for job in range(100):
            a[:] = job
            engine.start([a, b]).wait(timeout=1.0)
            assert (np.asarray(b) == job).all()
    assert device.simulated["unowned_accesses"] == 0


def test_a_driver_in_c_is_loaded():
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder, CAPI / "examples" / "copier.c")
        before = os.getcwd()
        os.chdir(folder)
        try:
            assert contigo.load_driver("libcopier.so") == "copier", "a name without a folder is a file here"
        finally:
            os.chdir(before)
        assert contigo.load_driver(library) == "copier", "again, by a Path"
        with contigo.Device("sim:ap_ctrl") as device:
            copies(device, "copier")
            copies(device, "copier", stop_us=500)
            refused(contigo.ArgumentError, lambda: device.driver("copier", stop_us=0), "stop_us")
            refused(contigo.ArgumentError, lambda: device.driver("copier", speed=3), "speed")
        # Another file with the driver of that name: a new build.
        Path(folder, "again").mkdir()
        second = compiled(Path(folder, "again"), CAPI / "examples" / "copier.c")
        refused(contigo.ArgumentError, lambda: contigo.load_driver(second), "there is a driver copier already", "new process")
        refused(contigo.NotFoundError, lambda: contigo.load_driver("libnone.so"), "libnone.so: cannot open shared object file")
        refused(contigo.NotFoundError, lambda: contigo.load_driver(sys.executable), "python")


def test_a_driver_in_rust_is_loaded():
    assert contigo.load_driver(os.environ["CONTIGO_COPIER"]) == "my-copier"
    with contigo.Device("sim:zdma") as device:
        copies(device, "my-copier")

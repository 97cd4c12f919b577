"""The names of 0.1, for this release."""

import os
import sys
import warnings
from pathlib import Path

_HERE = str(Path(__file__).parent) + os.sep


def renamed(old, new):
    """A DeprecationWarning, for the line that calls this package."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{old} is an old name, for this release: write {new}", DeprecationWarning, stacklevel=level)

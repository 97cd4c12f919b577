"""A file that the program names: a regular one, and no longer than its kind is."""

import os
import stat

from .errors import ArgumentError

#: The readers take no more: what Vivado writes of the largest design is a few MiB.
_MOST_BYTES = 32 << 20


def read(path):
    """The bytes of the file. A pipe, which would be waited for, and a device are refused."""
    _check(path, os.stat(path))
    with open(path, "rb", opener=_opened) as file:
        _check(path, os.stat(file.fileno()))  # another file may have taken its place since
        source = file.read(_MOST_BYTES + 1)
    if len(source) > _MOST_BYTES:
        raise _too_long(path, len(source))
    return source


def _opened(path, flags):
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _check(path, about):
    # A folder is refused by Python itself, as IsADirectoryError.
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        raise ArgumentError(f"{os.fspath(path)}: it is no file, but a pipe or a device: give a regular file")
    if about.st_size > _MOST_BYTES:
        raise _too_long(path, about.st_size)


def _too_long(path, found):
    return ArgumentError(f"{os.fspath(path)}: it has {found} bytes, and no design or kernel's map has more than {_MOST_BYTES}")

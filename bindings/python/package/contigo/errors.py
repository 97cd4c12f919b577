"""The exceptions. Each is a `ContigoError`; where Python has one of that meaning, it is that too.

`docs/errors.md` lists which error is of which class. A value that Python itself would refuse (a
float for a count, a shape that is none) is a plain `TypeError` or `ValueError`.
"""

import builtins


class ContigoError(RuntimeError):
    """Something was refused, or failed. The text says what, with its numbers, and how to go on."""

    #: The name in C without `CONTIGO_E_`, such as "BUFFER_SIZE"; "" where Python's side refused.
    code = ""
    #: Where the cause lies: "request", "memory", "port", "device" or "system"; or "".
    kind = ""
    #: `errno` is the number of errno(3), or the nearest; 0 or None where Python's side refused.


class ArgumentError(ContigoError, ValueError):
    """A number, a name or a file of the program cannot be."""


class BufferError(ContigoError, builtins.BufferError):
    """A buffer or a tensor does not suit the job, the port or the consumer."""


class MemoryError(ContigoError, builtins.MemoryError):
    """A region, a pool or a table has nothing left."""


class UnsupportedError(ContigoError):
    """This cannot be done here; the text says what can."""


class BusyError(ContigoError):
    """A job, a driver or another program has it now."""


class TimeoutError(builtins.TimeoutError, ContigoError):
    """A job did not end in time, and was stopped; or a register did not change in time."""


class DeviceError(ContigoError):
    """The device reports a fault, is another one, or will not stop."""


class PermissionError(builtins.PermissionError, ContigoError):
    """The kernel does not let this program do it; the text says what to change."""


class NotFoundError(builtins.FileNotFoundError, ContigoError):
    """No device, file or library is called that."""


class OSError(builtins.OSError, ContigoError):
    """A system call failed, or the machine is not set up for this."""


class ForkedError(ContigoError):
    """This process is a child of fork: the memory and the devices are its parent's."""


# Those that are an OSError have Python's own `errno`.
for _one in (ArgumentError, BufferError, MemoryError, UnsupportedError, BusyError, DeviceError, ForkedError):
    _one.errno = 0

"""A kernel of one's own on a simulated board, computed by a function of Python's."""

from __future__ import annotations

import os
import threading
from operator import index

from . import _contigo
from .device import Device
from .kernel import KernelMap, _bits_of_float, _float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from ._contigo import Path


def simulate(
    source: KernelMap | Path | bytes,
    function: Callable[..., Any],
    *,
    dtypes: Any = "uint8",
    seed: int = 1,
    limit: float = 60.0,
    **described: Any,
) -> Device:
    """A simulated device with the HLS kernel that `source` describes and `function` computes.

        def fir(x, y, n):                           # C's arguments, in C's order
            y[:n] = 2 * x[:n]

        device = contigo.simulate("xfir_hw.h", fir, dtypes="int32")
        x, y = (device.memory("sim").allocate(100, "int32") for _ in range(2))
        device.kernel()(x, y, 100)                  # on a board: Device("contigo:fir").kernel("xfir_hw.h")

    The kernel's driver, its registers and its interrupt are as those on a board. `source` and
    `described` are `KernelMap`'s: `directions`, `lengths`, and so on.

    At each job, once it is waited for or looked at, `function` is called in a thread of its own
    with the kernel's arguments: numbers, and for a pointer an array of NumPy, of `dtypes`: one
    type, bytes where none is said, or {"x": "int32", "y": "float32"}. The array is a copy of what
    the kernel may access: by the rule in `lengths`, or as many bytes as the job was given. What the kernel only reads cannot be written. The function returns what the C function
    returns: None, a number, or a dict of the results.

    A function that raises fails its job with `DeviceError`, which has its text; so does one that
    has not returned after `limit` seconds. Its time does not count for the time limit of a call.
    Without NumPy the arrays are memoryviews. The thread ends when the device and its drivers are
    closed, or are no longer referred to, also by the function.
    """
    map = source if isinstance(source, KernelMap) else KernelMap(source, **described)
    if isinstance(source, KernelMap) and described:
        raise TypeError(f"{', '.join(described)}: a KernelMap has them already")
    compute = _Function(map, function, dtypes)
    simulation = _contigo.Simulation(map.json, seed, limit)
    device = Device(f"sim:{map.name}", _simulation=simulation)
    device.map = map
    threading.Thread(target=_serve, args=(simulation, compute), name=f"contigo {map.name}", daemon=True).start()
    return device


def _serve(simulation, compute):
    """Computes jobs until the device and its drivers are closed."""
    # A file that Python itself waits for: an interpreter that ends does not wait for this thread.
    while os.read(simulation.fileno(), 1):
        job = simulation.take()
        if job is None:
            continue
        number, scalars, operands = job
        try:
            results = compute(scalars, operands)
        except BaseException as error:  # SystemExit too: this thread computes the next job all the same
            simulation.fail(number, _text(error))
        else:
            simulation.answer(number, operands, results)
        # No array of a job's stays alive in this frame.
        del job, operands


def _text(error):
    """The exception as one line, with the line of the function that raised it."""
    import traceback  # here, because Debian's smallest Python has none

    ours = os.path.dirname(__file__)
    calls = [call for call in traceback.extract_tb(error.__traceback__) if not call.filename.startswith(ours)]
    told = "".join(traceback.format_exception_only(type(error), error)).strip()
    if calls:
        told = f"its function raised {told} ({os.path.basename(calls[-1].filename)}, line {calls[-1].lineno})"
    # A file's name may have bytes that are no text.
    return told.encode("utf-8", "backslashreplace").decode()


class _Function:
    """A function as the kernel of `map` calls it: words and bytes in, words out."""

    def __init__(self, map, function, dtypes):
        self._map, self._function = map, function
        self._name = getattr(function, "__name__", map.name)
        if not callable(function):
            raise TypeError(f"{function!r} is no function: it computes the kernel's jobs")
        names = [each["name"] for each in map.pointers]
        if isinstance(dtypes, dict) and set(dtypes) != set(names):
            wrong = ", ".join(sorted(set(dtypes) ^ set(names)))
            raise ValueError(f"dtypes: {wrong}: the pointers of {map.name} are {', '.join(names) or 'none'}, and each has a type")
        self._dtypes = [dtypes[name] if isinstance(dtypes, dict) else dtypes for name in names]
        for dtype in self._dtypes:
            _array(bytearray(), dtype, True)  # refuses an unknown type at once
        self._fits(function)

    def _fits(self, function):
        import inspect

        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return  # a function of C's has none
        try:
            signature.bind(*self._map.arguments)
        except TypeError as error:
            raise self._misfit(signature, str(error)) from None
        # By other names it is the program's business; by these, in another order, it is a slip.
        names = list(signature.parameters)
        if names != self._map.arguments and sorted(names) == sorted(self._map.arguments):
            raise self._misfit(signature, "it has them in another order")

    def _misfit(self, signature, why):
        arguments = ", ".join(self._map.arguments)
        return TypeError(f"{self._name}{signature} does not take the kernel's arguments ({arguments}): {why}")

    def __call__(self, scalars, operands):
        map, given = self._map, {}
        for each, value in zip(map.scalars, scalars):
            bits = each["bits"]
            if map.is_float(each["name"]):
                value = _float(value, bits)
            elif each.get("signed") and value >> bits - 1:
                value -= 1 << bits
            given[each["name"]] = value
        for each, dtype, data in zip(map.pointers, self._dtypes, operands):
            try:
                given[each["name"]] = _array(data, dtype, each["direction"] != "reads")
            except (ValueError, TypeError):
                raise ValueError(f"{each['name']} has {len(data)} bytes, which is no whole number of {dtype}") from None
        return self._words(self._function(*(given[name] for name in map.arguments)))

    def _words(self, returned):
        """The words of the kernel's results."""
        map, results = self._map, self._map.results
        names = [each["name"] for each in results]
        values = returned
        if returned is None and not names:
            values = {}
        elif returned is not None and len(names) == 1 and not isinstance(returned, dict):
            values = {names[0]: returned}
        if not isinstance(values, dict) or set(values) != set(names):
            raise TypeError(f"{self._name} returned {returned!r}, and the kernel returns {', '.join(names) or 'nothing'}")
        words = []
        for each in results:
            name, bits, value = each["name"], each["bits"], values[each["name"]]
            try:
                value = _bits_of_float(name, value, bits) if map.is_float(name) else index(value)
            except TypeError:
                kind = "number" if map.is_float(name) else f"integer (where C has a float: floats=[{name!r}])"
                raise TypeError(f"{self._name} returned {value!r} as {name}, which is no {kind}") from None
            if not -(1 << bits - 1) <= value < 1 << bits:
                raise ValueError(f"{self._name} returned {value} as {each['name']}, which has {bits} bits")
            value &= (1 << bits) - 1
            words += [value & 0xFFFF_FFFF] + ([value >> 32] if bits > 32 else [])
        return words + [0] * (4 - len(words))


def _array(data, dtype, writable):
    """An array over `data`: NumPy's, where it is here."""
    try:
        import numpy
    except ImportError:
        view = memoryview(data).cast(_FORMATS.get(str(dtype), str(dtype)))
        return view if writable else view.toreadonly()
    array = numpy.frombuffer(data, dtype) if data else numpy.empty(0, dtype)
    array.flags.writeable = writable
    return array


#: Names of types, as Python itself has them.
_FORMATS = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "float32": "f", "float64": "d",
}


"""HLS kernels, from the files that their tools write, and kernels of a GPU."""

from __future__ import annotations

import os
import re
import stat
from keyword import iskeyword
from operator import index

from . import _contigo
from .errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Union

    from ._contigo import Buffer, Direction, Done, Engine, Job, Operand, Path

    Argument = Union[Buffer, Operand, float]

#: A design or a map has no more bytes: what Vivado writes of the largest design is a few MiB.
_MOST_BYTES = 32 << 20
#: A kernel reads or writes a pointer's bytes: by the words of its map.
_DIRECTIONS = {"in": "reads", "out": "writes", "inout": "both"}


def read(path):
    """The bytes of a regular file. A pipe, which would be waited for, and a device are refused."""
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


class KernelMap:
    """A kernel, as a driver must know it: its pointers, numbers and results, and where each is.

    `source` is a file's name, or its bytes: JSON, Vitis HLS' `x<name>_hw.h`, or Vivado's `.hwh`
    with the `instance`'s name. The program adds the rest by the arguments' names. `directions` says
    that the kernel "reads", "writes", or does "both". `lengths` are bytes, by the kernel's numbers
    ("4*n"). `pointers` and `scalars` tell arguments apart that the file does not. A pointer of
    which nothing is said is "both", in any length. `floats` are the scalars and results that are C's
    `float` or `double`, and `signed` those that have a sign, such as C's `int`: no file says either.
    The others are integers. Results have no sign then, and a scalar takes either.
    """

    name: str
    json: str
    interrupt: bool
    arguments: list[str]
    pointers: list[dict[str, Any]]
    scalars: list[dict[str, Any]]
    results: list[dict[str, Any]]

    def __init__(
        self,
        source: Path | bytes,
        *,
        instance: str = "",
        directions: Mapping[str, Direction] | None = None,
        lengths: Mapping[str, str] | None = None,
        pointers: Iterable[str] = (),
        scalars: Iterable[str] = (),
        floats: Iterable[str] = (),
        signed: Iterable[str] = (),
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            source = read(source)
        for name, given in [("pointers", pointers), ("scalars", scalars), ("floats", floats), ("signed", signed)]:
            if isinstance(given, str):
                raise TypeError(f"{name}={given!r}: it is a list of names")
        directions, lengths, pointers, scalars = directions or {}, lengths or {}, list(pointers), list(scalars)
        try:
            self.json = _contigo._kernel_map(source, instance, directions, lengths, pointers, scalars)
        except ValueError as error:
            _misspelt(source, instance, [*directions, *lengths, *pointers, *scalars], error)
            raise
        import json  # here, because Debian's smallest Python has none

        told = json.loads(self.json)
        self.name, self.interrupt, self.results = told["name"], told["interrupt"], told["results"]
        self.pointers, self.scalars = told["pointers"], told["scalars"]
        for each in self.pointers:
            each["direction"] = _DIRECTIONS[each["direction"]]
        self.floats = frozenset(floats)
        none = self.floats - {each["name"] for each in self.scalars + self.results if each["bits"] in (32, 64)}
        if none:
            raise ValueError(f"{self.name}: {', '.join(sorted(none))} is no scalar or result of 32 or 64 bits, so it is no float")
        self.signed = frozenset(signed)
        none = self.signed - {each["name"] for each in self.results + self.scalars}
        if none:
            known = ", ".join(each["name"] for each in self.results + self.scalars) or "none"
            raise ValueError(f"{self.name}: {', '.join(sorted(none))} is none of its results and scalars ({known})")
        for each in self.scalars:
            each["signed"] = True if each["name"] in self.signed else None
        #: The arguments, in C's order: HLS puts one register after the other.
        self.arguments = [each["name"] for each in sorted(self.pointers + self.scalars, key=lambda each: each["offset"])]

    def is_float(self, name: str) -> bool:
        """Whether this scalar or result is C's `float` or `double`."""
        return name in self.floats

    @property
    def registers(self) -> dict[str, tuple[int, int]]:
        """Names for `Device(name, registers=…)`: (offset in bytes, bits)."""
        table = {"CTRL": (0x00, 32)}
        if self.interrupt:
            table.update(GIE=(0x04, 32), IER=(0x08, 32), ISR=(0x0C, 32))
        table.update((each["name"], (each["offset"], each["bits"])) for each in self.results + self.pointers + self.scalars)
        return table

    def __repr__(self):
        return f"contigo.KernelMap({self.name}({', '.join(self.arguments)}))"


def _misspelt(source, instance, names, error):
    """Refuses names that are none of the file's, with those that it has."""
    import json

    try:
        told = json.loads(_contigo._kernel_map(source, instance, {}, {}, [], []))
    except ValueError:
        return  # it is the file that is wrong
    known = [each["name"] for each in sorted(told["pointers"] + told["scalars"], key=lambda each: each["offset"])]
    for name in names:
        if name not in known:
            raise type(error)(f"{told['name']} has no argument {name!r}; it has: {', '.join(known)}") from None


def _python_names(arguments, taken):
    """{name in Python: C's}: of C's names, those that are none in Python get a `_`."""
    names = {}
    for argument in arguments:
        name = re.sub(r"\W", "_", argument)
        name = f"_{name}" if name[:1].isdigit() else name
        while iskeyword(name) or name in names or name in taken or name != argument and name in arguments:
            name += "_"
        names[name] = argument
    return names


class _SignatureOf:
    """`__signature__` of a kernel; of the class it is none."""

    def __get__(self, kernel, _class):
        if kernel is None:
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature  # here, because Debian's smallest Python has none

        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in kernel._names]
        for name, default in kernel._launch.items():
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is None else default))
        return Signature(parameters)


class Kernel:
    """An HLS kernel, called like the C function that it was made of: `kernel(a, b, out, n=1024)`.

    `device.kernel(…)` makes one. Pointers are buffers of DMA memory, or parts of them
    (`a.reads(100)`); numbers are integers, except for those that the map's `floats` name. A call
    waits `timeout` seconds at most, and returns what the kernel returned: a number, None, or a dict
    where it has several results. `await kernel.call(…)` does the same in an event loop. `start` does
    not wait: for `Job`, and for `contigo.Queue`.
    `inspect.signature(kernel)` has the arguments.
    """

    def __init__(self, engine: Engine, map: KernelMap, timeout: float = 1.0) -> None:
        self.engine, self.map = engine, map
        self.timeout: float = _contigo._seconds(timeout)
        #: The arguments by names that Python can write, where C's are others: `from_` for `from`.
        self._names = _python_names(map.arguments, self._launch)
        # Where each is among the arguments.
        at = map.arguments.index
        self._pointers = [at(each["name"]) for each in map.pointers]
        self._scalars = [(at(each["name"]), each["bits"], map.is_float(each["name"]), each.get("signed")) for each in map.scalars]

    #: What a launch says beside the arguments: nothing, but for a GPU's kernel.
    _launch = {}

    __signature__ = _SignatureOf()

    def __call__(self, *args: Argument, **named: Any) -> float | dict[str, float] | None:
        return self.returned(self.start(*args, **named).wait(self.timeout))

    async def call(self, *args: Argument, **named: Any) -> float | dict[str, float] | None:
        """A call for an event loop, whose other tasks run meanwhile: `y = await kernel.call(a, b)`."""
        from .queues import _ended

        return self.returned(await _ended(self.start(*args, **named), self.timeout))

    def start(self, *args: Argument, **named: Any) -> Job:
        """The same, as a job that is not waited for."""
        operands, words = self.job(*args, **named)
        return self.engine.start(operands, *words)

    def job(self, *args: Argument, **named: Any) -> tuple[list[Buffer | Operand], list[int]]:
        """The operands and the words that these arguments are: `queue.push(operands, *words)`."""
        if named or len(args) != len(self.map.arguments):
            args = self._in_order(args, named)
        words = []
        for at, bits, is_float, signed in self._scalars:
            words += _words(self.map.arguments[at], args[at], bits, is_float, signed)
        return [args[at] for at in self._pointers], words

    def _in_order(self, args, named):
        names = self.map.arguments
        if len(args) > len(names):
            raise TypeError(f"{self.map.name} takes {len(names)} arguments ({', '.join(names)}), and {len(args)} were given")
        given = dict(zip(names, args))
        for name, value in named.items():
            name = self._names.get(name, name)
            if name in given or name not in names:
                why = "is given twice" if name in given else f"is none of its arguments ({', '.join(names)})"
                raise TypeError(f"{self.map.name}: {name} {why}")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"{self.map.name} lacks {', '.join(missing)}")
        return [given[name] for name in names]

    def returned(self, done: Done) -> float | dict[str, float] | None:
        """The kernel's return value at the end of this job."""
        results = self.map.results
        values, words = {}, list(done.words)
        for each in results:
            name, bits, value = each["name"], each["bits"], words.pop(0)
            if bits > 32:
                value |= words.pop(0) << 32
            value &= (1 << bits) - 1
            if self.map.is_float(name):
                values[name] = _float(value, bits)
                continue
            values[name] = value - (1 << bits) if name in self.map.signed and value >> bits - 1 else value
        return values if len(values) > 1 else next(iter(values.values()), None)

    def close(self) -> None:
        """Stops the kernel and lets go of its device."""
        self.engine.close()

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *exception: Any) -> bool:
        self.close()
        return False

    def __repr__(self):
        state = "closed" if self.engine._stops is None else f"{self.engine.in_flight} in flight"
        return f"contigo.{type(self).__name__}({self.map.name}({', '.join(self.map.arguments)}), {state})"


class Function(Kernel):
    """A kernel of a GPU: `scale(a, out, 1000, 0.5, grid=4, block=256)`.

    `device.function(…)` makes one. As a `Kernel` it is called with buffers and numbers. `grid` is
    how many blocks there are and `block` how many threads a block has: a number, or one for x, y
    and z. `shared_bytes` is a block's memory.

    A call waits for its end, and `start` does not: it returns a `Job`. Several are in flight so:

        queue = contigo.Queue(scale)
        operands, words = scale.job(a, out, 1000, 0.5, grid=4)
        queue.push(operands, *words)
    """

    _launch = {"grid": None, "block": 256, "shared_bytes": 0}

    def job(  # type: ignore[override]
        self,
        *args: Argument,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...] = 256,
        shared_bytes: int = 0,
        **named: Argument,
    ) -> tuple[list[Buffer | Operand], list[int]]:
        """The operands and the words of this launch: `queue.push(operands, *words)`."""
        operands, words = super().job(*args, **named)
        launch = _xyz("grid", grid) + _xyz("block", block) + _words("shared_bytes", shared_bytes, 32, False, False)
        return operands, launch + words


#: Of a number's kind: its bits, is it a float, and has it a sign? None: as the caller's number is.
_NUMBERS = {bits: (bits, None, None) for bits in (8, 16, 32, 64)}
_NUMBERS.update((f"{sign}{bits}", (bits, False, sign == "i")) for sign in "iu" for bits in (8, 16, 32, 64))
_NUMBERS.update((f"f{bits}", (bits, True, None)) for bits in (32, 64))


class _Signature:
    """A function, as `Kernel` must know it, by its parameters: a direction, or a number's kind."""

    results, signed = (), frozenset()

    def __init__(self, name, parameters, sizes):
        self.name, self.arguments = name, list(parameters)
        self.pointers, self.scalars = [], []
        #: As the runtime has them: a direction or a count of words.
        self.given = []
        for each, kind in parameters.items():
            if kind in _DIRECTIONS.values():
                self.pointers.append({"name": each})
                self.given.append(kind)
            elif kind.__hash__ and kind in _NUMBERS:
                self.scalars.append({"name": each, **dict(zip(("bits", "float", "signed"), _NUMBERS[kind]))})
                self.given.append((self.scalars[-1]["bits"] + 31) // 32)
            else:
                kinds = f"a number is one of {', '.join(map(repr, _NUMBERS))}"
                raise ValueError(f"{name}: {each} is {kind!r}: a pointer is one of 'reads', 'writes', 'both'; {kinds}")
        self._floats = {each["name"]: each["float"] for each in self.scalars}
        #: Likewise: operand, bytes of an element, and which numbers count the elements.
        self.sizes = [self._size(each, rule) for each, rule in sizes.items()]

    def is_float(self, name):
        """Is it? None where only its bits are known: the caller's number says it."""
        return self._floats[name]

    def _size(self, name, rule):
        pointers, scalars = ([each["name"] for each in kind] for kind in (self.pointers, self.scalars))
        counting = [each for each in scalars if not self._floats[each]]
        element, counts = 1, []
        for factor in rule.split("*"):
            if factor.strip().isdecimal():
                element *= int(factor)
            elif name in pointers and factor.strip() in counting:
                counts.append(scalars.index(factor.strip()))
            else:
                raise ValueError(f"{name}: {rule!r} is no product of numbers and of {', '.join(counting)}, for one of {', '.join(pointers)}")
        return pointers.index(name), element, counts


def _xyz(name, size):
    """A launch's blocks or threads in x, y and z."""
    try:
        sizes = list(size)
    except TypeError:
        sizes = [size]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name}={size!r}: it is a number, or up to three for x, y and z")
    return [_words(name, each, 32, False, False)[0] for each in sizes] + [1] * (3 - len(sizes))


def _words(name, value, bits, is_float=None, signed=None):
    """A number in the registers of one argument, the low word first.

    `is_float` None: as the number is. `signed` None: with a sign or without, as the number is.
    """
    if not is_float and type(value) is int and bits <= 32 and value >> (bits - 1 if signed else bits) == 0:
        return [value]
    try:
        number = index(value)
    except TypeError:
        number = None
    if is_float or number is None and is_float is None:
        number = _bits_of_float(name, value, bits)
    low, high = 0 if signed is False else -(1 << bits - 1), (1 << (bits - 1 if signed else bits)) - 1
    if number is None or not low <= number <= high:
        text = f"{name}={value!r}: {name} is an integer of {bits} bits, from {low} to {high}"
        if number is None:
            floats = f", or floats=[{name!r}] where C has a float" if signed is None else ""
            raise TypeError(f"{text}: write {name}=int(…){floats}")
        raise ValueError(text)
    number &= (1 << bits) - 1
    return [number] if bits <= 32 else [number & 0xFFFF_FFFF, number >> 32]


def _float(word, bits):
    import struct

    return struct.unpack("<f" if bits == 32 else "<d", word.to_bytes(bits // 8, "little"))[0]


def _bits_of_float(name, value, bits):
    if bits not in (32, 64):
        raise TypeError(f"{name}={value!r}: {name} has {bits} bits, and is no float")
    import struct

    try:
        return int.from_bytes(struct.pack("<f" if bits == 32 else "<d", value), "little")
    except OverflowError:
        raise ValueError(f"{name}={value!r}: {name} is a float of {bits} bits, up to {'3.4e38' if bits == 32 else '1.8e308'}") from None
    except struct.error:
        raise TypeError(f"{name}={value!r}: {name} is a number") from None

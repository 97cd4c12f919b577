"""A device with the names of its registers."""

from __future__ import annotations

from weakref import WeakValueDictionary, ref

from . import _contigo
from .errors import BusyError, TimeoutError
from .kernel import Function, Kernel, KernelMap, _Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping

    from ._contigo import Direction, Number, Path, Port

#: The engine of the last kernel of each device of hardware, by the device's name. A simulated device
#: of the same name is another one.
_last_engines = WeakValueDictionary()


class Registers:
    """Registers by their names: `registers["CTRL"]` reads one, `registers["CTRL"] = 1` writes it.

    A value that has 64 bits is in two registers, the low word first. Writing is the program's
    promise, as `Device.write32` says.
    """

    def __init__(self, device: Device, table: Mapping[str, int | tuple[int, int]]) -> None:
        self._device, self._table = device, {}
        for name, at in dict(table).items():
            offset, bits = (at, 32) if isinstance(at, int) else at
            if not 1 <= bits <= 64:
                raise ValueError(f"register {name}: {bits} bits, where 1 to 64 can be")
            self._table[name] = (offset, bits)

    def offset(self, name: str) -> int:
        """Where it is, in bytes from the first register."""
        return self._at(name)[0]

    def _at(self, name):
        try:
            return self._table[name]
        except KeyError:
            known = ", ".join(self._table) or "none; use its offset in bytes, or Device(name, registers={name: offset})"
            raise KeyError(f"no register is called {name!r}; there are: {known}") from None

    def __getitem__(self, name: str) -> int:
        offset, bits = self._at(name)
        value = self._device.read32(offset)
        return value if bits <= 32 else value | self._device.read32(offset + 4) << 32

    def __setitem__(self, name: str, value: int) -> None:
        offset, bits = self._at(name)
        if not 0 <= value < 1 << bits:
            raise ValueError(f"register {name} has {bits} bits, which {value:#x} is too large for")
        self._device.write32(offset, value & 0xFFFF_FFFF)
        if bits > 32:
            self._device.write32(offset + 4, value >> 32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __repr__(self):
        return f"contigo.Registers({', '.join(f'{name}={at[0]:#x}' for name, at in self._table.items())})"


class Device(_contigo.Device):
    __doc__ = _contigo.Device.__doc__ + """
`registers` names registers: {name: offset}, or {name: (offset, bits)}; `device.registers["CTRL"]`,
and `device["CTRL"]` or `device[0x10]`, read and write them.
"""

    def __new__(cls, name, *, port=None, window=0, interrupt=False, registers=None, _simulation=None):
        return super().__new__(cls, name, port=port, window=window, interrupt=interrupt, _simulation=_simulation)

    def __init__(
        self,
        name: str,
        *,
        port: Port | None = None,
        window: int = 0,
        interrupt: bool = False,
        registers: Mapping[str, int | tuple[int, int]] | None = None,
        _simulation: Any = None,
    ) -> None:
        self.registers = Registers(self, registers or {})
        #: Of a kernel that a function computes (`contigo.simulate`): its map.
        self.map: KernelMap | None = None
        #: The engine of its last kernel, where that is still there.
        self._last = lambda: None

    def __getitem__(self, at: int | str) -> int:
        """The register at this offset in bytes, or of this name."""
        return self.read32(at) if isinstance(at, int) else self.registers[at]

    def __setitem__(self, at: int | str, value: int) -> None:
        """Writes it; `write32` says what the program promises."""
        if isinstance(at, int):
            self.write32(at, value)
        else:
            self.registers[at] = value

    # Not a sequence: `in` and `for` would read registers one after the other.
    __iter__ = None
    __contains__ = None

    def wait(self, at: int | str, value: int, mask: int = 0xFFFF_FFFF, *, timeout: float = 1.0) -> int:
        """`wait32`, of a register by its offset or its name."""
        if isinstance(at, int):
            return self.wait32(at, value, mask, timeout=timeout)
        try:
            return self.wait32(self.registers.offset(at), value, mask, timeout=timeout)
        except TimeoutError as error:
            raise TimeoutError(f"{at}: {error}") from None

    def kernel(
        self,
        source: KernelMap | Path | bytes | None = None,
        *,
        instance: str = "",
        directions: Mapping[str, Direction] | None = None,
        lengths: Mapping[str, str] | None = None,
        pointers: Iterable[str] = (),
        scalars: Iterable[str] = (),
        floats: Iterable[str] = (),
        signed: Iterable[str] = (),
        timeout: float = 1.0,
        interrupt: bool = True,
        **settings: Any,
    ) -> Kernel:
        """The HLS kernel that this device is, called like a function: `kernel(a, b, out, n=1024)`.

        `source` and what the file does not say are a `KernelMap`'s, or one of these; a device of
        `contigo.simulate` needs none. `timeout` is
        for one call, in seconds. After that the kernel is stopped. It cannot be aborted, so that
        the end of its job is waited for, half a second at most, or `stop_us=` microseconds. The
        longest job of the kernel belongs there. A kernel that has not ended then keeps its buffers.
        With a gate before it (`gate=`, as in `driver`) it is stopped at once.

        A kernel of the same device that was made before, and has no job, is closed: so a cell of a
        notebook may run again. It is closed also where the new one is refused then.

        The program promises that the map is this kernel's, and that the kernel stays inside the
        buffers that it is given. No register can prove that.
        """
        source = self.map if source is None else source
        if source is None:
            raise TypeError(f"{self.name}: a kernel is described by the file that its tool wrote: kernel(\"xfir_hw.h\")")
        map, more = source, {"instance": instance, "directions": directions, "lengths": lengths}
        more.update(pointers=pointers, scalars=scalars, floats=floats, signed=signed)
        if not isinstance(source, KernelMap):
            map = KernelMap(source, **more)
        elif any(more.values()):
            raise TypeError(f"{', '.join(each for each in more if more[each])}: a KernelMap has them already")

        def opened():
            return self.driver("ap_ctrl", map=map.json.encode(), interrupt=interrupt, **settings)

        try:
            engine = opened()
        except BusyError:
            # A notebook's cell that runs again still has the kernel of its last run.
            last = self._last() or _last_engines.get(self.name)
            if last is None or not last._close_if_idle():
                raise
            engine = opened()
        self._last = ref(engine)
        if not self.name.startswith("sim:"):
            _last_engines[self.name] = engine
        return Kernel(engine, map, timeout)

    def function(
        self,
        image: bytes | str,
        entry: str,
        parameters: Mapping[str, Direction | Number],
        *,
        lengths: Mapping[str, str] | None = None,
        timeout: float = 1.0,
    ) -> Function:
        """A kernel of a GPU, called like a function: `scale(a, out, 1000, 0.5, grid=4, block=256)`.

        `image` is the GPU's code, as bytes or a text, and is loaded once. For "cuda" it is PTX, a
        cubin or a fatbin; for "vulkan" SPIR-V; for "opencl" a text of OpenCL C. `entry` is the
        kernel's name in it, most often "main" of a shader. `parameters` are the kernel's, in their
        order: {"from": "reads", "to": "writes", "n": "u32", "by": "f32"}. For a pointer the value
        is what the kernel does with it. For a number it is the kind: "i8" to "i64", "u8" to "u64",
        "f32" or "f64". With bare bits (32) instead, the type of each call's number chooses between
        integer and float, so that 2 for a float is wrong: better say the kind.

        A shader's pointers are its storage buffers, by their bindings, and its numbers are its push
        constants. `lengths` says how many bytes an operand has at least: {"to": "4*n"}. `timeout`
        is for one call, in seconds.

        The program promises that these are the kernel's parameters, and that it stays inside the
        buffers that it is given, launched as each call says. Nothing can prove that.
        """
        if len(image) == 0:
            raise ValueError(f"{entry}: the image is empty: it is the GPU's code")
        if isinstance(image, str):
            if self.name.startswith("vulkan"):
                raise TypeError(f"{entry}: SPIR-V is bytes, and no text")
            image = image.encode()
        signature = _Signature(entry, parameters, lengths or {})
        return Function(self._function(entry, image, signature.given, signature.sizes), signature, timeout)


class MMIO(Device):
    """Registers by their address or by a device's name, as pynq's MMIO.

    `contigo.MMIO(0x40400000, 0x1000)` opens the contigo device whose registers are there: no root.
    """

    def __new__(cls, at, length=None, **how):
        return super().__new__(cls, cls._named(at), **how)

    def __init__(self, at: int | str, length: int | None = None, **how: Any) -> None:
        super().__init__(self._named(at), **how)
        if length is not None and length > self.window_bytes:
            raise ValueError(f"{self.name} has {self.window_bytes:#x} bytes of registers, and {length:#x} are asked for")

    @staticmethod
    def _named(at):
        return f"contigo:{at:x}" if isinstance(at, int) else at

    def read(self, offset: int = 0) -> int:
        return self.read32(offset)

    def write(self, offset: int, value: int) -> None:
        """`Device.write32` says what the program promises."""
        self.write32(offset, value)

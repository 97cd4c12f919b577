"""The cores of a design: their registers and their memory, and those that take jobs."""

from __future__ import annotations

from collections import Counter

from . import _contigo
from ._contigo import _seconds
from .device import Device
from .errors import ArgumentError, NotFoundError, TimeoutError, UnsupportedError
from .kernel import KernelMap
from .queues import _asleep, _readable
from .simulation import simulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._contigo import Buffer, Engine, Port, Region, Shape
    from .device import Registers

#: The size of memory in bytes, where the caller gives none.
_MEMORY_BYTES = 1 << 20


def close_all(parts):
    """Closes each, also after one that does not stop; then raises the first error."""
    first = None
    for part in parts:
        try:
            part.close()
        except Exception as error:  # the others run on otherwise
            first = first or error
    if first is not None:
        raise first


class Core:
    """A core of a design: `core["CTRL"]` is a register by its name in the file or its offset."""

    name: str
    facts: dict[str, Any]

    def __init__(self, overlay, facts):
        self.overlay, self.facts, self.name = overlay, facts, facts["path"]
        self._device = self._region = self._interrupt = None
        self._port = facts["port"]

    @property
    def port(self) -> Port | None:
        """(name, offset, address bits, coherent, first and last address), or None.

        The program may say it where the file does not, before the first use.
        """
        return self._port

    @port.setter
    def port(self, port: Port | None) -> None:
        if self._device is not None:
            raise ArgumentError(f"{self.name} is open, with the port {self._port}: say another one before its first use")
        self._port = port

    @property
    def device(self) -> Device:
        """The opened device."""
        if self._device is None:
            self._device = self._open()
        return self._device

    def _open(self):
        facts, seed = self.facts, self.overlay._simulated
        table = {name: (offset, bits) for _, name, offset, bits, _ in facts["registers"]}
        if seed is not None:
            return Device(f"sim:{self._model()}@{seed}", registers=table, interrupt=bool(facts["driver"]))
        if not facts["device"]:
            raise UnsupportedError(f"{self.name}: the processor sees no registers of it")
        self.overlay._ready()
        how = {"registers": table, "interrupt": any(each["line"] is not None for each in facts["interrupts"])}
        if self._port:
            how["port"] = self._port if isinstance(self._port, str) else tuple(self._port)
        try:
            return Device(facts["device"], **how)
        except NotFoundError as error:
            node = facts["device"].partition(":")[2]
            if any(entry["name"] == f"uio:{node}" for entry in _contigo.inventory()):
                return Device(f"uio:{node}", **how)
            hint = f"{self.name} has no node here: apply the overlay of `contigo overlay FILE.hwh --dtso FILE.dtso`"
            raise NotFoundError(f"{hint} ({error})") from None

    def _model(self):
        """The model that it is where it is simulated: registers that remember, without a driver."""
        return self.facts["driver"] or "registers"

    def memory(self, name: str | None = None, bytes: int | None = None) -> Region:
        """Memory for this core: by its name, or its own; a megabyte, or `bytes`."""
        if name is None:
            # By UIO no memory is a core's own.
            own = "contigo" if self.device.name.startswith("contigo:") else "dma-heap:linux,cma"
            name = "sim" if self.overlay._simulated is not None else own
        return self.device.memory(name, bytes or _MEMORY_BYTES)

    def allocate(self, shape: Shape, dtype: Any = "uint32", **how: Any) -> Buffer:
        """An array that this core reaches, of memory that it keeps for that."""
        if self._region is None:
            self._region = self.memory()
        return self._region.allocate(shape, dtype, **how)

    def driver(self, **more: Any) -> Engine:
        """Its driver, with the settings of the block design; `more` adds to them."""
        if not self.facts["driver"]:
            raise self._driverless()
        self._wired()
        settings = {**dict(self.facts["settings"]), **more}
        if self.facts["memory_bytes"] and "memory" not in settings:
            settings["memory"] = self.memory(bytes=self.facts["memory_bytes"])
        return self.device.driver(self.facts["driver"], **settings)

    def _wired(self):
        """Refuses a core of which the file does not tell how it reaches memory."""
        if self.port is None and self.facts["masters"] and self.overlay._simulated is None:
            say = "core.port = (\"zynq-acp\", 0, 32, True), with False where it does not snoop, before its first use"
            raise ValueError(f"{self.facts['no_port']}; {say}")

    def _driverless(self):
        if not self.facts["hls"]:
            return UnsupportedError(f"{self.name} ({self.facts['type']}) has no driver here: use its registers")
        why = "a kernel of Vitis HLS of which the file has no field AP_START, so no register starts it"
        return UnsupportedError(f"{self.name} is {why}: `s_axilite port=return` gives it one; or use its registers")

    def __call__(self, *operands, **named):
        """Jobs are a driver's, and this core has none."""
        raise self._driverless()

    @property
    def registers(self) -> Registers:
        return self.device.registers

    def __getitem__(self, at: int | str) -> int:
        return self.device[at]

    def __setitem__(self, at: int | str, value: int) -> None:
        self.device[at] = value

    __iter__ = None
    __contains__ = None

    def read(self, offset: int) -> int:
        """The register at `offset`, as pynq's MMIO has it."""
        return self.device.read32(offset)

    def write(self, offset: int, value: int) -> None:
        """Writes it; `Device.write32` says what the program promises."""
        self.device.write32(offset, value)

    def wait(self, at: int | str, value: int, mask: int = 0xFFFF_FFFF, *, timeout: float = 1.0) -> int:
        """Waits until a register, by its name or offset, is `value` in the bits of `mask`."""
        return self.device.wait(at, value, mask, timeout=timeout)

    async def interrupt(self, timeout: float = 1.0) -> None:
        """Waits for the core's interrupt, without stopping the event loop.

        One that came before is forgotten; a core that still asks for it asks again. Tasks that wait
        at the same time, in one event loop, get the same one. `TimeoutError` after `timeout`
        seconds, an hour at most.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        timeout = _seconds(timeout)
        # Not where another task sleeps, whose interrupt this would forget.
        if not _asleep.get((loop, self._interrupt)):
            self._interrupt = self.device.arm()
        if self._interrupt is None:
            raise UnsupportedError(f"{self.name} has no interrupt here: `contigo overlay` says where it goes")
        if not await _readable(loop, self._interrupt, timeout):
            raise TimeoutError(f"{self.name}: no interrupt came within {timeout} s")

    def close(self):
        """Stops it, where a driver has it."""

    def __repr__(self):
        return f"contigo.Core({self.name}: {self.facts['type']})"


class Driven(Core):
    """A core that its driver gives jobs to: `ol.axi_cdma_0(a, b)` waits for the end."""

    _engine = None

    @property
    def engine(self):
        """Its driver, opened once with the settings of the design."""
        if self._engine is None:
            self._engine = self.driver()
        return self._engine

    def start(self, *operands, words=()):
        """A job of these arrays, or parts of them, that is not waited for."""
        return self.engine.start(list(operands), *words)

    def __call__(self, *operands, words=(), timeout=1.0):
        return self.start(*operands, words=words).wait(timeout)

    def close(self):
        if self._engine is not None:
            self._engine.close()
            self._engine = None


class Hls(Core):
    """A kernel of Vitis HLS, called like its C function: `ol.scale_0(a, b, 100)`.

    The file says neither what the kernel does with a pointer, nor in which length: `describe` does.
    Without it a pointer is read and written, in any length. An argument of 32 bits is a pointer
    where the first call gives an array for it.
    """

    _kernel, _behaves, _how = None, None, {}

    def describe(self, **how):
        """Adds to the file: `directions`, `lengths`, `floats`, … of `Device.kernel`."""
        self.close()
        self._how = how
        return self.behaves(self._behaves[0], **self._behaves[1]) if self._behaves else self

    def behaves(self, function, **how):
        """Simulates the kernel by `function`, with `dtypes` and so on of `contigo.simulate`.

        Of an overlay that is simulated.
        """
        if self.overlay._simulated is None:
            raise UnsupportedError(f"{self.name} is a real core: Overlay(…, simulated=True) has one that a function computes")
        self.close()
        map = KernelMap(self.overlay._source, instance=self.facts["name"], **self._how)
        self._device, self._region = simulate(map, function, seed=self.overlay._simulated, **how), None
        self._behaves = function, how
        return self

    @property
    def arguments(self):
        """The names of the arguments, in C's order."""
        return list(dict.fromkeys(name for *_, name in self.facts["registers"] if name and name != "ap_return"))

    def kernel(self, *args):
        """The kernel; `args` are those of a first call."""
        # Closed where another kernel was made of the same device.
        if self._kernel is None or self._kernel.engine._stops is None:
            how = dict(self._how)
            if "pointers" not in how:
                halves = Counter(name for *_, name in self.facts["registers"] if name)
                given = zip(self.arguments, args)
                how["pointers"] = [name for name, value in given if halves[name] == 1 and not isinstance(value, (int, float))]
            self._wired()
            if self.device.map is None:
                self._kernel = self.device.kernel(self.overlay._source, instance=self.facts["name"], **how)
            else:
                self._kernel = self.device.kernel()
        return self._kernel

    def _model(self):
        # Both do one job, a copy: from, to, n.
        return "ap_ctrl" if self.facts["chain"] else "ap_ctrl_hs"

    def __call__(self, *args, **named):
        return self.kernel(*args)(*args, **named)

    async def call(self, *args, **named):
        """A call for an event loop: `y = await ol.fir_0.call(a, b)`."""
        return await self.kernel(*args).call(*args, **named)

    def start(self, *args, **named):
        """The same, as a job that is not waited for."""
        return self.kernel(*args).start(*args, **named)

    def close(self):
        if self._kernel is not None:
            self._kernel.engine.close()
            self._kernel = None

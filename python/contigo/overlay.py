"""The cores of a block design, by the names that they have in Vivado."""

import asyncio
import os
import warnings

from . import _contigo
from .device import Device
from .errors import BufferError, DeviceError, NotFoundError, UnsupportedError

#: As many bytes as memory has that nobody gave a size.
_MEMORY_BYTES = 1 << 20
#: The settings of a driver that two channels share: which of them sends, and which receives.
_SENDS, _RECEIVES = 0, 1


class Overlay:
    """A block design: `contigo.Overlay("design.hwh")`, or "design.bit" with its .hwh beside it.

    Each core is an attribute by its name, and a core in a hierarchy is one of the hierarchy:
    `ol.axi_dma_0.send(buf)`, `ol.scale_0(a, b, 100)`, `ol.video.gain["GAIN"] = 3`. `ip_dict` has
    the facts of each. Addresses, ports, coherency and settings come from the file.

    It loads no bitstream. A core is opened when it is first used, as the node that
    `contigo overlay design.hwh --dtso` wrote: no root. Where the kernel says that the fabric is
    not loaded, `DeviceError` says so, and nothing is touched. Where nobody says it, a warning does.

    `simulated`: a core that has a model is a simulated one, on any machine. A number is the seed.
    The program promises that the design in the file is the one that is loaded.
    """

    def __init__(self, file, *, simulated=False):
        path = os.fspath(file)
        if path.endswith((".bit", ".bin")):
            path = path[:-4] + ".hwh"
        with open(path, "rb") as hwh:
            self._source = hwh.read()
        try:
            facts = _contigo._design(self._source)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        self.name, self.chip, self.soc, self.tool = facts["name"], facts["device"], facts["soc"], facts["tool"]
        #: The facts of each core, by its path: "video/gain".
        self.ip_dict = {core["path"]: core for core in facts["cores"]}
        self._simulated = None if simulated is False else int(simulated)
        self._cores, self._looked = {}, False

    @property
    def fabric(self):
        """Is a bitstream loaded, in words?"""
        return "simulated" if self._simulated is not None else _contigo._fabric()[1]

    def core(self, name):
        """The core of this name or path: "video/gain" or "video_gain"."""
        for path, facts in self.ip_dict.items():
            if name in (path, facts["name"]):
                if path not in self._cores:
                    self._cores[path] = _kind(facts)(self, facts)
                return self._cores[path]
        raise NotFoundError(f"{self.name} has no core {name!r}; there are: {', '.join(self.ip_dict)}")

    def memory(self, name=None, bytes=None, *, core=None):
        """Memory that `core` reaches: a Core or its name, or the only core that masters memory."""
        if core is None:
            masters = [path for path, facts in self.ip_dict.items() if facts["masters"]]
            if len(masters) != 1:
                raise ValueError(f"memory for which core? core=\"NAME\", one of: {', '.join(masters) or 'none masters memory'}")
            core = masters[0]
        return (core if isinstance(core, Core) else self.core(core)).memory(name, bytes)

    def _ready(self):
        """Refuses to touch a fabric that is not loaded."""
        if self._looked or self._simulated is not None:
            return
        loaded, words = _contigo._fabric()
        if loaded is False:
            raise DeviceError(f"{self.name}: {words}; an access to a core would hang the processor, so nothing was touched")
        if loaded is None:
            warnings.warn(f"{self.name}: whether the fabric is loaded is {words}", RuntimeWarning, stacklevel=5)
        self._looked = True

    def close(self):
        """Stops the cores that were opened. So does the end of a `with`."""
        for core in self._cores.values():
            core.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
        return False

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _below(self, "", name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(path.partition("/")[0] for path in self.ip_dict)})

    def __repr__(self):
        return f"contigo.Overlay({self.name}: {', '.join(self.ip_dict)})"


def _below(overlay, folder, name):
    """The core or the hierarchy `name` in the hierarchy `folder`."""
    path = folder + name
    if path in overlay.ip_dict:
        return overlay.core(path)
    if any(other.startswith(path + "/") for other in overlay.ip_dict):
        return Hierarchy(overlay, path + "/")
    if not folder and any(facts["name"] == name for facts in overlay.ip_dict.values()):
        return overlay.core(name)
    raise AttributeError(f"{overlay.name} has no core {path!r}; there are: {', '.join(overlay.ip_dict)}")


class Hierarchy:
    """The cores of a hierarchy of the block design."""

    def __init__(self, overlay, folder):
        self._overlay, self._folder = overlay, folder

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _below(self._overlay, self._folder, name)

    def __repr__(self):
        return f"contigo.Hierarchy({self._folder[:-1]})"


class Core:
    """A core of a design: `core["CTRL"]` is a register by its name in the file or its offset."""

    def __init__(self, overlay, facts):
        self.overlay, self.facts, self.name = overlay, facts, facts["path"]
        self._device = self._region = None
        #: (name, offset, address bits, coherent, first and last address), or None. The program may
        #: say it where the file does not, before the first use.
        self.port = facts["port"]

    @property
    def device(self):
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
        if self.port:
            how["port"] = self.port if isinstance(self.port, str) else tuple(self.port)
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

    def memory(self, name=None, bytes=None):
        """Memory for this core: by its name, or "dma-heap:linux,cma"; a megabyte, or `bytes`."""
        if name is None:
            name = "sim" if self.overlay._simulated is not None else "dma-heap:linux,cma"
        return self.device.memory(name, bytes or _MEMORY_BYTES)

    def allocate(self, shape, dtype="uint32", **how):
        """An array that this core reaches, of memory that it keeps for that."""
        if self._region is None:
            self._region = self.memory()
        return self._region.allocate(shape, dtype, **how)

    def driver(self, **more):
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
    def registers(self):
        return self.device.registers

    def __getitem__(self, at):
        return self.device[at]

    def __setitem__(self, at, value):
        self.device[at] = value

    __iter__ = None
    __contains__ = None

    def read(self, offset):
        """The register at `offset`, as pynq's MMIO has it."""
        return self.device.read32(offset)

    def write(self, offset, value):
        """Writes it; `Device.write32` says what the program promises."""
        self.device.write32(offset, value)

    def wait(self, at, value, mask=0xFFFF_FFFF, *, timeout=1.0):
        """Waits until a register, by its name or offset, is `value` in the bits of `mask`."""
        return self.device.wait(at, value, mask, timeout=timeout)

    async def interrupt(self, timeout=1.0):
        """Waits for the core's interrupt, without stopping the event loop.

        `asyncio.TimeoutError` after `timeout` seconds.
        """
        fd = self.device.arm()
        if fd is None:
            raise UnsupportedError(f"{self.name} has no interrupt here: `contigo overlay` says where it goes")
        loop, come = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(fd, come.set)
        try:
            await asyncio.wait_for(come.wait(), timeout)
        finally:
            loop.remove_reader(fd)

    def close(self):
        """Stops it, where a driver has it."""

    def __repr__(self):
        return f"contigo.Core({self.name}: {self.facts['type']})"


class Dma(Core):
    """A DMA engine with a stream to the core and one from it, as `axi_dma`.

    `send` and `recv` wait for the end. `sendchannel` and `recvchannel` are the two alone, for
    transfers that overlap: arm the receiver first.
    """

    _channels = None

    def _channel(self, which):
        if self._channels is None:
            self._channels = {}
        if which not in self._channels:
            self._channels[which] = Channel(self, which)
        return self._channels[which]

    @property
    def sendchannel(self):
        return self._channel(_SENDS)

    @property
    def recvchannel(self):
        return self._channel(_RECEIVES)

    def send(self, buf, *, timeout=1.0):
        """Sends an array, or a part of one (`buf.reads(…)`), as one packet."""
        return self.sendchannel.transfer(buf).wait(timeout)

    def recv(self, buf, *, timeout=1.0):
        """Receives a packet into an array; returns how many bytes came."""
        return self.recvchannel.transfer(buf).wait(timeout)

    def close(self):
        for channel in (self._channels or {}).values():
            channel.engine.close()
        self._channels = None


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


class Channel:
    """One direction of a DMA engine."""

    def __init__(self, core, which):
        self.engine, self._job = core.driver(channel=which), None
        self.name = f"{core.name}.{'recvchannel' if which == _RECEIVES else 'sendchannel'}"

    def transfer(self, buf):
        """Starts it: an array, or a part of one."""
        self._job = self.engine.start([buf])
        return self

    def wait(self, timeout=1.0):
        """Waits for the last transfer, `timeout` seconds at most: its bytes, where it says them.

        After that the channel is stopped, and the array is the CPU's again: `TimeoutError`. A
        packet that is longer than the array is a `BufferError`: the array has its beginning, and
        the next transfer gets its rest.
        """
        if self._job is None:
            raise ValueError(f"{self.name}: there is no transfer to wait for")
        job, self._job = self._job, None
        done = job.wait(timeout)
        if done.last is False:
            long = f"the packet is longer than its array, which has the first {done.nbytes} bytes"
            raise BufferError(f"{self.name}: {long}; the rest comes with the next transfer: give an array for the longest packet")
        return done.nbytes

    @property
    def running(self):
        return self._job is not None

    @property
    def idle(self):
        return self._job is None or self._job.done()

    def __repr__(self):
        return f"contigo.Channel({self.name})"


class Hls(Core):
    """A kernel of Vitis HLS, called like its C function: `ol.scale_0(a, b, 100)`.

    The file says neither what the kernel does with a pointer, nor in which length: `describe` does.
    Without it a pointer is read and written, in any length. An argument of 32 bits is a pointer
    where the first call gives an array for it.
    """

    _kernel, _how = None, {}

    def describe(self, **how):
        """Adds to the file: `directions`, `lengths`, `floats`, … of `Device.kernel`."""
        self.close()
        self._how = how
        return self

    @property
    def arguments(self):
        """The names of the arguments, in C's order."""
        return list(dict.fromkeys(name for *_, name in self.facts["registers"] if name and name != "ap_return"))

    def kernel(self, *args):
        """The kernel; `args` are those of a first call."""
        if self._kernel is None:
            how = dict(self._how)
            if "pointers" not in how:
                halves = [name for *_, name in self.facts["registers"] if name]
                given = zip(self.arguments, args)
                how["pointers"] = [name for name, value in given if halves.count(name) == 1 and not isinstance(value, (int, float))]
            self._wired()
            self._kernel = self.device.kernel(self.overlay._source, instance=self.facts["name"], **how)
        return self._kernel

    def _model(self):
        # Both do one job, a copy: from, to, n.
        return "ap_ctrl" if self.facts["chain"] else "ap_ctrl_hs"

    def __call__(self, *args, **named):
        return self.kernel(*args)(*args, **named)

    def start(self, *args, **named):
        """The same, as a job that is not waited for."""
        return self.kernel(*args).start(*args, **named)

    def close(self):
        if self._kernel is not None:
            self._kernel.engine.close()
            self._kernel = None


def _kind(facts):
    if facts["driver"] == "ap_ctrl":
        return Hls
    if facts["driver"] == "axi_dma":
        return Dma
    return Driven if facts["driver"] else Core


class MMIO(Device):
    """Registers by their address or by a device's name, as pynq's MMIO.

    `contigo.MMIO(0x40400000, 0x1000)` opens the guard whose registers are there: no root.
    """

    def __new__(cls, at, length=None, **how):
        return super().__new__(cls, cls._named(at), **how)

    def __init__(self, at, length=None, **how):
        super().__init__(self._named(at), **how)
        if length is not None and length > self.window_bytes:
            raise ValueError(f"{self.name} has {self.window_bytes:#x} bytes of registers, and {length:#x} are asked for")

    @staticmethod
    def _named(at):
        return f"guard:{at:x}" if isinstance(at, int) else at

    def read(self, offset=0):
        return self.read32(offset)

    def write(self, offset, value):
        """`Device.write32` says what the program promises."""
        self.write32(offset, value)

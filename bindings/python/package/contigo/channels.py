"""DMA engines between memory and a stream: `send` to the core behind them, `recv` from it."""

from ._contigo import _seconds
from .cores import Core, Driven, close_all
from .errors import ArgumentError, BufferError, UnsupportedError

#: The settings of a driver that two channels share: which of them sends, and which receives.
_SENDS, _RECEIVES = 0, 1
#: The channels of an AXI MCDMA in one direction. The driver's numbers of those that receive follow.
_MCDMA_CHANNELS = 16


class Channel:
    """One direction of a DMA engine."""

    def __init__(self, name, engine):
        self.name, self.engine, self._job = name, engine, None

    def transfer(self, buf):
        """Starts it: an array, or a part of one. One that is under way is waited for first."""
        if not self.idle:
            raise BufferError(f"{self.name}: a transfer is under way: wait for it")
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
        # A transfer that was not waited for, because `timeout` is none, stays as it is.
        timeout = _seconds(timeout)
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

    def close(self):
        """Stops it."""
        self.engine.close()

    def __repr__(self):
        return f"contigo.Channel({self.name})"


class FrameChannel(Channel):
    """One direction of a VDMA, whose transfers are frames.

    A frame has the lines of its array: the first length of its shape. `describe` of the core says
    it for arrays of one dimension, and for parts.
    """

    def __init__(self, name, open, said):
        super().__init__(name, None)
        self._open, self._said, self._shape = open, said, None

    def transfer(self, frame):
        """Starts a frame. One of another shape opens the channel anew."""
        shape = self._said or self._of(frame)
        if shape != self._shape:
            if self.running:
                raise BufferError(f"{self.name}: a frame of {self._shape} is under way, and {shape} is another shape: wait for it")
            if self.engine is not None:
                self.close()
            self.engine, self._shape = self._open(**shape), shape
        return super().transfer(frame)

    def _of(self, frame):
        shape = getattr(frame, "shape", ())
        if len(shape) < 2:
            raise ArgumentError(f"{self.name}: a frame has lines: give an array of lines, or core.describe(hsize_bytes=…, vsize_lines=…)")
        return {"hsize_bytes": frame.nbytes // shape[0], "vsize_lines": shape[0]}

    def close(self):
        if self.engine is not None:
            self.engine.close()
            self.engine = self._shape = None


class _Streams(Core):
    """A core with channels, each opened when it is first used."""

    _channels = None

    def _channel(self, name, **which):
        if self._channels is None:
            self._channels = {}
        if name not in self._channels:
            self._channels[name] = self._opened(f"{self.name}.{name}", **which)
        return self._channels[name]

    def _opened(self, name, **which):
        return Channel(name, self.driver(**which))

    def close(self):
        close_all((self._channels or {}).values())
        self._channels = None


class Dma(_Streams):
    """A DMA engine with a stream to the core and one from it, as `axi_dma`.

    `send` and `recv` wait for the end. `sendchannel` and `recvchannel` are the two alone, for
    transfers that overlap: arm the receiver first.
    """

    @property
    def sendchannel(self):
        return self._channel("sendchannel", channel=_SENDS)

    @property
    def recvchannel(self):
        return self._channel("recvchannel", channel=_RECEIVES)

    def send(self, buf, *, timeout=1.0):
        """Sends an array, or a part of one (`buf.reads(…)`), as one packet."""
        return self.sendchannel.transfer(buf).wait(timeout)

    def recv(self, buf, *, timeout=1.0):
        """Receives a packet into an array; returns how many bytes came."""
        return self.recvchannel.transfer(buf).wait(timeout)


class Vdma(Dma):
    """A VDMA: `send(frame)` and `recv(frame)`, an array of lines.

    `describe` says the settings of `axi_vdma`: `hsize_bytes` and `vsize_lines` where the arrays
    have no lines, and `stride_bytes` where lines are further apart than they are long.
    """

    _how = {}

    def describe(self, **how):
        """Adds to the file: settings of the driver."""
        self.close()
        self._how = how
        return self

    def _opened(self, name, **which):
        said = {key: self._how[key] for key in ("hsize_bytes", "vsize_lines") if key in self._how}
        return FrameChannel(name, lambda **shape: self.driver(**which, **{**self._how, **shape}), said if len(said) == 2 else None)


class Mcdma(_Streams):
    """An MCDMA: `send(buf, 3)` and `recv(buf, 3)`, by the channels that the design gives it.

    `sendchannels[3]` and `recvchannels[3]` are the channels alone.
    """

    @property
    def sendchannels(self):
        return _Numbered(self, "sendchannels", 0, "C_NUM_MM2S_CHANNELS")

    @property
    def recvchannels(self):
        return _Numbered(self, "recvchannels", _MCDMA_CHANNELS, "C_NUM_S2MM_CHANNELS")

    def send(self, buf, channel=0, *, timeout=1.0):
        """Sends an array, or a part of one, as one packet of this channel (TDEST)."""
        return self.sendchannels[channel].transfer(buf).wait(timeout)

    def recv(self, buf, channel=0, *, timeout=1.0):
        """Receives a packet of this channel into an array; returns how many bytes came."""
        return self.recvchannels[channel].transfer(buf).wait(timeout)


class _Numbered:
    """The channels of one direction, by their numbers."""

    def __init__(self, core, name, first, parameter):
        self._core, self._name, self._first = core, name, first
        self._count = int(core.facts["parameters"].get(parameter, _MCDMA_CHANNELS))

    def __getitem__(self, number):
        if number not in range(self._count):
            raise ArgumentError(f"{self._core.name}.{self._name} has {self._count} channels, from 0, and no {number!r}")
        return self._core._channel(f"{self._name}[{number}]", channel=self._first + number)

    # Not a sequence: a `for` would open one channel after the other.
    __iter__ = None
    __contains__ = None

    def __len__(self):
        return self._count


class Dmac(Dma, Driven):
    """Analog Devices' AXI DMAC, which is one direction: `send(buf)`, `recv(buf)`, or `core(a, b)`.

    Its registers say which. `recv` returns None where a packet fills the array.
    """

    @property
    def engine(self):
        return self._channel("channel").engine

    @property
    def sendchannel(self):
        return self._only("reads", "sends nothing")

    @property
    def recvchannel(self):
        return self._only("writes", "receives nothing")

    def _only(self, direction, words):
        channel = self._channel("channel")
        operands = [each["direction"] for each in channel.engine.operands]
        if operands != [direction]:
            does = {"reads": "sends: send(buf)", "writes": "receives: recv(buf)"}.get(operands[0] if len(operands) == 1 else "", "copies: core(a, b)")
            raise UnsupportedError(f"{self.name} {words}: as it is built it {does}")
        return channel

    def _model(self):
        # Its two sides: 0 is memory, another number a stream.
        memory = [self.facts["parameters"].get(side, "0") == "0" for side in ("DMA_TYPE_SRC", "DMA_TYPE_DEST")]
        return {(True, False): "axi_dmac_sink", (False, True): "axi_dmac_camera"}.get(tuple(memory), "axi_dmac")

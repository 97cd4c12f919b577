import os
from typing import Any, AsyncIterator, Callable, Generator, Iterable, Iterator, Literal, Mapping, Optional, Sequence, Tuple, TypedDict, Union

__version__: str
Shape = Union[int, Tuple[int, ...]]

from .errors import (
    ArgumentError as ArgumentError, BufferError as BufferError, BusyError as BusyError, ContigoError as ContigoError,
    DeviceError as DeviceError, ForkedError as ForkedError, MemoryError as MemoryError, NotFoundError as NotFoundError,
    OSError as OSError, PermissionError as PermissionError, TimeoutError as TimeoutError, UnsupportedError as UnsupportedError,
)

#: A port: a board's by its name ("zynq-hp0"). Or four values: a name, the offset that the bus adds
#: to addresses, the address bits, and whether the port sees the CPU's caches.
#: Two more are the first and the last address that it reaches.
_Port = Union[str, Tuple[str, int, int, bool], Tuple[str, int, int, bool, int, int]]
#: The device does so; the words are always said from its side.
_Direction = Literal["reads", "writes", "both"]
#: A number of a GPU's kernel: its kind, or bare bits.
_Number = Literal["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", 8, 16, 32, 64]

class _Entry(TypedDict):
    """One memory or one device of this machine, or a kind of which it has none."""
    what: str
    kind: str
    name: Optional[str]
    state: str
    size: Optional[int]
    address: Optional[int]
    coherent: Optional[bool]
    note: Optional[str]

class _Finding(TypedDict):
    """One check of the doctor, and its answer here."""
    id: str
    area: str
    title: str
    verdict: str
    found: str
    cause: str
    cure: str
    source: str

class _Spec(TypedDict):
    """An operand of a job: the device's use of it, and three sizes in bytes."""
    direction: _Direction
    align: int
    min: int
    max: int

class Registers:
    """Registers by their names. One with more than 32 bits is two registers, the low word first."""
    def __init__(self, device: Device, table: Mapping[str, Union[int, Tuple[int, int]]]) -> None: ...
    def offset(self, name: str) -> int:
        """Where it is, in bytes from the first register."""
    def __getitem__(self, name: str) -> int: ...
    def __setitem__(self, name: str, value: int) -> None:
        """Writing is the program's promise: `Device.write32`."""
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...

class Device:
    """A device, opened once, by its name: its memory, registers and interrupt, and a driver.

    `close`, the end of a `with`, and the end of its last handle let go of it; memory and a driver of
    it have a handle each. A GPU stays open once it has memory or a kernel.

    `port`: how it reaches memory, where no kernel says it. `window`: which registers, a PCI
    function's BAR or an entry of a guarded node's `reg`. `interrupt`: the program's own waits use
    it. `registers`: names, as {name: offset} or {name: (offset, bits)}.
    """
    registers: Registers
    def __init__(
        self,
        name: str,
        *,
        port: Optional[_Port] = None,
        window: int = 0,
        interrupt: bool = False,
        registers: Optional[Mapping[str, Union[int, Tuple[int, int]]]] = None,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> Optional[int]: ...
    @property
    def gpu(self) -> Optional[str]:
        """The name that a GPU's driver gives it; None where it is no GPU."""
    @property
    def window_bytes(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Device: ...
    def __exit__(self, *exception: Any) -> bool: ...
    def memory(self, name: str, bytes: Optional[int] = None, *, port: Optional[_Port] = None) -> Region: ...
    def driver(
        self,
        name: str,
        *,
        memory: Optional[Region] = None,
        memory_bytes: int = 0,
        map: Optional[bytes] = None,
        interrupt: bool = True,
        gate: Union[int, Device, None] = None,
        **settings: int,
    ) -> Engine:
        """A driver for it.

        `gate`: the gate before the core, by its offset in bytes in the core's registers, or as a
        device of its own. Then the core stops whatever it does (docs/stopping.md).

        Of a guarded device it leaves its stop with the kernel, which runs it when the process ends.
        The program promises that the driver is for this device, and that no other code drives it.
        """
    def kernel(
        self,
        source: Union[KernelMap, str, os.PathLike[str], bytes],
        *,
        instance: str = "",
        directions: Optional[Mapping[str, _Direction]] = None,
        lengths: Optional[Mapping[str, str]] = None,
        pointers: Iterable[str] = (),
        scalars: Iterable[str] = (),
        floats: Iterable[str] = (),
        signed: Iterable[str] = (),
        timeout: float = 1.0,
        interrupt: bool = True,
        gate: Union[int, Device, None] = None,
        **settings: int,
    ) -> Kernel:
        """The HLS kernel that this device is. `timeout`: seconds for one call.

        The program promises that the map is the kernel's own.
        """
    def function(
        self,
        image: Union[bytes, str],
        entry: str,
        parameters: Mapping[str, Union[_Direction, _Number]],
        *,
        lengths: Optional[Mapping[str, str]] = None,
        timeout: float = 1.0,
    ) -> Function:
        """A kernel of a GPU. `timeout`: seconds for one call.

        `image`: PTX, a cubin or a fatbin for "cuda", SPIR-V for "vulkan", OpenCL C for "opencl".
        `parameters`: {"to": "writes", "n": "u32", "by": "f32"}. With bare bits (32) for a number,
        the type of each call's number chooses between integer and float: better say the kind.
        The program promises that these are the kernel's parameters.
        """
    def read32(self, offset: int) -> int: ...
    def write32(self, offset: int, value: int) -> None:
        """Writes the register at `offset`.

        The program promises that the device touches only bytes that were handed to it, and has
        stopped before they are taken back. A guarded PCI function reaches no memory without a
        driver.
        """
    def wait32(self, offset: int, value: int, mask: int = 0xFFFFFFFF, *, timeout: float = 1.0) -> int:
        """Waits until the bits of `mask` are `value`, `timeout` seconds at most.

        Returns the whole register. `TimeoutError` says what it was at the end.
        """
    def wait(self, at: Union[int, str], value: int, mask: int = 0xFFFFFFFF, *, timeout: float = 1.0) -> int:
        """`wait32`, by an offset or a name."""
    def __getitem__(self, at: Union[int, str]) -> int: ...
    def __setitem__(self, at: Union[int, str], value: int) -> None: ...
    def arm(self) -> Optional[int]:
        """Lets the next interrupt come.

        Returns the file descriptor that is readable then; None where there is no interrupt.
        """
    def fileno(self) -> int: ...
    def reset(self) -> None:
        """Resets a device that is guarded, behind an IOMMU, or simulated.

        Nothing else stops one that is stuck.
        The program promises that no other thread starts a job, looks or waits meanwhile.
        """
    def leave_stop(self, steps: Sequence[Tuple[Union[str, int, float], ...]]) -> None:
        """Leaves with the kernel what stops a guarded device when the process ends.

        Steps: ("write", offset, value[, mask]), ("until", offset, value, mask, seconds),
        ("while", offset, value, mask, seconds), ("else",).
        The program promises that they only stop the device.
        """
    @property
    def guard(self) -> Optional[dict[str, Union[bool, int]]]:
        """The kernel's facts about a guarded device; None for another one.

        `confined`, `can_reset`, `armed`, `buffers`, `quarantined`, `quarantined_bytes`, and more.
        """
    @property
    def simulated(self) -> Optional[dict[str, int]]:
        """The counts of its simulated board; None for a real device.

        They count accesses to bytes that were not handed over, missing syncs, and more.
        """
    def allow_wrong_accesses(self, allow: bool = True) -> None:
        """Lets jobs of its simulated board end well that touch what was not handed over.

        For a test that provokes that: such a job raises `DeviceError` otherwise.
        """

class Operand:
    """A part of a buffer for a job: `buf.reads()`, `buf.writes()`, `buf.updates()`.

    All sizes are in bytes.
    """
    @property
    def buffer(self) -> Buffer: ...
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def direction(self) -> _Direction: ...

class Done:
    """A job that ended well. Its buffers are the CPU's."""
    @property
    def buffers(self) -> list[Buffer]: ...
    @property
    def nbytes(self) -> Optional[int]:
        """How many bytes the device wrote; None where it does not tell."""
    @property
    def last(self) -> Optional[bool]:
        """False: the packet was longer, and its rest comes in the next job.

        None: the device receives no packets.
        """
    @property
    def status(self) -> int: ...
    @property
    def words(self) -> Tuple[int, int, int, int]: ...

class Job:
    """A job that a device was given.

    Its buffers are the device's until the job ended, or the device was stopped.
    """
    def wait(self, timeout: float = 1.0) -> Done:
        """Waits for its end, `timeout` seconds at most: 0 to 3,600.

        After that the device is stopped, with all jobs of its engine: `TimeoutError`. Queues and
        streams that had jobs of these raise once. No wait of this package is without a limit:
        None is a `TypeError`, and for `next` of a queue or a stream its own limit.
        """
    def wait_for(self, timeout: float = 0.0) -> Optional[Done]:
        """At most `timeout` seconds, as in `wait`: None where it goes on."""
    def __await__(self) -> Generator[Any, None, Done]:
        """Its end, as in `wait`, while other tasks run: an hour at most, or `asyncio.wait_for`."""
    def done(self) -> bool: ...
    def cancel(self) -> None:
        """Stops the device, with all jobs of its engine, unless this one has ended.

        Queues and streams that had other jobs of these raise once.
        """
    @property
    def buffers(self) -> list[Buffer]: ...

class Engine:
    """A driver of a device.

    `close()`, the end of a `with`, and the end of its last handle stop the device.
    """
    def start(self, operands: Iterable[Union[Buffer, Operand]], *words: int) -> Job:
        """A job: its operands, as many as the driver has, and its argument words of 32 bits."""
    def push(self, operands: Iterable[Union[Buffer, Operand]], *words: int) -> Job:
        """The same for who calls `next`. A queue or a stream of this engine takes none of them."""
    def next(self, timeout: float = 1.0) -> Optional[Done]:
        """The next pushed job that ended; None where none did in `timeout` seconds.

        The buffers of started jobs that ended are the CPU's then, too. Nothing is stopped.
        `timeout`: 0 to 3,600 seconds.
        """
    def stop(self) -> None:
        """Stops the device. The buffers of all jobs are the CPU's.

        A queue or a stream that had some of these jobs raises once, in the thread of its loop. A
        queue's `take_back` has the jobs.
        """
    @property
    def jobs(self) -> list[Job]:
        """The jobs in flight, in no order, also those of which the program has no `Job`."""
    def take_back(self) -> list[Job]:
        """Those of `push` that had not ended when the device was stopped."""
    def arm(self) -> Optional[int]:
        """Readies the interrupt.

        Returns the file descriptor that is readable when a job ends; None where there is no
        interrupt.
        """
    def close(self) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def operands(self) -> list[_Spec]: ...
    @property
    def counts(self) -> dict[str, int]: ...
    def __enter__(self) -> Engine: ...
    def __exit__(self, *exception: Any) -> bool: ...

class Overlay:
    """A block design of Vivado's: each core is an attribute, by its name.

    It loads no bitstream. Where the kernel reports that none is loaded, a core's use raises
    `DeviceError`.
    """
    name: str
    chip: str
    soc: str
    tool: str
    ip_dict: dict[str, dict[str, Any]]
    def __init__(self, file: Union[str, os.PathLike[str]], *, simulated: Union[bool, int] = False, loaded: bool = False) -> None: ...
    @property
    def fabric(self) -> str: ...
    def core(self, name: str) -> Core: ...
    def memory(self, name: Optional[str] = None, bytes: Optional[int] = None, *, core: Union[None, str, Core] = None) -> Region: ...
    def close(self) -> None: ...
    def __enter__(self) -> Overlay: ...
    def __exit__(self, *exception: Any) -> bool: ...
    def __getattr__(self, name: str) -> Any: ...

class Core:
    """A core of a design; those that have a driver have more, such as `send` or a call."""
    name: str
    facts: dict[str, Any]
    port: Optional[_Port]
    @property
    def device(self) -> Device: ...
    @property
    def registers(self) -> Registers: ...
    def memory(self, name: Optional[str] = None, bytes: Optional[int] = None) -> Region: ...
    def allocate(self, shape: Shape, dtype: Any = "uint32", **how: Any) -> Buffer: ...
    def driver(self, **more: Any) -> Engine: ...
    def __getitem__(self, at: Union[int, str]) -> int: ...
    def __setitem__(self, at: Union[int, str], value: int) -> None: ...
    def read(self, offset: int) -> int: ...
    def write(self, offset: int, value: int) -> None: ...
    def wait(self, at: Union[int, str], value: int, mask: int = 0xFFFFFFFF, *, timeout: float = 1.0) -> int: ...
    async def interrupt(self, timeout: float = 1.0) -> None: ...
    def describe(self, **how: Any) -> Core:
        """Of a kernel of HLS: `directions`, `lengths`, `pointers`, `scalars`, `floats`, `signed`,
        `timeout`.

        They are those of `Device.kernel`. The kernel is called then: `core(a, b, 100)`.
        """
    def __call__(self, *operands: Any, **named: Any) -> Any: ...
    def close(self) -> None: ...

class MMIO(Device):
    """Registers by their address, or by a device's name."""
    def __init__(self, at: Union[int, str], length: Optional[int] = None, **how: Any) -> None: ...
    def read(self, offset: int = 0) -> int: ...
    def write(self, offset: int, value: int) -> None: ...

class KernelMap:
    """A kernel's arguments and registers.

    They are from JSON, HLS' `x<name>_hw.h`, or Vivado's `.hwh` with the `instance`'s name. The
    program adds the rest by the arguments' names: `directions` ("reads", "writes", "both"), and
    `lengths` in bytes ("4*n").
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
        source: Union[str, os.PathLike[str], bytes],
        *,
        instance: str = "",
        directions: Optional[Mapping[str, _Direction]] = None,
        lengths: Optional[Mapping[str, str]] = None,
        pointers: Iterable[str] = (),
        scalars: Iterable[str] = (),
        floats: Iterable[str] = (),
        signed: Iterable[str] = (),
    ) -> None: ...
    def is_float(self, name: str) -> bool: ...
    @property
    def registers(self) -> dict[str, Tuple[int, int]]: ...

class Kernel:
    """An HLS kernel, called like the C function that it was made of.

    Such as `kernel(a, b, out, n=1024)`.
    """
    engine: Engine
    map: KernelMap
    timeout: float
    def __init__(self, engine: Engine, map: KernelMap, timeout: float = 1.0) -> None: ...
    def __call__(self, *args: Union[Buffer, Operand, float], **named: Union[Buffer, Operand, float]) -> Union[int, dict[str, int], None]: ...
    async def call(
        self, *args: Union[Buffer, Operand, float], **named: Any
    ) -> Union[int, dict[str, int], None]:
        """A call for an event loop: `y = await kernel.call(a, b, n=4)`."""
    def start(self, *args: Union[Buffer, Operand, float], **named: Union[Buffer, Operand, float]) -> Job: ...
    def job(
        self, *args: Union[Buffer, Operand, float], **named: Union[Buffer, Operand, float]
    ) -> Tuple[list[Union[Buffer, Operand]], list[int]]:
        """The operands and the words, for `Queue.push(operands, *words)`."""
    def returned(self, done: Done) -> Union[int, dict[str, int], None]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Kernel: ...
    def __exit__(self, *exception: Any) -> bool: ...

class Function(Kernel):
    """A kernel of a GPU: `scale(a, out, 1000, 0.5, grid=4, block=256)`.

    `grid` and `block`: one number, or three. `start` has the same arguments, and does not wait.
    Several jobs in flight: `operands, words = scale.job(…)`, then `queue.push(operands, *words)`.
    """
    def __call__(  # type: ignore[override]
        self,
        *args: Union[Buffer, Operand, float],
        grid: Union[int, Tuple[int, ...]],
        block: Union[int, Tuple[int, ...]] = 256,
        shared_bytes: int = 0,
        **named: Union[Buffer, Operand, float],
    ) -> None: ...
    def start(  # type: ignore[override]
        self,
        *args: Union[Buffer, Operand, float],
        grid: Union[int, Tuple[int, ...]],
        block: Union[int, Tuple[int, ...]] = 256,
        shared_bytes: int = 0,
        **named: Union[Buffer, Operand, float],
    ) -> Job: ...
    def job(  # type: ignore[override]
        self,
        *args: Union[Buffer, Operand, float],
        grid: Union[int, Tuple[int, ...]],
        block: Union[int, Tuple[int, ...]] = 256,
        shared_bytes: int = 0,
        **named: Union[Buffer, Operand, float],
    ) -> Tuple[list[Union[Buffer, Operand]], list[int]]: ...

class Queue:
    """Several jobs in flight: `for done in queue`, `async for done in queue`.

    A loop that is left before its end stops the device. It gives the ends of its own jobs, and of
    no other queue's, nor those that an earlier loop left: these come from `take_back`. `stop` ends
    a loop of another thread or task, and another's stop makes it raise once.

    `timeout`: seconds in which a job of those in flight ends, or the loop raises `TimeoutError`.
    """
    timeout: float
    def __init__(self, engine: Union[Engine, Kernel], *, timeout: float = 1.0) -> None: ...
    def push(self, operands: Iterable[Union[Buffer, Operand]], *words: int) -> Job:
        """A job. `MemoryError`: 1,024 jobs have ended, and were not taken."""
    def next(self, timeout: Optional[float] = None) -> Optional[Done]:
        """The next job that ended; None where none has in `timeout` seconds, 0 to 3,600.

        Without `timeout` it is the queue's.
        """
    def stop(self) -> None: ...
    def take_back(self) -> list[Job]:
        """The jobs that a stop cancelled, and those that a loop that was left has not given."""
    @property
    def depth(self) -> int: ...
    @property
    def counts(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Done]: ...
    def __aiter__(self) -> AsyncIterator[Done]: ...
    def close(self) -> None:
        """Stops the device, where jobs of it are in flight, and lets go of its ends."""
    def __enter__(self) -> Queue: ...
    def __exit__(self, *exception: Any) -> bool: ...

class Stream:
    """Frames of exactly the bytes received: `for frame in stream`, `async for`.

    A frame is yours until the next one is asked for, or the loop ends. However a loop is left, the
    device is stopped, and all buffers are the pool's: keep an array of a frame
    (`np.asarray(frame)`) before that.

    `last` is `Done.last` of the frame that came last: False, where the next one goes on with it.

    `timeout`: seconds for one frame. `next` looks outside of a loop, and stops nothing. `operands`
    makes a job's operands of a frame; the one that the device writes is the frame.
    """
    timeout: float
    last: Optional[bool]
    def __init__(
        self,
        engine: Engine,
        pool: Pool,
        *words: int,
        timeout: float = 1.0,
        operands: Optional[Callable[[Buffer], Iterable[Union[Buffer, Operand]]]] = None,
    ) -> None: ...
    def start(self) -> int:
        """Gives the device as many frames as it takes and the pool has.

        Returns how many it has then. After a stop or a fault it begins anew.
        """
    def next(self, timeout: Optional[float] = None) -> Optional[Buffer]:
        """The oldest frame that arrived; None where none did in `timeout` seconds.

        Nothing is stopped, and nothing is started.
        """
    def stop(self) -> None: ...
    @property
    def is_running(self) -> bool:
        """Is it between `start` and a stop or a fault?"""
    @property
    def counts(self) -> dict[str, int]: ...
    def __iter__(self) -> Iterator[Buffer]: ...
    def __aiter__(self) -> AsyncIterator[Buffer]: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *exception: Any) -> bool: ...

class Region:
    """DMA memory that was opened by its name. `close`, the end of a `with`, and the end of its last
    handle let go of it; the memory goes with the last of its arrays and pools.

    `open_memory` and `Device.memory` make one.
    """
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def allocate(self, shape: Shape, dtype: Any = "uint32", *, align: int = 256, zeroed: bool = True) -> Buffer: ...
    def pool(self, shape: Shape, dtype: Any, slots: int, *, align: int = 256) -> Pool: ...
    def from_dlpack(self, array: Any, contract: str = "any") -> Imported: ...
    def stats(self) -> dict[str, int]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Region: ...
    def __exit__(self, *exception: Any) -> bool: ...

class Pool:
    """Equal arrays, carved once: `take` and the way back are one atomic operation each."""
    def take(self) -> Buffer: ...
    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def free(self) -> int: ...
    def __len__(self) -> int: ...

class Buffer:
    """An array in DMA memory, the CPU's or a device's."""
    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device_address(self) -> int: ...
    @property
    def owner(self) -> str: ...
    @property
    def views(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any: ...
    def give(self, *, reads: bool = True, writes: bool = True) -> Handover:
        """To a device, which reads it, writes it, or both. The end of a `with` takes it back."""
    def take_back(self) -> None:
        """The device has stopped: the CPU has it again."""
    def reads(self, nbytes: Optional[int] = None, *, offset: int = 0) -> Operand:
        """An operand that the device reads: `nbytes` from `offset`; all of them where none is said.
        """
    def writes(self, nbytes: Optional[int] = None, *, offset: int = 0) -> Operand: ...
    def updates(self, nbytes: Optional[int] = None, *, offset: int = 0) -> Operand: ...
    def sync_to_device(self) -> None:
        """PYNQ's name for `give()`."""
    def sync_from_device(self) -> None:
        """PYNQ's name for `take_back()`."""
    def freebuffer(self) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: Any) -> Any:
        """A copy, read-only, of what NumPy's array has there: no view stays."""
    def __setitem__(self, at: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, value: Any) -> bool: ...

class View: ...

class Imported:
    """A framework's array that lies in a region. It keeps the array."""
    @property
    def device_address(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def shape(self) -> Tuple[int, ...]: ...

class Handover:
    """A buffer that is a device's until `take_back`, or until the `with` is left.

    `from_dlpack(handover)` is the device's view.
    `address` and `nbytes` belong together, and are the device's only until then.
    """
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: Optional[int] = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...
    def take_back(self) -> None: ...
    def __enter__(self) -> Handover: ...
    def __exit__(self, *exception: Any) -> bool: ...

def open_memory(name: str, bytes: Optional[int] = None, *, port: Optional[_Port] = None) -> Region:
    """Memory by its name, 16 MiB where `bytes` are not given.

    A device that it belongs to is opened with it.
    """
open_device = Device
def doctor(*, machine: Union[str, os.PathLike[str], None] = None) -> list[_Finding]:
    """Each check of the doctor, and its answer for this machine.

    `verdict` is "fine", "skipped", "note" or "fault". With `machine` a copy of another machine's
    files is read. FileNotFoundError: that folder is no machine's.
    """
def load_driver(path: Union[str, os.PathLike[str]]) -> str:
    """Loads a driver from a shared library, and returns its name for `Device.driver`.

    The file has a driver in C, C++ or Rust, by `contigo_driver_library` of `contigo.h` (in
    Contigo's sources, `bindings/c/include`); it stays loaded until the program ends. The program promises that it is one: its code runs at once.
    NotFoundError: the loader's words. ArgumentError: what the file exports cannot be, or a driver is
    called so already.
    """
def inventory() -> list[_Entry]:
    """The memory and the devices of this machine, and why the rest is missing.

    In an entry, `what` is "memory" or "device"; `state` is "ready", "blocked" or "absent".
    """
def allocate(
    shape: Shape,
    dtype: Any = "uint32",
    *,
    memory: Union[Region, str, None] = None,
    align: int = 256,
    zeroed: bool = True,
) -> Buffer: ...

from typing import Any, Optional, Tuple, TypedDict, Union

__version__: str
Shape = Union[int, Tuple[int, ...]]

class ContigoError(RuntimeError): ...

class ForkedError(ContigoError):
    """This process is a child of fork: the memory and the devices are its parent's."""

#: How the accelerator reaches memory: name, offset added to addresses, address bits, and whether it sees the CPU's caches.
_Port = Tuple[str, int, int, bool]

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

class Device:
    """A device, opened once, by its name: `memory` for it, and its registers, to be read.

    It is closed with its last handle; once memory was opened from it, or a register was read, when the process ends.
    """
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> Optional[int]: ...
    def memory(self, name: str, bytes: Optional[int] = None, *, port: Optional[_Port] = None) -> Region: ...
    def read32(self, offset: int) -> int: ...

class Region:
    """DMA memory that was opened by its name. It stays open until the process ends.

    `open_memory` and `Device.memory` make one. The class does too, as `Heap` did in 0.1, for this release.
    """
    def __init__(
        self, name: str, bytes: Optional[int] = None, *, kernel_port: Optional[str] = None, port: Optional[_Port] = None
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def allocate(self, shape: Shape, dtype: Any, *, align: int = 256, zeroed: bool = True) -> Buffer: ...
    def pool(self, shape: Shape, dtype: Any, slots: int, *, align: int = 256) -> Pool: ...
    def from_dlpack(self, array: Any, contract: str = "any") -> Imported: ...
    def gemm8(self) -> Gemm8: ...
    def stats(self) -> dict[str, int]: ...

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
    def to_device(self, direction: str = "both") -> Handover:
        """`direction` is what the device does: "to_device" (it reads), "from_device" (it writes), "both"."""
    def sync_to_device(self) -> None: ...
    def sync_from_device(self) -> None: ...
    def freebuffer(self) -> None: ...
    def __len__(self) -> int: ...

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
    """A buffer that is a device's until `end`, or until the `with` is left. `from_dlpack(handover)` is the device's view.

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
    def end(self) -> None: ...
    def __enter__(self) -> Handover: ...
    def __exit__(self, *exception: Any) -> bool: ...

class Gemm8:
    """int8 matrix engine of the simulated board, or of the GPU."""
    def run(
        self,
        a: Buffer,
        b: Buffer,
        bias: Buffer,
        c: Buffer,
        *,
        m: int,
        n: int,
        k: int,
        shift: Optional[int] = None,
        relu: bool = False,
        timeout_ms: int = 1000,
    ) -> None: ...

Heap = Region

def open_memory(name: str, bytes: Optional[int] = None, *, port: Optional[_Port] = None) -> Region:
    """Memory by its name, 16 MiB where `bytes` are not given. A device that it belongs to is opened with it."""
def open_device(name: str) -> Device: ...
def inventory() -> list[_Entry]:
    """What this machine has, and why it lacks the rest. `what` is "memory" or "device"; `state` "ready", "blocked", "absent"."""
def allocate(
    shape: Shape,
    dtype: Any = "uint32",
    *,
    memory: Union[Region, str, None] = None,
    align: int = 256,
    zeroed: bool = True,
    heap: Union[Region, str, None] = None,
) -> Buffer: ...
def info() -> dict[str, Any]: ...

//! DMA memory, opened by its name, and pools of equal arrays in it. Memory is closed when nothing
//! of it is left.

use crate::buffer::Buffer;
use crate::error::{Refusal, raised};
use crate::layout::{Dtype, Layout, dims};
use crate::local::{Closable, ProcessLocal};
use crate::memory::{Memory, Wiring};
use crate::names;
use crate::opening::Opening;
use crate::tensor::Imported;
use contigo::linux::same_process;
use contigo::names::MemoryName;
use contigo::{Align, Error};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use std::sync::Arc;

/// The most arrays that a pool has: finding a free one looks at 17 words at most.
const MAX_SLOTS: usize = 1024;

/// DMA memory that was opened by its name. `close()`, the end of a `with`, and the end of its last
/// handle let go of it; the memory goes with the last of its arrays and pools. An array that a
/// device still has keeps it until the process ends.
///
/// `open_memory` and `Device.memory` make one.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Region {
    memory: Closable<Memory>,
    name: MemoryName,
}

impl Region {
    /// `len_bytes` at least, in multiples of 4,096 and at one: for a driver's own.
    pub(crate) fn driver_memory(&self, len_bytes: usize) -> Result<contigo::CpuBuf, Refusal> {
        let memory = self.memory.get()?;
        let region = memory.region()?;
        let too_large =
            Error::Exhausted { need_bytes: len_bytes, capacity_bytes: region.len_bytes() };
        Align::PAGE
            .round_up(len_bytes)
            .ok_or(too_large)
            .and_then(|len_bytes| region.alloc(len_bytes, Align::PAGE))
            .map_err(raised)
    }

    /// `name`, from `device`, or from the device that it belongs to, which is opened.
    pub(crate) fn open(
        name: &str,
        device: Option<&Opening>,
        bytes: Option<usize>,
        port: Option<Wiring>,
    ) -> PyResult<Self> {
        // Before anything is opened: the process that asks first is the owner, and no child is.
        same_process().map_err(raised)?;
        let name = names::memory(name)?;
        let own = match (device, name.device()) {
            (None, Some(owner)) => Some(Opening::of(&owner)?),
            _ => None,
        };
        let device = device.or(own.as_ref()).map(|opening| &opening.device);
        Ok(Self {
            memory: Closable::new(Memory::open(&name, device, bytes, port)?, "region"),
            name,
        })
    }
}

/// Opens memory by its name: "u-dma-buf:udmabuf0", "dma-heap:linux,cma", "hugetlb", "cuda",
/// "vulkan", "sim:7"; `inventory()` lists those that this machine has. Memory that belongs to a
/// device ("contigo:f8003000", "vfio:0000:01:00.0") opens that too, for itself: where the device's
/// registers are used as well, it is `Device(name).memory(…)`.
///
/// `bytes` is how much of it is opened, 16 MiB where nothing is said; of a block whose size is
/// fixed it is the least. `port` is how the accelerator reaches it: "zynq-hp0", or (name, offset,
/// address bits, coherent). Only what the kernel or a simulated board does not know is taken from
/// it.
#[pyfunction]
#[pyo3(signature = (name, bytes=None, *, port=None))]
pub(crate) fn open_memory(
    name: &str,
    bytes: Option<usize>,
    port: Option<Wiring>,
) -> PyResult<Region> {
    Region::open(name, None, bytes, port)
}

#[pymethods]
impl Region {
    /// An array of this memory: `shape` is a number or a tuple, `dtype` a name ("float32", "f4") or
    /// NumPy's type, in this machine's byte order; `align` in bytes. Its elements are what its last
    /// owner left; `zeroed` clears them.
    #[pyo3(
        signature = (shape, dtype=Dtype::WORDS, *, align=256, zeroed=true),
        text_signature = "(shape, dtype=\"uint32\", *, align=256, zeroed=True)"
    )]
    fn allocate(
        &self,
        shape: &Bound<'_, PyAny>,
        dtype: Dtype,
        align: usize,
        zeroed: bool,
    ) -> PyResult<Buffer> {
        let layout = Layout::new(&dims(shape)?, dtype)?;
        Ok(Buffer::new(&self.memory.get()?, layout, align, zeroed)?)
    }

    /// `slots` equal arrays of this memory, 1 to 1,024: frames that are taken and come back, at
    /// full rate. `shape`, `dtype` and `align` as `allocate` has them.
    #[pyo3(signature = (shape, dtype, slots, *, align=256))]
    fn pool(
        &self,
        shape: &Bound<'_, PyAny>,
        dtype: Dtype,
        slots: usize,
        align: usize,
    ) -> PyResult<Pool> {
        let layout = Layout::new(&dims(shape)?, dtype)?;
        Ok(Pool::new(&self.memory.get()?, layout, slots, align)?)
    }

    /// A framework's array whose elements lie in this region, wherever they came from: no copy, and
    /// its bus address. `contract` says what it must be: "tvm" (64 bytes, compact), "dlpack" (256
    /// bytes), "onnxruntime", "numpy", "any". Memory that is not of this region is refused.
    #[pyo3(signature = (array, contract="any"))]
    #[allow(clippy::wrong_self_convention, reason = "the array API's name")]
    fn from_dlpack(&self, array: &Bound<'_, PyAny>, contract: &str) -> PyResult<Imported> {
        Imported::new(&self.memory.get()?, array, contract)
    }

    /// Its name, as it was opened.
    #[getter]
    fn name(&self) -> String {
        self.name.to_string()
    }

    /// Bytes of the block.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.memory.get()?.region()?.len_bytes())
    }

    /// The counts of the work in it so far: bytes copied by the runtime, bytes synchronised, calls
    /// of either kind.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.memory.get()?.region()?.stats();
        let counts = [
            ("bytes_copied", stats.bytes_copied),
            ("bytes_synced_for_device", stats.bytes_synced_for_device),
            ("bytes_synced_for_cpu", stats.bytes_synced_for_cpu),
            ("syncs", stats.syncs),
            ("carves", stats.carves),
        ];
        counts.into_py_dict(py)
    }

    /// Lets go of it. The memory goes with the last of its arrays, pools and drivers.
    fn close(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.memory.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        match self.size() {
            Ok(size) => format!("contigo.Region('{}', {size})", self.name),
            Err(_) => format!("contigo.Region('{}'{})", self.name, self.memory.state()),
        }
    }
}

/// Equal arrays, carved once: a frame is taken and comes back with one atomic operation each, and
/// no search.
///
/// An array comes back when the last of its views and handles is gone, or by `freebuffer()`. The
/// memory is the region's again when the pool and all of its arrays are gone.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Pool {
    memory: Arc<Memory>,
    slots: ProcessLocal<contigo::Pool>,
    count: usize,
    /// Where an array begins in its slot, in bytes.
    skip: usize,
    layout: Layout,
}

impl Pool {
    fn new(
        memory: &Arc<Memory>,
        layout: Layout,
        slots: usize,
        align: usize,
    ) -> Result<Self, Refusal> {
        let region = memory.region()?;
        let len_bytes = layout.len_bytes()?;
        if !(1..=MAX_SLOTS).contains(&slots) {
            let (name, value, max) = ("slots", slots as u64, MAX_SLOTS as u64);
            return Err(raised(Error::Argument { name, value, min: 1, max, multiple_of: 1 }));
        }
        // Each slot begins where the first does: at a multiple of `align`, and of a line.
        let align = Align::new(align).map_err(raised)?.max(region.line());
        // The runtime aligns the first one as DLPack wants. Where that is not enough, a slot has
        // room to begin the array later.
        let room = if align > Align::DLPACK { align.bytes() } else { 0 };
        let slot_bytes = len_bytes.max(1).checked_add(room).and_then(|bytes| align.round_up(bytes));
        let too_large = |need_bytes| {
            raised(Error::Exhausted { need_bytes, capacity_bytes: region.len_bytes() })
        };
        let slot_bytes = slot_bytes.ok_or_else(|| too_large(usize::MAX))?;
        let pool = region.pool(slots, slot_bytes).map_err(raised)?;
        let first = pool.take().map(|mut buf| buf.as_mut_ptr().addr()).map_err(raised)?;
        let skip = first.next_multiple_of(align.bytes()) - first;
        if skip > room {
            return Err(too_large(slot_bytes * slots + skip));
        }
        let (memory, slots, count) = (Arc::clone(memory), ProcessLocal::new(pool), slots);
        Ok(Self { memory, slots, count, skip, layout })
    }
}

#[pymethods]
impl Pool {
    /// A free array. Its elements are what its last owner left. `MemoryError` where all are out.
    fn take(&self) -> Result<Buffer, Refusal> {
        let buf = self.slots.get()?.take().map_err(raised)?;
        let buf = buf.slice(self.skip..).map_err(raised)?;
        Buffer::of(&self.memory, buf, self.layout)
    }

    /// Elements of each dimension of an array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.layout.dims(py)
    }

    /// The type of an element: "float32".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.layout.dtype.name
    }

    /// How many arrays are free now.
    #[getter]
    fn free(&self) -> PyResult<usize> {
        Ok(self.count - self.slots.get()?.taken())
    }

    fn __repr__(&self) -> String {
        let free = self.free().map_or_else(
            |_| "another process's".into(),
            |free| format!("{free} of {} free", self.count),
        );
        format!("contigo.Pool({}, {free})", self.layout.describe())
    }

    /// How many arrays there are.
    fn __len__(&self) -> usize {
        self.count
    }
}

//! A region: DMA memory, opened by its name. It is closed when nothing of it is left.

use crate::{
    buffer::Buffer,
    dtype::Dtype,
    error::{Refusal, raised, raised_as},
    imported::Imported,
    mine::Mine,
    names,
    open::Open,
    opening::Opening,
    pool::Pool,
    port::Wiring,
};
use contigo::{
    Align, Backend, Error, Limits, Port,
    dlpack::abi::device,
    linux::same_process,
    mem::Requirements,
    names::{Inventory, MemoryName, OpenDevice},
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::sync::Arc;

/// Bytes of a block, where nothing is said.
const DEFAULT_BYTES: usize = 16 << 20;

/// How many arrays and pools of one region there can be at once: the most that the runtime keeps
/// account of, in 272 KiB.
const LIMITS: Limits = Limits { allocations: 16_384 };

/// The part of a region that its arrays and pools know. The memory is unmapped when the last of
/// them is gone.
pub(crate) struct Memory {
    region: Mine<contigo::Region>,
    pub(crate) port: Option<Port>,
    /// DLPack's type of this memory's device, for the CPU's view: the CPU, or memory that CUDA
    /// pinned.
    pub(crate) device_type: i32,
    /// The CPU's address of the first byte.
    pub(crate) first_byte: usize,
}

impl crate::lock::Plain for Memory {}

impl Memory {
    /// Opens it, from `device` or alone. Without `bytes`, a smaller block whose size is fixed is
    /// taken as it is.
    fn open(
        name: &MemoryName,
        device: Option<&OpenDevice>,
        bytes: Option<usize>,
        port: Option<Wiring>,
    ) -> PyResult<Arc<Self>> {
        let open = |len_bytes| {
            device.map_or_else(|| name.open(len_bytes), |device| device.memory(name, len_bytes))
        };
        let opened = match (open(bytes.unwrap_or(DEFAULT_BYTES)), bytes) {
            (Err(Error::BlockSize { len_bytes, .. }), None) => open(len_bytes),
            (opened, _) => opened,
        };
        let region = opened.and_then(|memory| {
            let first_byte = memory.mapping().cpu.addr().get();
            Ok((contigo::Region::with(memory, Requirements::default(), LIMITS)?, first_byte))
        });
        let (region, first_byte) = region.map_err(|error| {
            raised_as(error, format!("{name}: {}", Inventory::here().memory_error(name, error)))
        })?;
        let given =
            port.map(|Wiring(port)| device.map_or(port, |device| device.seen_through(port)));
        Ok(Arc::new(Self {
            device_type: if region.name().starts_with("cuda") {
                device::CUDA_HOST
            } else {
                device::CPU
            },
            region: Mine::new(region),
            port: given.or_else(|| device.and_then(OpenDevice::port)),
            first_byte,
        }))
    }

    /// `ForkedError` in a child.
    pub(crate) fn region(&self) -> Result<&contigo::Region, Refusal> {
        self.region.get()
    }
}

/// A number, or a tuple of numbers.
fn dims(shape: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let dims = match shape.extract::<i64>() {
        Ok(dim) => vec![dim],
        Err(_) => shape
            .cast::<PyTuple>()
            .map_or_else(|_| shape.extract::<Vec<i64>>(), |tuple| tuple.extract())?,
    };
    match dims.iter().find(|dim| **dim < 0) {
        Some(dim) => Err(PyValueError::new_err(format!(
            "shape {shape}: a dimension is 0 or more elements, and not {dim}"
        ))),
        None => Ok(dims),
    }
}

/// DMA memory that was opened by its name. `close()`, the end of a `with`, and the end of its last
/// handle let go of it; the memory goes with the last of its arrays and pools. An array that a
/// device still has keeps it until the process ends.
///
/// `open_memory` and `Device.memory` make one.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Region {
    memory: Open<Memory>,
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
        Ok(Self { memory: Open::new(Memory::open(&name, device, bytes, port)?, "region"), name })
    }
}

/// Opens memory by its name: "u-dma-buf:udmabuf0", "dma-heap:linux,cma", "hugetlb", "cuda",
/// "vulkan", "sim:7"; `inventory()` lists those that this machine has. Memory that belongs to a
/// device ("guard:f8003000", "vfio:0000:01:00.0") opens that too, for itself: where the device's
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
    #[pyo3(signature = (shape, dtype=Dtype::WORDS, *, align=256, zeroed=true), text_signature = "(shape, dtype=\"uint32\", *, align=256, zeroed=True)")]
    fn allocate(
        &self,
        shape: &Bound<'_, PyAny>,
        dtype: Dtype,
        align: usize,
        zeroed: bool,
    ) -> PyResult<Buffer> {
        Buffer::new(&self.memory.get()?, &dims(shape)?, dtype, align, zeroed)
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
        Pool::new(&self.memory.get()?, &dims(shape)?, dtype, slots, align)
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
        Ok(
            crate::shared::fields!(py, stats => bytes_copied, bytes_synced_for_device, bytes_synced_for_cpu, syncs, carves),
        )
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

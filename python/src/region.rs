//! A region: DMA memory, opened by its name. It stays open until the process ends: arrays of it may
//! be anywhere.

use crate::{
    buffer::Buffer,
    dtype::Dtype,
    error::{Refusal, raised, raised_as},
    imported::Imported,
    lock::Lock,
    mine::Mine,
    names,
    opening::Opening,
    pool::Pool,
    port::Wiring,
    renamed::renamed,
};
use contigo::{
    Align, CpuBuf, Error, Port,
    dlpack::abi::device,
    names::{AnyMemory, Inventory, MemoryName, OpenDevice},
    same_process,
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};

/// Bytes of a block, where nothing is said.
const DEFAULT_BYTES: usize = 16 << 20;

/// The part of a region that each of its buffers knows.
pub(crate) struct Memory {
    pub(crate) region: contigo::Region<AnyMemory>,
    pub(crate) port: Option<Port>,
    /// Buffers that came back, whole. The next one that fits is used again.
    free: Lock<Vec<CpuBuf<'static>>>,
    /// Memory of drivers' own, a slot each.
    own: Lock<Vec<&'static contigo::Pool<'static, 1>>>,
}

impl Memory {
    /// Opens it for good, from `device` or alone. Where nobody says how much, a smaller block whose
    /// size is fixed is taken as it is.
    fn open(name: &MemoryName, device: Option<&Opening>, bytes: Option<usize>, port: Option<Wiring>) -> PyResult<&'static Self> {
        let device = device.map(Opening::for_good);
        let open = |len_bytes| device.map_or_else(|| name.open(len_bytes), |device| device.memory(name, len_bytes));
        let opened = match (open(bytes.unwrap_or(DEFAULT_BYTES)), bytes) {
            (Err(Error::BlockSize { len_bytes, .. }), None) => open(len_bytes),
            (opened, _) => opened,
        };
        let region = opened.and_then(|memory| Ok(contigo::Region::new(memory)?));
        let region = region.map_err(|error| raised_as(error, format!("{name}: {}", Inventory::here().memory_error(name, error))))?;
        let given = port.map(|Wiring(port)| device.map_or(port, |device| device.seen_through(port)));
        Ok(Box::leak(Box::new(Self {
            region,
            port: given.or_else(|| device.and_then(OpenDevice::port)),
            free: Lock::new(Vec::new()),
            own: Lock::new(Vec::new()),
        })))
    }

    /// DLPack's type of this memory's device, for the CPU's view: the CPU, or memory that CUDA
    /// pinned.
    pub(crate) fn device_type(&self) -> i32 {
        if self.region.name().starts_with("cuda") { device::CUDA_HOST } else { device::CPU }
    }

    /// Memory of a driver's own, `len_bytes` at least, at a multiple of 4,096: it comes back when
    /// the driver is gone.
    pub(crate) fn own(&'static self, len_bytes: usize) -> Result<CpuBuf<'static>, Refusal> {
        self.own.with(|own| {
            if let Some(buf) = own.iter().filter(|pool| pool.slot_bytes() >= len_bytes).find_map(|pool| pool.take().ok()) {
                return Ok(buf);
            }
            let len_bytes = len_bytes.next_multiple_of(Align::PAGE.bytes());
            let pool = contigo::Pool::new(self.region.carve(len_bytes, Align::PAGE).map_err(raised)?, len_bytes).map_err(raised)?;
            let pool: &'static contigo::Pool<'static, 1> = Box::leak(Box::new(pool));
            own.push(pool);
            pool.take().map_err(raised)
        })
    }

    /// A buffer of so many bytes: one that came back, or a new piece.
    pub(crate) fn take(&'static self, len_bytes: usize, align: Align) -> Result<CpuBuf<'static>, Refusal> {
        let need = len_bytes.max(1).next_multiple_of(self.region.line().bytes());
        let fits = |buf: &CpuBuf<'static>| {
            let addr = buf.view::<u8>().map_or(1, |bytes| bytes.as_ptr().addr());
            buf.len_bytes() >= need && addr.is_multiple_of(align.bytes())
        };
        self.free.with(|free| {
            let best = free.iter().enumerate().filter(|(_, buf)| fits(buf)).min_by_key(|(_, buf)| buf.len_bytes()).map(|(at, _)| at);
            let Some(at) = best else {
                return Ok(self.region.carve(need, align).map_err(raised)?.into_buf());
            };
            let buf = free.swap_remove(at);
            if buf.len_bytes() == need {
                return Ok(buf);
            }
            // The rest stays free. A buffer that cannot be cut any further is given whole.
            Ok(match buf.split_at(need) {
                Ok((buf, rest)) => {
                    free.push(rest);
                    buf
                }
                Err(refused) => refused.returned,
            })
        })
    }

    pub(crate) fn give_back(&self, buf: CpuBuf<'static>) {
        self.free.with(|free| free.push(buf.whole()));
    }
}

/// A number, or a tuple of numbers.
fn dims(shape: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let dims = match shape.extract::<i64>() {
        Ok(dim) => vec![dim],
        Err(_) => shape.cast::<PyTuple>().map_or_else(|_| shape.extract::<Vec<i64>>(), |tuple| tuple.extract())?,
    };
    match dims.iter().find(|dim| **dim < 0) {
        Some(dim) => Err(PyValueError::new_err(format!("shape {shape}: a dimension is 0 or more elements, and not {dim}"))),
        None => Ok(dims),
    }
}

/// DMA memory that was opened by its name. It stays open until the process ends.
///
/// `open_memory` and `Device.memory` make one. The class itself does too, as `Heap` did in 0.1, for
/// this release; its `kernel_port` stands after `@guard:` in a name now.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Region {
    memory: Mine<&'static Memory>,
    name: MemoryName,
}

impl Region {
    pub(crate) fn memory(&self) -> Result<&'static Memory, Refusal> {
        Ok(self.memory.get()?)
    }

    /// `name`, from `device`, or from the device that it belongs to, which is opened.
    pub(crate) fn open(name: &str, device: Option<&Opening>, bytes: Option<usize>, port: Option<Wiring>) -> PyResult<Self> {
        // Before anything is opened: whoever asks first has the memory of this process.
        same_process().map_err(raised)?;
        let name = names::memory(name)?;
        let own = match (device, name.device()) {
            (None, Some(owner)) => Some(Opening::of(&owner)?),
            _ => None,
        };
        Ok(Self { memory: Mine::new(Memory::open(&name, device.or(own.as_ref()), bytes, port)?), name })
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
pub(crate) fn open_memory(name: &str, bytes: Option<usize>, port: Option<Wiring>) -> PyResult<Region> {
    Region::open(name, None, bytes, port)
}

#[pymethods]
impl Region {
    #[new]
    #[pyo3(signature = (name, bytes=None, *, kernel_port=None, port=None))]
    fn new(py: Python<'_>, name: &str, bytes: Option<usize>, kernel_port: Option<&str>, port: Option<Wiring>) -> PyResult<Self> {
        let name = kernel_port.map_or(name.to_owned(), |guard| format!("{name}@guard:{guard}"));
        renamed(py, "Heap(name), or Region(name),", &format!("open_memory({name:?})"))?;
        Self::open(&name, None, bytes, port)
    }

    /// An array of this memory: `shape` is a number or a tuple, `dtype` a name ("float32", "f4") or
    /// NumPy's type, in this machine's byte order; `align` in bytes. Its elements are what its last
    /// owner left; `zeroed` clears them.
    #[pyo3(signature = (shape, dtype=Dtype::WORDS, *, align=256, zeroed=true), text_signature = "(shape, dtype=\"uint32\", *, align=256, zeroed=True)")]
    fn allocate(&self, shape: &Bound<'_, PyAny>, dtype: Dtype, align: usize, zeroed: bool) -> PyResult<Buffer> {
        Buffer::new(self.memory.get()?, &dims(shape)?, dtype, align, zeroed)
    }

    /// `slots` equal arrays of this memory, 1 to 1,024: frames that are taken and come back, at
    /// full rate. `shape`, `dtype` and `align` as `allocate` has them.
    #[pyo3(signature = (shape, dtype, slots, *, align=256))]
    fn pool(&self, shape: &Bound<'_, PyAny>, dtype: Dtype, slots: usize, align: usize) -> PyResult<Pool> {
        Pool::new(self.memory.get()?, &dims(shape)?, dtype, slots, align)
    }

    /// A framework's array whose elements lie in this region, wherever they came from: no copy, and
    /// its bus address. `contract` says what it must be: "tvm" (64 bytes, compact), "dlpack" (256
    /// bytes), "onnxruntime", "numpy", "any". Memory that is not of this region is refused.
    #[pyo3(signature = (array, contract="any"))]
    #[allow(clippy::wrong_self_convention, reason = "the array API's name")]
    fn from_dlpack(&self, array: &Bound<'_, PyAny>, contract: &str) -> PyResult<Imported> {
        Imported::new(self.memory.get()?, array, contract)
    }

    /// Its name, as it was opened.
    #[getter]
    fn name(&self) -> String {
        self.name.to_string()
    }

    /// Bytes of the block.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.memory.get()?.region.len_bytes())
    }

    /// The counts of the work in it so far: bytes copied by the runtime, bytes synchronised, calls
    /// of either kind.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.memory.get()?.region.stats();
        Ok(crate::shared::fields!(py, stats => bytes_copied, bytes_synced_for_device, bytes_synced_for_cpu, syncs, carves))
    }

    fn __repr__(&self) -> String {
        let size = self.size().map_or_else(|_| "another process's".into(), |size| size.to_string());
        format!("contigo.Region('{}', {size})", self.name)
    }
}

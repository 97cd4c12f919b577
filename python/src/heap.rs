#![allow(unsafe_code, reason = "one type for memory of every kind")]
//! Memory, opened by a name. It stays open until the process ends: arrays of it may be anywhere.

use crate::{buffer::Buffer, error::raised, gemm8::Gemm8, imported::Imported, mine::Mine, pool::Pool};
#[cfg(target_pointer_width = "64")]
use contigo::cuda::{Cuda, CudaHost, Gpu};
use contigo::{
    Align, Backend, CpuBuf, DmaHeap, HugeTlb, KernelPort, Mapping, Port, Region, Result as RuntimeResult, Segment, UDmaBuf,
    dlpack::abi::device, same_process, sim::SimBoard,
};
#[cfg(target_pointer_width = "64")]
use contigo_gemm8::cuda::Gemm8Module;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};
#[cfg(target_pointer_width = "64")]
use std::sync::OnceLock;
use std::{
    fs,
    ops::Range,
    sync::{Mutex, PoisonError},
};

/// Bytes of a simulated board's memory, and of a heap's block, where nothing is said.
const DEFAULT_BYTES: usize = 16 << 20;

/// A block of whatever kind.
pub(crate) struct Any(Box<dyn Backend>);

// SAFETY: every call goes to one backend, which keeps what `Backend` promises, and stays where it is when this value is moved.
unsafe impl Backend for Any {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn mapping(&self) -> Mapping {
        self.0.mapping()
    }
    fn segment(&self, offset_bytes: usize) -> RuntimeResult<Segment> {
        self.0.segment(offset_bytes)
    }
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: contigo::Direction) -> RuntimeResult<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.sync_for_device(range, direction) }
    }
    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: contigo::Direction) -> RuntimeResult<()> {
        // SAFETY: as above.
        unsafe { self.0.sync_for_cpu(range, direction) }
    }
    fn held_by(&self, range: Range<usize>, holder: contigo::sim::Holder<'_>) {
        self.0.held_by(range, holder);
    }
}

/// What every buffer of a heap knows of it.
pub(crate) struct Memory {
    pub(crate) region: Region<Any>,
    pub(crate) device: Device,
    pub(crate) port: Option<Port>,
    /// Buffers that came back, whole. The next one that fits is used again.
    free: Mutex<Vec<CpuBuf<'static>>>,
    /// On a GPU: the kernels, once an engine was asked for.
    #[cfg(target_pointer_width = "64")]
    module: OnceLock<Gemm8Module<'static>>,
}

/// Who works on the memory, as far as the runtime knows it.
#[derive(Clone, Copy)]
pub(crate) enum Device {
    Sim(&'static SimBoard),
    #[cfg(target_pointer_width = "64")]
    Gpu(&'static Gpu<'static>),
    /// What the program drives.
    Other,
}

impl Device {
    /// How it reaches the memory.
    fn port(self) -> Option<Port> {
        match self {
            Self::Sim(board) => Some(board.port()),
            #[cfg(target_pointer_width = "64")]
            Self::Gpu(gpu) => Some(gpu.port()),
            Self::Other => None,
        }
    }
}

impl Memory {
    /// DLPack's type of this memory's device, for the CPU's view: the CPU, or memory that CUDA pinned.
    pub(crate) fn device_type(&self) -> i32 {
        if self.region.name().starts_with("cuda") { device::CUDA_HOST } else { device::CPU }
    }

    /// The kernels: those that are loaded, or what `load` makes. Two threads at once both load them, and one of the two is given back.
    #[cfg(target_pointer_width = "64")]
    pub(crate) fn module(
        &'static self,
        load: impl FnOnce() -> contigo::Result<Gemm8Module<'static>>,
    ) -> contigo::Result<&'static Gemm8Module<'static>> {
        if let Some(module) = self.module.get() {
            return Ok(module);
        }
        let loaded = load()?;
        Ok(self.module.get_or_init(|| loaded))
    }

    /// A buffer of so many bytes: one that came back, or a new piece.
    pub(crate) fn take(&'static self, len_bytes: usize, align: Align) -> PyResult<CpuBuf<'static>> {
        let need = len_bytes.max(1).next_multiple_of(self.region.line().bytes());
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buf: &CpuBuf<'static>| {
            let addr = buf.view::<u8>().map_or(1, |bytes| bytes.as_ptr().addr());
            buf.len_bytes() >= need && addr.is_multiple_of(align.bytes())
        };
        let best = free.iter().enumerate().filter(|(_, buf)| fits(buf)).min_by_key(|(_, buf)| buf.len_bytes()).map(|(at, _)| at);
        let Some(at) = best else {
            return Ok(self.region.carve(need, align).map_err(raised)?.into_buf());
        };
        let buf = free.swap_remove(at);
        if buf.len_bytes() == need {
            return Ok(buf);
        }
        // What is not needed stays free. A buffer that cannot be cut any further is given whole.
        Ok(match buf.split_at(need) {
            Ok((buf, rest)) => {
                free.push(rest);
                buf
            }
            Err(refused) => refused.returned,
        })
    }

    pub(crate) fn give_back(&self, buf: CpuBuf<'static>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(buf.whole());
    }
}

/// A number, or a tuple of numbers.
fn dims(shape: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    match shape.extract::<i64>() {
        Ok(dim) => Ok(vec![dim]),
        Err(_) => shape.cast::<PyTuple>().map_or_else(|_| shape.extract::<Vec<i64>>(), |tuple| tuple.extract()),
    }
}

/// Contiguous DMA memory, by a name: "sim", "sim:SEED", "u-dma-buf:NAME", "dma-heap:NAME", "hugetlb", "cuda", "cuda:N".
///
/// `bytes` is how much of it is opened (u-dma-buf: all of the block). `kernel_port` names a port of the kernel module contigo, for which a
/// dma-heap's block is allocated. `port` is how the accelerator reaches it: (name, offset, address bits, coherent); a simulated
/// board has its own. The heap stays open until the process ends.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Heap {
    memory: Mine<&'static Memory>,
    name: String,
}

#[pymethods]
impl Heap {
    #[new]
    #[pyo3(signature = (name, bytes=None, *, kernel_port=None, port=None))]
    fn new(name: &str, bytes: Option<usize>, kernel_port: Option<&str>, port: Option<(String, u64, u32, bool)>) -> PyResult<Self> {
        // Before anything is opened: whoever asks first has the memory of this process.
        same_process().map_err(raised)?;
        let len_bytes = bytes.unwrap_or(DEFAULT_BYTES);
        let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
        let mut device = Device::Other;
        let backend: Box<dyn Backend> = match (kind, rest) {
            ("sim", seed) => {
                let seed = if seed.is_empty() { Ok(1) } else { seed.parse() };
                let seed = seed.map_err(|_| PyValueError::new_err(format!("{name}: the seed is no number")))?;
                let opened: &'static SimBoard = Box::leak(Box::new(SimBoard::new(seed)));
                device = Device::Sim(opened);
                Box::new(opened.memory(len_bytes).map_err(raised)?)
            }
            ("u-dma-buf", block) => Box::new(UDmaBuf::open(block).map_err(raised)?),
            ("dma-heap", heap) => match kernel_port {
                Some(port) => {
                    let port: &'static KernelPort = Box::leak(Box::new(KernelPort::open(port).map_err(raised)?));
                    Box::new(DmaHeap::allocate_for(port, heap, len_bytes).map_err(raised)?)
                }
                None => Box::new(DmaHeap::allocate(heap, len_bytes).map_err(raised)?),
            },
            ("hugetlb", "") => Box::new(HugeTlb::new(len_bytes).map_err(raised)?),
            #[cfg(target_pointer_width = "64")]
            ("cuda", ordinal) => {
                let ordinal = if ordinal.is_empty() { Ok(0) } else { ordinal.parse() };
                let ordinal = ordinal.map_err(|_| PyValueError::new_err(format!("{name}: the GPU's ordinal is no number")))?;
                let cuda: &'static Cuda = Box::leak(Box::new(Cuda::load().map_err(raised)?));
                let gpu: &'static Gpu<'static> = Box::leak(Box::new(Gpu::primary(cuda, ordinal).map_err(raised)?));
                device = Device::Gpu(gpu);
                Box::new(CudaHost::allocate(gpu, len_bytes, Align::PAGE).map_err(raised)?)
            }
            _ => {
                let known = "sim, sim:SEED, u-dma-buf:NAME, dma-heap:NAME, hugetlb, cuda, cuda:N";
                return Err(PyValueError::new_err(format!("there is no heap {name}; these are: {known}")));
            }
        };
        let region = Region::new(Any(backend)).map_err(raised)?;
        let given = port.map(|(name, offset, addr_bits, coherent)| {
            let name: &'static str = Box::leak(name.into_boxed_str());
            Port { name, bus: contigo::Bus::Soc, offset, addr_bits, window: (0, u64::MAX), coherent }
        });
        let port = given.or(device.port());
        let memory = Box::leak(Box::new(Memory {
            region,
            device,
            port,
            free: Mutex::default(),
            #[cfg(target_pointer_width = "64")]
            module: OnceLock::new(),
        }));
        Ok(Self { memory: Mine::new(memory), name: name.into() })
    }

    /// An array of this memory: `shape` is a number or a tuple, `dtype` a name ("float32") or NumPy's type; `align` in bytes. Its elements are what
    /// its last owner left; `zeroed` clears them.
    #[pyo3(signature = (shape, dtype, *, align=256, zeroed=true))]
    fn allocate(&self, shape: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>, align: usize, zeroed: bool) -> PyResult<Buffer> {
        Buffer::new(self.memory.get()?, &dims(shape)?, dtype, align, zeroed)
    }

    /// `slots` equal arrays of this memory, 1 to 1,024: frames that are taken and come back, at
    /// full rate. `shape`, `dtype` and `align` as `allocate` has them.
    #[pyo3(signature = (shape, dtype, slots, *, align=256))]
    fn pool(&self, shape: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>, slots: usize, align: usize) -> PyResult<Pool> {
        Pool::new(self.memory.get()?, &dims(shape)?, dtype, slots, align)
    }

    /// A framework's array whose elements lie in this heap, wherever they came from: no copy, and its bus address. `contract` says what it must be:
    /// "tvm" (64 bytes, compact), "dlpack" (256 bytes), "onnxruntime", "numpy", "any". Memory that is not of this heap is refused.
    #[pyo3(signature = (array, contract="any"))]
    #[allow(clippy::wrong_self_convention, reason = "the array API's name")]
    fn from_dlpack(&self, array: &Bound<'_, PyAny>, contract: &str) -> PyResult<Imported> {
        Imported::new(self.memory.get()?, array, contract)
    }

    /// The matrix engine of the simulated board, or of the GPU.
    fn gemm8(&self) -> PyResult<Gemm8> {
        Gemm8::new(self.memory.get()?)
    }

    /// Its name, as it was opened.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the block.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.memory.get()?.region.len_bytes())
    }

    /// What was done in it so far: bytes copied by the runtime, bytes synchronised, calls of either kind.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.memory.get()?.region.stats();
        let dict = PyDict::new(py);
        dict.set_item("bytes_copied", stats.bytes_copied)?;
        dict.set_item("bytes_synced_for_device", stats.bytes_synced_for_device)?;
        dict.set_item("bytes_synced_for_cpu", stats.bytes_synced_for_cpu)?;
        dict.set_item("syncs", stats.syncs)?;
        dict.set_item("carves", stats.carves)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let size = self.size().map_or_else(|_| "another process's".into(), |size| size.to_string());
        format!("contigo.Heap({:?}, {size})", self.name)
    }
}

/// What this machine has: names for `Heap`.
#[pyfunction]
pub(crate) fn info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    let free = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let dict = PyDict::new(py);
    dict.set_item("version", env!("CARGO_PKG_VERSION"))?;
    dict.set_item("u-dma-buf", [names("/sys/class/u-dma-buf"), names("/sys/class/udmabuf")].concat())?;
    dict.set_item("dma-heap", names("/dev/dma_heap"))?;
    dict.set_item("kernel ports", names("/sys/class/contigo"))?;
    dict.set_item("free huge pages", free.ok().and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0))?;
    Ok(dict)
}

//! An array in DMA memory, the CPU's or a device's.

use crate::{
    dtype::Dtype,
    error::{ContigoError, raised},
    export::{self, Counted},
    handover::Handover,
    mine::Mine,
    operand::Operand,
    region::Memory,
};
use contigo::{
    Align, Bus, CpuBuf, DevBuf, Direction,
    dlpack::{
        Shape,
        abi::{DlDevice, device},
    },
};
use pyo3::{
    exceptions::{PyBufferError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

/// What all handles of an array share: the memory goes back when the last of them is gone.
pub(crate) struct Inner {
    memory: &'static Memory,
    home: Home,
    state: Mine<Mutex<State>>,
    /// NumPy's arrays and DLPack's tensors of it. Raised under the state's lock.
    views: AtomicUsize,
    /// Nobody but the views wants it any more: a frame that was let go.
    let_go: AtomicBool,
    ptr: *mut u8,
    len_bytes: usize,
    /// What a device has to know; by the region's port.
    address: Option<u64>,
}

// SAFETY: `ptr` is an address in memory that stays mapped until the process ends, and is only handed on.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Send for Inner {}
// SAFETY: as above; everything else is behind a lock or an atomic.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Sync for Inner {}

/// Where the memory goes.
#[derive(Clone, Copy)]
pub(crate) enum Home {
    /// To the region's free pieces.
    Region,
    /// To its pool, which dropping it does.
    Pool,
}

/// Whose it is.
enum State {
    Cpu(CpuBuf<'static>),
    /// By which hand-over.
    Device(DevBuf<'static>, u64),
    /// In a job; or lost to a device that would not stop.
    Job,
    /// Freed.
    Gone,
}

/// How many hand-overs there were.
static HANDOVERS: AtomicU64 = AtomicU64::new(0);

fn in_a_job() -> PyErr {
    PyBufferError::new_err("this buffer is in a job: it is the CPU's again when the job has ended, or the device was stopped")
}

impl Inner {
    /// As [`Memory::device_type`].
    pub(crate) fn device_type(&self) -> i32 {
        self.memory.device_type()
    }

    /// The device behind the region's port, as DLPack names it: a GPU, or one that has no name
    /// there.
    pub(crate) fn device(&self) -> DlDevice {
        match self.memory.port.map(|port| port.bus) {
            Some(Bus::Gpu(ordinal)) => DlDevice { device_type: device::CUDA, device_id: ordinal.cast_signed() },
            _ => DlDevice { device_type: device::EXT_DEV, device_id: 0 },
        }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        Ok(self.state.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    pub(crate) fn view_gone(&self) {
        // Release: what the view's user did to the bytes is done before they are given away (`take`, Acquire).
        let last = self.views.fetch_sub(1, Ordering::Release) == 1;
        if last && self.let_go.load(Ordering::Relaxed) {
            self.goes_home();
        }
    }

    /// Back to where it came from, where it is the CPU's and nobody looks.
    fn goes_home(&self) {
        if let Ok(buf) = self.take() {
            go_home(buf, self.home, self.memory);
        }
    }

    /// Is this the process that made it?
    pub(crate) fn here(&self) -> PyResult<()> {
        self.state.get().map(drop)
    }

    /// One view more of the device's address, while it is a device's by this hand-over.
    pub(crate) fn device_view(self: &Arc<Self>, handover: u64) -> PyResult<Counted> {
        match &*self.lock()? {
            State::Device(_, current) if *current == handover => {
                self.views.fetch_add(1, Ordering::Relaxed);
                Ok(Counted::new(Arc::clone(self)))
            }
            _ => Err(PyBufferError::new_err("this hand-over has ended")),
        }
    }

    /// Is it a device's by this hand-over?
    pub(crate) fn is_out(&self, handover: u64) -> PyResult<bool> {
        Ok(matches!(&*self.lock()?, State::Device(_, current) if *current == handover))
    }

    /// One view more, while it is the CPU's.
    fn view(self: &Arc<Self>) -> PyResult<Counted> {
        let state = self.lock()?;
        match &*state {
            State::Cpu(_) => {
                self.views.fetch_add(1, Ordering::Relaxed);
                Ok(Counted::new(Arc::clone(self)))
            }
            State::Device(..) => Err(PyBufferError::new_err(
                "a device has this buffer: take it back first (end of the `with`; after an exception in it, when the device has stopped: \
                 sync_from_device)",
            )),
            State::Job => Err(in_a_job()),
            State::Gone => Err(PyBufferError::new_err("this buffer was freed")),
        }
    }

    /// The buffer, out of here, when it is the CPU's and nobody looks at it.
    pub(crate) fn take(&self) -> PyResult<CpuBuf<'static>> {
        self.taken(State::Gone)
    }

    /// The same for a job: `put` or `put_device` ends that.
    pub(crate) fn take_for_job(&self) -> PyResult<CpuBuf<'static>> {
        self.taken(State::Job)
    }

    fn taken(&self, left: State) -> PyResult<CpuBuf<'static>> {
        let mut state = self.lock()?;
        let views = self.views.load(Ordering::Acquire);
        match std::mem::replace(&mut *state, left) {
            State::Cpu(buf) if views == 0 => Ok(buf),
            State::Cpu(buf) => {
                *state = State::Cpu(buf);
                let arrays = if views == 1 { "an array (NumPy's, or another framework's by DLPack) is" } else { "arrays are" };
                Err(PyBufferError::new_err(format!(
                    "{views} view(s): {arrays} still looking at this buffer, and would race the device; delete them first (`del a`)"
                )))
            }
            other @ State::Device(..) => {
                *state = other;
                Err(PyBufferError::new_err("a device has this buffer already"))
            }
            other @ State::Job => {
                *state = other;
                Err(in_a_job())
            }
            State::Gone => {
                *state = State::Gone;
                Err(PyBufferError::new_err("this buffer was freed"))
            }
        }
    }

    pub(crate) fn put(&self, buf: CpuBuf<'static>) {
        if let Ok(mut state) = self.lock() {
            *state = State::Cpu(buf);
        }
    }

    /// Back from a job, and still the device's: `take_back` tries again.
    pub(crate) fn put_device(&self, buf: DevBuf<'static>) {
        if let Ok(mut state) = self.lock() {
            *state = State::Device(buf, HANDOVERS.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// To a device behind the region's port; the bus address, and which hand-over it is of all that
    /// there were.
    pub(crate) fn give(&self, direction: Direction) -> PyResult<(u64, u64)> {
        let port = self.memory.port.ok_or_else(no_port)?;
        // SAFETY: the device that the Python program drives is behind the region's port, touches
        // these bytes and no others, and has stopped before `take_back`: its programmer promises
        // that by `to_device` and by the end of the hand-over. Nothing else drops the buffer: it is
        // forgotten (`Inner`'s `Drop`).
        #[allow(unsafe_code, reason = "see above")]
        // (An empty array has a byte of its own.)
        match unsafe { self.take()?.hand_over(&port, 64, ..self.len_bytes.max(1), direction) } {
            Ok(buf) => {
                let (address, handover) = (buf.slice().addr.0, HANDOVERS.fetch_add(1, Ordering::Relaxed));
                *self.lock()? = State::Device(buf, handover);
                Ok((address, handover))
            }
            Err(refused) => {
                self.put(refused.returned);
                Err(raised(refused.error))
            }
        }
    }

    /// From the device, which has stopped; by this hand-over, or whichever it is.
    pub(crate) fn take_back(&self, by: Option<u64>) -> PyResult<()> {
        let mut state = self.lock()?;
        let views = self.views.load(Ordering::Acquire);
        match std::mem::replace(&mut *state, State::Gone) {
            State::Device(buf, handover) if by.is_some_and(|by| by != handover) => {
                *state = State::Device(buf, handover);
                Err(PyBufferError::new_err("this hand-over has ended, and the buffer is a device's by another"))
            }
            State::Device(buf, handover) if views > 0 => {
                *state = State::Device(buf, handover);
                Err(PyBufferError::new_err(format!(
                    "{views} view(s): a framework still has the device's view of this buffer; synchronise its stream and delete its tensors first"
                )))
            }
            State::Device(buf, handover) => match buf.into_cpu() {
                Ok(buf) => {
                    *state = State::Cpu(buf);
                    Ok(())
                }
                Err(refused) => {
                    *state = State::Device(refused.returned, handover);
                    Err(raised(refused.error))
                }
            },
            other @ State::Job => {
                *state = other;
                Err(in_a_job())
            }
            other => {
                *state = other;
                Err(PyBufferError::new_err(
                    "no device has this buffer: give it first (`with buf.to_device(\"from_device\")`, or sync_to_device), because lines \
                     that the CPU has written could otherwise go over what the device writes",
                ))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A child of fork leaves it as it is.
        let Ok(state) = self.state.get_mut() else { return };
        match std::mem::replace(state.get_mut().unwrap_or_else(PoisonError::into_inner), State::Gone) {
            State::Cpu(buf) => go_home(buf, self.home, self.memory),
            // Nobody said that the device has stopped: leaked, never given to the next.
            State::Device(buf, _) => std::mem::forget(buf),
            State::Job | State::Gone => {}
        }
    }
}

fn go_home(buf: CpuBuf<'static>, home: Home, memory: &Memory) {
    match home {
        Home::Region => memory.give_back(buf),
        Home::Pool => drop(buf),
    }
}

pub(crate) fn no_port() -> PyErr {
    ContigoError::new_err(
        "this region has no port: open it with port=(name, offset, address bits, coherent), as the accelerator's master is wired",
    )
}

/// An array in DMA memory: `numpy.asarray(buf)` and every framework's `from_dlpack(buf)` share its elements, and a device gets its
/// address while nobody looks at them.
///
/// It goes back to its region when the last of its views and handles is gone, or by `freebuffer()`.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Buffer {
    inner: Arc<Inner>,
    shape: Shape,
    dtype: Dtype,
}

impl Buffer {
    pub(crate) fn new(memory: &'static Memory, dims: &[i64], dtype: &Bound<'_, PyAny>, align: usize, zeroed: bool) -> PyResult<Self> {
        let (shape, dtype) = (Shape::new(dims).map_err(raised)?, Dtype::of(dtype)?);
        let len_bytes = shape.len_bytes(dtype.dlpack.bytes().map_err(raised)?).map_err(raised)?;
        let mut buf = memory.take(len_bytes, Align::new(align).map_err(raised)?)?;
        if zeroed {
            buf.view_mut::<u8>().map_err(raised)?.fill(0);
        }
        Self::of(memory, buf, Home::Region, shape, dtype)
    }

    /// An array at the beginning of `buf`, which is large enough.
    pub(crate) fn of(memory: &'static Memory, mut buf: CpuBuf<'static>, home: Home, shape: Shape, dtype: Dtype) -> PyResult<Self> {
        let len_bytes = shape.len_bytes(dtype.dlpack.bytes().map_err(raised)?).map_err(raised)?;
        let ptr = buf.as_mut_ptr();
        let address = memory.port.and_then(|port| memory.region.dev_addr_of(&port, ptr, len_bytes).ok()).map(|address| address.0);
        let inner = Inner {
            memory,
            home,
            state: Mine::new(Mutex::new(State::Cpu(buf))),
            views: AtomicUsize::new(0),
            let_go: AtomicBool::new(false),
            ptr,
            len_bytes,
            address,
        };
        Ok(Self { inner: Arc::new(inner), shape, dtype })
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Bytes of its elements: fewer than there are where it is a part of a frame.
    pub(crate) fn len_bytes(&self) -> usize {
        let element_bytes = self.dtype.dlpack.bytes();
        element_bytes.and_then(|bytes| self.shape.len_bytes(bytes)).unwrap_or(self.inner.len_bytes)
    }

    fn operand(slf: Py<Self>, nbytes: Option<usize>, offset: usize, direction: Direction) -> PyResult<Operand> {
        slf.get().inner.here()?;
        let all = slf.get().len_bytes();
        let end = nbytes.map_or(all, |nbytes| offset.saturating_add(nbytes));
        if offset >= end || end > all {
            return Err(PyValueError::new_err(format!("bytes {offset} to {end} of a buffer of {all}")));
        }
        Ok(Operand { buffer: slf, bytes: offset..end, direction })
    }

    pub(crate) fn layout(&self) -> (Shape, Dtype) {
        (self.shape, self.dtype)
    }
}

#[pymethods]
impl Buffer {
    /// Elements of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape.dims())
    }

    /// What an element is: "float32".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.len_bytes()
    }

    /// The bus address of the first element, as the region's port sees it. A number: the device may
    /// use it only between `to_device` and the end of that.
    #[getter]
    fn device_address(&self) -> PyResult<u64> {
        self.inner.here()?;
        self.inner.memory.port.ok_or_else(no_port)?;
        self.inner.address.ok_or_else(|| ContigoError::new_err("the region's port does not reach this buffer"))
    }

    /// "cpu", "device" (a job's too), or "gone" (freed).
    #[getter]
    fn owner(&self) -> PyResult<&'static str> {
        Ok(match &*self.inner.lock()? {
            State::Cpu(_) => "cpu",
            State::Device(..) | State::Job => "device",
            State::Gone => "gone",
        })
    }

    /// How many arrays and tensors look at it now.
    #[getter]
    fn views(&self) -> usize {
        self.inner.views.load(Ordering::Relaxed)
    }

    /// A capsule with the tensor (the array API's protocol). While it, or what was made of it, lives, no device gets the buffer.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        if stream.is_some_and(|stream| !stream.is_none()) {
            return Err(PyBufferError::new_err("this memory is the CPU's: stream must be None"));
        }
        if dl_device.is_some_and(|device| device != self.__dlpack_device__()) {
            return Err(PyBufferError::new_err("this memory is the CPU's, and is copied to no other device: see __dlpack_device__"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("this is never copied: copy the array that you made of it"));
        }
        let at = (self.inner.ptr.cast(), DlDevice { device_type: self.inner.device_type(), device_id: 0 });
        export::capsule(py, self.inner.view()?, at, &self.shape, self.dtype, export::Form::of(max_version))
    }

    /// (1, 0): the CPU's memory; (3, 0): memory that CUDA pinned.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (self.inner.device_type(), 0)
    }

    /// NumPy's array of the same memory. `dtype` and `copy` as NumPy passes them.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(&self, py: Python<'py>, dtype: Option<Bound<'py, PyAny>>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
        if self.dtype.typestr.is_empty() {
            return Err(PyValueError::new_err(format!("NumPy has no {}: use a framework's from_dlpack", self.dtype.name)));
        }
        let view = View { view: self.inner.view()?, shape: self.shape, dtype: self.dtype };
        let array = py.import("numpy")?.getattr("asarray")?.call1((Bound::new(py, view)?,))?;
        match dtype {
            Some(dtype) if !dtype.is_none() && !array.getattr("dtype")?.eq(&dtype)? => {
                if copy == Some(false) {
                    return Err(PyValueError::new_err("another dtype is a copy, and copy=False forbids it"));
                }
                array.call_method1("astype", (dtype,))
            }
            _ if copy == Some(true) => array.call_method0("copy"),
            _ => Ok(array),
        }
    }

    /// Gives it to a device, for the length of a `with`: caches cleaned, and nobody looks. `direction` is what the device does: "to_device" (it
    /// reads), "from_device" (it writes), "both".
    #[pyo3(signature = (direction="both"))]
    fn to_device(&self, direction: &str) -> PyResult<Handover> {
        Handover::begin(self, direction)
    }

    /// An operand of a job, which the device reads: `nbytes` bytes from `offset`, all of them where
    /// nothing is said.
    #[pyo3(signature = (nbytes=None, *, offset=0))]
    fn reads(slf: Py<Self>, nbytes: Option<usize>, offset: usize) -> PyResult<Operand> {
        Self::operand(slf, nbytes, offset, Direction::ToDevice)
    }

    /// An operand of a job, which the device writes; as `reads`.
    #[pyo3(signature = (nbytes=None, *, offset=0))]
    fn writes(slf: Py<Self>, nbytes: Option<usize>, offset: usize) -> PyResult<Operand> {
        Self::operand(slf, nbytes, offset, Direction::FromDevice)
    }

    /// An operand of a job, which the device reads and writes; as `reads`.
    #[pyo3(signature = (nbytes=None, *, offset=0))]
    fn updates(slf: Py<Self>, nbytes: Option<usize>, offset: usize) -> PyResult<Operand> {
        Self::operand(slf, nbytes, offset, Direction::Bidirectional)
    }

    /// The first `nbytes` of it as an array: of its shape where that is all of it, otherwise of one
    /// dimension, of its type where they are whole elements, and of bytes where they are not.
    fn _first(&self, nbytes: usize) -> PyResult<Self> {
        self.inner.here()?;
        let inner = Arc::clone(&self.inner);
        if nbytes == inner.len_bytes {
            return Ok(Self { inner, shape: self.shape, dtype: self.dtype });
        }
        let element_bytes = self.dtype.dlpack.bytes().map_err(raised)?;
        let (dtype, elements) =
            if nbytes.is_multiple_of(element_bytes) { (self.dtype, nbytes / element_bytes) } else { (Dtype::BYTES, nbytes) };
        if nbytes > inner.len_bytes {
            return Err(PyValueError::new_err(format!("{nbytes} bytes of a buffer of {}", inner.len_bytes)));
        }
        Ok(Self { inner, shape: Shape::new(&[elements as i64]).map_err(raised)?, dtype })
    }

    /// Back to where it came from, when nobody looks at it any more: now, or with its last view.
    fn _let_go(&self) {
        self.inner.let_go.store(true, Ordering::Relaxed);
        self.inner.goes_home();
    }

    /// PYNQ's name. Here it gives the buffer away: no array of it may be alive, and until `sync_from_device` there is none to be had.
    fn sync_to_device(&self) -> PyResult<()> {
        self.inner.give(Direction::Bidirectional).map(drop)
    }

    /// PYNQ's name: the device has stopped, and the CPU has the buffer again.
    fn sync_from_device(&self) -> PyResult<()> {
        self.inner.take_back(None)
    }

    /// PYNQ's name: back to the region, now. Refused while arrays look at it, and while a device
    /// has it.
    fn freebuffer(&self) -> PyResult<()> {
        let buf = self.inner.take()?;
        go_home(buf, self.inner.home, self.inner.memory);
        Ok(())
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.shape.dims().first().ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("len() of a scalar"))?;
        usize::try_from(*first).map_err(|_| PyValueError::new_err("a dimension that is none"))
    }

    fn __repr__(&self) -> String {
        let address = self.inner.address.map_or(String::new(), |address| format!(", device_address={address:#x}"));
        let owner = self.owner().unwrap_or("another process");
        format!("contigo.Buffer(shape={:?}, dtype={}{address}, owner={owner})", self.shape.dims(), self.dtype.name)
    }
}

/// One view of a buffer, which NumPy keeps as an array's base.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct View {
    view: Counted,
    shape: Shape,
    dtype: Dtype,
}

#[pymethods]
impl View {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.view.inner().here()?;
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", PyTuple::new(py, self.shape.dims())?)?;
        dict.set_item("typestr", self.dtype.typestr)?;
        dict.set_item("data", (self.view.inner().ptr().addr(), false))?;
        Ok(dict)
    }
}

//! An array in DMA memory, the CPU's or a device's, and a part of it for a job.

use crate::error::{Refusal, of_class, raised};
use crate::handover::Handover;
use crate::inner::{CountedView, Inner};
use crate::layout::{Dtype, Layout};
use crate::memory::{Memory, word};
use crate::tensor::{Elements, Form, capsule, no_copy};
use contigo::dlpack::abi::DlDevice;
use contigo::{Align, CpuBuf, Direction};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ops::Range;
use std::sync::Arc;

/// An array in DMA memory: `numpy.asarray(buf)` and every framework's `from_dlpack(buf)` share its
/// elements, and a device gets its address while no array views them.
///
/// It goes back to its region when the last of its views and handles is gone, or by `freebuffer()`.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Buffer {
    inner: Arc<Inner>,
    layout: Layout,
}

impl Buffer {
    pub(crate) fn new(
        memory: &Arc<Memory>,
        layout: Layout,
        align: usize,
        zeroed: bool,
    ) -> Result<Self, Refusal> {
        let len_bytes = layout.len_bytes()?.max(1);
        let align = Align::new(align).map_err(raised)?;
        let mut buf = memory.region()?.alloc(len_bytes, align).map_err(raised)?;
        if zeroed {
            buf.view_mut::<u8>().map_err(raised)?.fill(0);
        }
        Self::of(memory, buf, layout)
    }

    /// An array at the beginning of `buf`, which is large enough.
    pub(crate) fn of(memory: &Arc<Memory>, buf: CpuBuf, layout: Layout) -> Result<Self, Refusal> {
        let inner = Inner::new(Arc::clone(memory), buf, layout.len_bytes()?)?;
        Ok(Self { inner: Arc::new(inner), layout })
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Bytes of its elements: fewer than there are where it is a part of a frame.
    pub(crate) fn len_bytes(&self) -> usize {
        self.layout.len_bytes().unwrap_or(self.inner.len_bytes())
    }

    fn operand(
        slf: Py<Self>,
        nbytes: Option<usize>,
        offset: usize,
        direction: Direction,
    ) -> PyResult<Operand> {
        slf.get().inner.here()?;
        let all = slf.get().len_bytes();
        let end = nbytes.map_or(all, |nbytes| offset.saturating_add(nbytes));
        if offset >= end || end > all {
            return Err(PyValueError::new_err(format!(
                "bytes {offset} to {end} of a buffer of {all}"
            )));
        }
        Ok(Operand { buffer: slf, bytes: offset..end, direction })
    }

    fn device(&self) -> DlDevice {
        DlDevice { device_type: self.inner.device_type(), device_id: 0 }
    }
}

#[pymethods]
impl Buffer {
    /// Elements of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.layout.dims(py)
    }

    /// The type of an element: "float32".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.layout.dtype.name
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.len_bytes()
    }

    /// The bus address of the first element, as the region's port sees it. A number: the device may
    /// use it only from `give` to `take_back`.
    #[getter]
    fn device_address(&self) -> Result<u64, Refusal> {
        self.inner.address()
    }

    /// "cpu", "device" (a job's too), or "gone" (freed).
    #[getter]
    fn owner(&self, py: Python<'_>) -> Result<&'static str, Refusal> {
        self.inner.owner(py)
    }

    /// How many arrays and tensors look at it now.
    #[getter]
    fn views(&self) -> u32 {
        self.inner.views()
    }

    /// A capsule with the tensor (the array API's protocol). While it, or what was made of it,
    /// lives, no device gets the buffer.
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
            return Err(of_class("Buffer", "this memory is the CPU's: stream must be None").into());
        }
        let device = self.device();
        no_copy("this memory is the CPU's", device, dl_device, copy)?;
        let elements = Elements { data: self.inner.ptr().cast(), byte_offset: 0, device };
        let form = Form::of(max_version, false)?;
        capsule(py, self.inner.view(py)?, elements, &self.layout, form)
    }

    /// (1, 0): the CPU's memory; (3, 0): memory that CUDA pinned.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (self.device().device_type, 0)
    }

    /// NumPy's array of the same memory. `dtype` and `copy` as NumPy passes them.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Dtype { name, typestr, .. } = self.layout.dtype;
        if typestr.is_empty() {
            return Err(PyValueError::new_err(format!(
                "NumPy has no {name}: use a framework's from_dlpack"
            )));
        }
        let view = View { view: self.inner.view(py)?, layout: self.layout };
        let array = py.import("numpy")?.getattr("asarray")?.call1((Bound::new(py, view)?,))?;
        match dtype {
            Some(dtype) if !dtype.is_none() && !array.getattr("dtype")?.eq(&dtype)? => {
                if copy == Some(false) {
                    return Err(PyValueError::new_err(
                        "another dtype is a copy, and copy=False forbids it",
                    ));
                }
                array.call_method1("astype", (dtype,))
            }
            _ if copy == Some(true) => array.call_method0("copy"),
            _ => Ok(array),
        }
    }

    /// Gives it to a device, which reads it, writes it, or both: no array of it may be alive, and
    /// caches are cleaned. The end of a `with` takes it back, or `take_back`.
    #[pyo3(signature = (*, reads=true, writes=true))]
    fn give(&self, py: Python<'_>, reads: bool, writes: bool) -> PyResult<Handover> {
        let direction = match (reads, writes) {
            (true, true) => Direction::Bidirectional,
            (true, false) => Direction::ToDevice,
            (false, true) => Direction::FromDevice,
            (false, false) => {
                return Err(PyValueError::new_err(
                    "give(reads=False, writes=False): a device reads, or writes, or both",
                ));
            }
        };
        Ok(Handover::begin(&self.inner, self.layout, py, direction)?)
    }

    /// The device has stopped: the CPU has the buffer again, with what the device wrote. A buffer
    /// that no device has is refused.
    fn take_back(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.inner.take_back(py, None)
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

    /// The first `nbytes` of it as an array. Where that is all of it, the array has its shape;
    /// otherwise one dimension. The elements are of its type where `nbytes` are whole elements, and
    /// bytes where they are not.
    fn _first(&self, nbytes: usize) -> PyResult<Self> {
        self.inner.here()?;
        let (inner, all) = (Arc::clone(&self.inner), self.inner.len_bytes());
        if nbytes == all {
            return Ok(Self { inner, layout: self.layout });
        }
        let element_bytes = self.layout.dtype.bytes()?;
        let (dtype, elements) = if nbytes.is_multiple_of(element_bytes) {
            (self.layout.dtype, nbytes / element_bytes)
        } else {
            (Dtype::BYTES, nbytes)
        };
        if nbytes > all {
            return Err(PyValueError::new_err(format!("{nbytes} bytes of a buffer of {all}")));
        }
        Ok(Self { inner, layout: Layout::new(&[elements as i64], dtype)? })
    }

    /// Back to where it came from, once no view of it is left: now, or with its last view.
    fn _let_go(&self) {
        self.inner.let_go();
    }

    /// PYNQ's name for `give()`: no array of it may be alive, and until `sync_from_device` there is
    /// none to be had.
    fn sync_to_device(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.inner.give(py, Direction::Bidirectional).map(drop)
    }

    /// PYNQ's name for `take_back`.
    fn sync_from_device(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.inner.take_back(py, None)
    }

    /// PYNQ's name: back to the region, now. Refused while arrays look at it, and while a device
    /// has it.
    fn freebuffer(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.inner.free(py)
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.layout.shape.dims().first();
        let first = first.ok_or_else(|| PyTypeError::new_err("len() of a scalar"))?;
        usize::try_from(*first).map_err(|_| PyValueError::new_err("a dimension that is none"))
    }

    /// `buf[…]`: a copy of what NumPy's array has there, so that no view stays and the next job may
    /// have the buffer. It is read-only, because `buf[0][1] = 5` would be lost in it; so
    /// `buf[0] += 1` is refused, and `buf[0] = buf[0] + 1` does it.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        at: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let part = self.__array__(py, None, None)?.get_item(at)?;
        if !part.is_instance(&py.import("numpy")?.getattr("ndarray")?)? {
            return Ok(part); // a number
        }
        let copy = part.call_method0("copy")?;
        copy.getattr("flags")?.setattr("writeable", false)?;
        Ok(copy)
    }

    /// A copy's, as `buf[…]`: no view stays.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.__getitem__(py, py.Ellipsis().bind(py))?.call_method0("__iter__")
    }

    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.__getitem__(py, py.Ellipsis().bind(py))?.contains(value)
    }

    /// `buf[…] = …`: as NumPy's array does it.
    fn __setitem__<'py>(
        &self,
        py: Python<'py>,
        at: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.__array__(py, None, None)?.set_item(at, value)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let address = self
            .inner
            .address()
            .map_or(String::new(), |address| format!(", device_address={address:#x}"));
        let owner = self.owner(py).unwrap_or("another process");
        format!("contigo.Buffer({}{address}, owner={owner})", self.layout.describe())
    }
}

/// One view of a buffer, which NumPy keeps as an array's base.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct View {
    view: CountedView,
    layout: Layout,
}

#[pymethods]
impl View {
    fn __repr__(&self) -> String {
        format!("contigo.View({})", self.layout.describe())
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.view.inner().here()?;
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", self.layout.dims(py)?)?;
        dict.set_item("typestr", self.layout.dtype.typestr)?;
        dict.set_item("data", (self.view.inner().ptr().addr(), false))?;
        Ok(dict)
    }
}

/// A part of a buffer for a job: `buf.reads()`, `buf.writes()` and `buf.updates()` make one. A job
/// takes a whole buffer as it is, too: what the device does with it is the driver's to say.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Operand {
    /// The buffer.
    #[pyo3(get)]
    pub(crate) buffer: Py<Buffer>,
    pub(crate) bytes: Range<usize>,
    pub(crate) direction: Direction,
}

#[pymethods]
impl Operand {
    /// Where it begins in the buffer, in bytes.
    #[getter]
    fn offset(&self) -> usize {
        self.bytes.start
    }

    /// How many bytes it has.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// "reads", "writes", "both": what the device does.
    #[getter]
    fn direction(&self) -> &'static str {
        word(self.direction)
    }

    fn __repr__(&self) -> String {
        format!(
            "contigo.Operand(nbytes={}, offset={}, direction={:?})",
            self.bytes.len(),
            self.bytes.start,
            self.direction()
        )
    }
}

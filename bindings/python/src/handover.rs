//! A buffer that is a device's for a while: by a job of the runtime's engines, or by registers that
//! the Python program writes.

use crate::{
    buffer::Buffer,
    dtype::Dtype,
    error::{Refusal, of_class},
    export,
    inner::{Given, Inner},
};
use contigo::{
    Direction,
    dlpack::{Shape, abi::device},
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};
use std::sync::Arc;

/// The device "reads", "writes", or does "both".
pub(crate) fn direction(text: &str) -> PyResult<Direction> {
    match text {
        "reads" => Ok(Direction::ToDevice),
        "writes" => Ok(Direction::FromDevice),
        "both" => Ok(Direction::Bidirectional),
        _ => Err(PyValueError::new_err(format!(
            "{text:?}: write \"reads\", \"writes\" or \"both\", as the device does"
        ))),
    }
}

/// The same as a word.
pub(crate) const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::ToDevice => "reads",
        Direction::FromDevice => "writes",
        Direction::Bidirectional => "both",
    }
}

/// A buffer that is a device's: `with buf.give() as handover: ip.write(ADDR,
/// handover.address); ...`. At the end of the block it is the CPU's again, with what the device
/// wrote.
///
/// The program that writes `address` into a device's registers promises that the device touches
/// only these bytes, and has stopped when the block ends. A framework that works on the device
/// itself takes the same view by `from_dlpack(handover)`; its stream is synchronised, and its
/// tensors are gone, before the block ends.
///
/// A block that ends by an exception leaves the buffer the device's, because the program has not
/// said that the device stopped: then `take_back()` says it, this one's or the buffer's.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Handover {
    inner: Arc<Inner>,
    given: Given,
    read_only: bool,
    shape: Shape,
    dtype: Dtype,
}

impl Handover {
    pub(crate) fn begin(
        buffer: &Buffer,
        py: Python<'_>,
        direction: Direction,
    ) -> Result<Self, Refusal> {
        let inner = Arc::clone(buffer.inner());
        let (shape, dtype) = buffer.layout();
        let given = inner.give(py, direction)?;
        Ok(Self { inner, given, read_only: direction == Direction::ToDevice, shape, dtype })
    }
}

#[pymethods]
impl Handover {
    /// The bus address of the buffer's first byte. `nbytes` from there were handed over, and no
    /// others. A GPU of Vulkan or OpenCL has no addresses: its view is the one by DLPack.
    #[getter]
    fn address(&self) -> Result<u64, Refusal> {
        self.inner.here()?;
        Ok(self.given.address)
    }

    /// How many bytes there are at `address`: all of the buffer's.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.len_bytes()
    }

    /// A capsule with the device's view. On a GPU it is a tensor of the GPU's, `kDLCUDA`, at the
    /// pointer that the GPU has for this memory. Through Vulkan and OpenCL it is `kDLVulkan` and
    /// `kDLOpenCL`: the data pointer is a `VkBuffer` or a `cl_mem`, and `byte_offset` says where in
    /// it the elements begin. On another bus it is `kDLExtDev`, at the bus address. Nothing is
    /// queued for it, so that the consumer's `stream` has nothing to wait for.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let Given { device, data, byte_offset, .. } = self.given;
        match stream {
            Some(_) if device.device_type != device::CUDA => {
                return Err(
                    of_class("Buffer", "this device has no streams: stream must be None").into()
                );
            }
            // 0 is ambiguous: the array API's standard.
            Some(stream) if stream == 0 || stream < -1 => {
                return Err(of_class(
                    "Buffer",
                    format!("stream {stream} is none of CUDA's: -1, 1, 2, or a stream's handle"),
                )
                .into());
            }
            _ => {}
        }
        if dl_device.is_some_and(|wanted| wanted != self.__dlpack_device__()) {
            return Err(of_class(
                "Buffer",
                "this is the device's view, and is copied to no other: see __dlpack_device__",
            )
            .into());
        }
        if copy == Some(true) {
            return Err(of_class(
                "Buffer",
                "this is never copied: copy the tensor that you made of it",
            )
            .into());
        }
        // Not on 32 bits, for some.
        let data = usize::try_from(data).map_err(|_| {
            of_class("Buffer", format!("DLPack has addresses and objects in this processor's pointers, which {data:#x} is not"))
        })?;
        let place =
            export::Place { data: std::ptr::without_provenance_mut(data), byte_offset, device };
        let form = export::Form::of(max_version);
        let form = if self.read_only { form.read_only()? } else { form };
        export::capsule(
            py,
            self.inner.device_view(py, self.given.number)?,
            place,
            &self.shape,
            self.dtype,
            form,
        )
    }

    /// (2, N): GPU number N of CUDA, (4, N) of OpenCL, (7, N) of Vulkan; (12, 0): another device,
    /// by its bus addresses.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = self.given.device;
        (device.device_type, device.device_id)
    }

    /// The device has stopped: the CPU's again. Refused while a framework has the device's view.
    fn take_back(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.inner.take_back(py, Some(self.given.number))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match self.inner.is_out(py, self.given.number) {
            Ok(true) => "the device's",
            Ok(false) => "ended",
            Err(_) => "another process's",
        };
        format!(
            "contigo.Handover(address={:#x}, nbytes={}, {state})",
            self.given.address,
            self.inner.len_bytes()
        )
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let raised = exception.iter().next().is_some_and(|kind| !kind.is_none());
        if !raised && self.inner.is_out(py, self.given.number)? {
            self.take_back(py)?;
        }
        Ok(false)
    }
}

//! A buffer that is a device's for a while, by registers that the Python program writes.

use crate::error::{Refusal, of_class};
use crate::inner::{DeviceBytes, Inner};
use crate::layout::Layout;
use crate::tensor::{Elements, Form, capsule, no_copy};
use contigo::Direction;
use contigo::dlpack::abi::device;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

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
    given: DeviceBytes,
    read_only: bool,
    layout: Layout,
}

impl Handover {
    pub(crate) fn begin(
        inner: &Arc<Inner>,
        layout: Layout,
        py: Python<'_>,
        direction: Direction,
    ) -> Result<Self, Refusal> {
        let given = inner.give(py, direction)?;
        let read_only = direction == Direction::ToDevice;
        Ok(Self { inner: Arc::clone(inner), given, read_only, layout })
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
        let DeviceBytes { device, data, byte_offset, .. } = self.given;
        let refusal = match stream {
            Some(_) if device.device_type != device::CUDA => {
                Some("this device has no streams: stream must be None".into())
            }
            // 0 is ambiguous: the array API's standard.
            Some(stream) if stream == 0 || stream < -1 => {
                Some(format!("stream {stream} is none of CUDA's: -1, 1, 2, or a stream's handle"))
            }
            _ => None,
        };
        if let Some(text) = refusal {
            return Err(of_class("Buffer", text).into());
        }
        no_copy("this is the device's view", device, dl_device, copy)?;
        // Some do not fit in 32 bits.
        let data = usize::try_from(data).map_err(|_| {
            let text = format!(
                "DLPack has addresses and objects in this processor's pointers, which {data:#x} is \
                 not"
            );
            of_class("Buffer", text)
        })?;
        let data = std::ptr::without_provenance_mut(data);
        let form = Form::of(max_version, self.read_only)?;
        let view = self.inner.device_view(py, self.given.number)?;
        capsule(py, view, Elements { data, byte_offset, device }, &self.layout, form)
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

//! Who has an array's bytes: the CPU, a device by a hand-over, or a job.

use crate::error::{Refusal, of_class, raised, refused};
use crate::local::ProcessLocal;
use crate::lock::{Lock, Plain};
use crate::memory::Memory;
use contigo::dlpack::abi::{DlDevice, device};
use contigo::mem::Api;
use contigo::{Bus, CpuBuf, DevBuf, Direction, Error, Operand};
use contigo_objects::{Access, Buffer, Views};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The part that all handles of an array share. The memory goes back with the last of them.
pub(crate) struct Inner {
    memory: Arc<Memory>,
    state: ProcessLocal<Lock<Buffer>>,
    /// The count of NumPy's arrays and DLPack's tensors of it, and whether the last of them frees
    /// it (a frame that was let go).
    views: Views,
    ptr: *mut u8,
    len_bytes: usize,
    /// The address for a device, by the region's port.
    address: Option<u64>,
}

// SAFETY: `ptr` is only passed on, to a view: while one is counted, the buffer is here and keeps
// its memory mapped.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Send for Inner {}
// SAFETY: as above; everything else is behind a lock or an atomic.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Sync for Inner {}

/// The bytes of a hand-over, as the device finds them.
#[derive(Clone, Copy)]
pub(crate) struct DeviceBytes {
    /// The bus address of its first byte.
    pub(crate) address: u64,
    /// DLPack's data pointer: that address; or an object, in which the bytes begin behind as many
    /// bytes as `byte_offset` says.
    pub(crate) data: u64,
    pub(crate) byte_offset: u64,
    /// The device, as DLPack names it: a GPU, or one that has no name there.
    pub(crate) device: DlDevice,
    /// The number of the hand-over, of all that this buffer had.
    pub(crate) number: u64,
}

impl Plain for DeviceBytes {}

/// One view of a buffer. While it lives, no device gets the buffer.
pub(crate) struct CountedView(Arc<Inner>);

impl CountedView {
    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl Drop for CountedView {
    fn drop(&mut self) {
        if self.0.views.close() == Ok(true) {
            self.0.goes_home();
        }
    }
}

impl Inner {
    /// Of `buf`, whose first `len_bytes` are the array's.
    pub(crate) fn new(
        memory: Arc<Memory>,
        mut buf: CpuBuf,
        len_bytes: usize,
    ) -> Result<Self, Refusal> {
        let (region, ptr) = (memory.region()?, buf.as_mut_ptr());
        let address = memory
            .port()
            .ok()
            .and_then(|port| region.dev_addr_of(&port, ptr, len_bytes).ok())
            .map(|address| address.0);
        Ok(Self {
            memory,
            state: ProcessLocal::new(Lock::new(Buffer::new(buf))),
            views: Views::new(),
            ptr,
            len_bytes,
            address,
        })
    }

    /// As [`Memory::device_type`].
    pub(crate) fn device_type(&self) -> i32 {
        self.memory.device_type
    }

    /// Lets `act` use the state. Without `py` this thread may be in a destructor, or have an
    /// engine's lock: it waits as it is, for something short.
    fn locked<R: Plain + Send>(
        &self,
        py: Option<Python<'_>>,
        act: impl FnOnce(&mut Buffer) -> Result<R, contigo_objects::Refusal> + Send,
    ) -> Result<R, Refusal> {
        let state = self.state.get()?;
        let result = match py {
            Some(py) => state.with_py(py, act),
            None => state.with(act),
        };
        result.map_err(Refusal::from)
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// How many look at it.
    pub(crate) fn views(&self) -> u32 {
        self.views.count()
    }

    /// The address for a device, by the region's port.
    pub(crate) fn address(&self) -> Result<u64, Refusal> {
        self.here()?;
        self.memory.port()?;
        self.address.ok_or_else(|| refused("the region's port does not reach this buffer"))
    }

    /// "cpu", "device" (a job's too), or "gone" (freed).
    pub(crate) fn owner(&self, py: Python<'_>) -> Result<&'static str, Refusal> {
        self.locked(Some(py), |state| Ok(state.owner()))
    }

    /// Only views keep it any more: back to where it came from now, or with the last of them.
    pub(crate) fn let_go(&self) {
        if self.views.drop_buffer() {
            self.goes_home();
        }
    }

    /// Back to where it came from, now. Refused while it has a view, or a device has it.
    pub(crate) fn free(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.locked(Some(py), |state| state.free(&self.views)).map(drop)
    }

    /// Back to where it came from, where it is the CPU's and has no view.
    fn goes_home(&self) {
        drop(self.locked(None, |state| state.free(&self.views)));
    }

    /// `ForkedError` in a child of the process that made it.
    pub(crate) fn here(&self) -> Result<(), Refusal> {
        self.state.get().map(drop)
    }

    /// One view more of the device's address, while it is a device's by this hand-over.
    pub(crate) fn device_view(
        self: &Arc<Self>,
        py: Python<'_>,
        hand_over: u64,
    ) -> Result<CountedView, Refusal> {
        self.locked(Some(py), |state| state.open_device_view(&self.views, hand_over))?;
        Ok(CountedView(Arc::clone(self)))
    }

    /// Whether it is a device's by this hand-over.
    pub(crate) fn is_out(&self, py: Python<'_>, hand_over: u64) -> Result<bool, Refusal> {
        self.locked(Some(py), |state| Ok(state.hand_over() == Some(hand_over)))
    }

    /// One view more, while it is the CPU's.
    pub(crate) fn view(self: &Arc<Self>, py: Python<'_>) -> Result<CountedView, Refusal> {
        // There may be several, and each may write: they are one thread's, or the program locks
        // them.
        self.locked(Some(py), |state| {
            state.open_view(&self.views, Access::Read)?;
            // It may write, by an address from before the last job.
            let _ = state.cpu_mut()?.as_mut_ptr();
            Ok(())
        })?;
        Ok(CountedView(Arc::clone(self)))
    }

    /// An operand of a job, when it is the CPU's and has no view: `put` ends that.
    pub(crate) fn operand(
        &self,
        bytes: Range<usize>,
        direction: Direction,
    ) -> Result<Operand, Refusal> {
        self.locked(None, |state| {
            state.cpu()?;
            state.operand(&self.views, bytes, direction)
        })
    }

    /// Back from a job: the CPU's. An error: its caches could not be maintained, and it is still
    /// the device's; `take_back` tries again. (A child of fork has no jobs: their engine refuses
    /// it.)
    pub(crate) fn put(&self, buf: Result<CpuBuf, DevBuf>) -> Result<(), Error> {
        let put = self.locked(None, |state| {
            let is_devices = buf.is_err();
            state.put(buf);
            if is_devices { state.take_back(&self.views, None) } else { Ok(()) }
        });
        match put {
            Err(Refusal::Runtime(error, _)) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// To a device behind the region's port.
    pub(crate) fn give(
        &self,
        py: Python<'_>,
        direction: Direction,
    ) -> Result<DeviceBytes, Refusal> {
        let port = self.memory.port()?;
        self.locked(Some(py), |state| {
            // An empty array has a byte of its own.
            let bytes = 0..self.len_bytes.max(1);
            // SAFETY: the device that the Python program drives is behind the region's port,
            // touches these bytes and no others, and has stopped before `take_back`. Its programmer
            // promises that by `give` and by the end of the hand-over.
            #[allow(unsafe_code, reason = "see above")]
            let buf = unsafe { state.give(&self.views, &port, bytes, direction)? };
            let address = buf.slice().addr.0;
            let (device_type, ordinal, data, byte_offset) = match (buf.handle(), port.bus) {
                (Some(object), _) => {
                    let is_vulkan = object.api == Api::Vulkan;
                    let device_type = if is_vulkan { device::VULKAN } else { device::OPENCL };
                    (device_type, object.device_id, object.raw, buf.offset_bytes() as u64)
                }
                (None, Bus::Gpu(ordinal)) => (device::CUDA, ordinal, address, 0),
                (None, _) => (device::EXT_DEV, 0, address, 0),
            };
            Ok(DeviceBytes {
                address,
                data,
                byte_offset,
                device: DlDevice { device_type, device_id: ordinal.cast_signed() },
                number: state.hand_over().unwrap_or_default(),
            })
        })
    }

    /// From the device, which has stopped. `by`: the hand-over that must be the last; None: any.
    pub(crate) fn take_back(&self, py: Python<'_>, by: Option<u64>) -> Result<(), Refusal> {
        let back = self.state.get()?.with_py(py, |state| state.take_back(&self.views, by));
        back.map_err(|refusal| match refusal {
            contigo_objects::Refusal::Viewed { views } => of_class(
                "Buffer",
                format!(
                    "{views} view(s): a framework still has the device's view of this buffer; \
                     synchronise its stream and delete its tensors first"
                ),
            ),
            other => other.into(),
        })
    }
}

impl From<contigo_objects::Refusal> for Refusal {
    /// With the functions that are the cure.
    fn from(refusal: contigo_objects::Refusal) -> Self {
        use contigo_objects::Refusal as Object;
        let text = match refusal {
            Object::Runtime(error) => return raised(error),
            Object::Viewed { views } => {
                let arrays = if views == 1 {
                    "an array (NumPy's, or another framework's by DLPack) is"
                } else {
                    "arrays are"
                };
                return of_class(
                    "Buffer",
                    format!(
                        "{views} view(s): {arrays} still looking at this buffer, and would race \
                         the device; delete them first (`del a`)"
                    ),
                );
            }
            Object::OnDevice => {
                "a device has this buffer already: take it back first (end of the `with`; after an \
                 exception in it, when the device has stopped: take_back)"
            }
            Object::InJob => {
                "this buffer is in a job: wait() for the job; one that was not kept is in its \
                 engine's `jobs`, and the engine's stop() ends it"
            }
            Object::OnCpu => {
                "no device has this buffer: give it first (`with buf.give(reads=False)`), because \
                 lines that the CPU has written could otherwise go over what the device writes"
            }
            Object::Freed => {
                "this buffer was freed, by freebuffer(), or as a stream's frame; such a frame is \
                 the pool's again when the next one is asked for or the loop ends. An array of it \
                 that is kept keeps it"
            }
            other => return of_class("Buffer", other.to_string()),
        };
        of_class("Buffer", text)
    }
}

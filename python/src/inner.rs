//! Who has an array's bytes: the CPU, a device by a hand-over, or a job.

use crate::{
    buffer::no_port,
    error::{Refusal, of_class, raised, refused},
    export::Counted,
    lock::{Lock, Plain},
    mine::Mine,
    region::Memory,
};
use contigo::{
    Bus, CpuBuf, DevBuf, Direction,
    dlpack::abi::{DlDevice, device},
    mem::Api,
};
use pyo3::prelude::*;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

/// The part that all handles of an array share. The memory goes back when the last of them is gone.
pub(crate) struct Inner {
    memory: Arc<Memory>,
    state: Mine<Lock<State>>,
    /// NumPy's arrays and DLPack's tensors of it. Raised under the state's lock.
    views: AtomicUsize,
    /// Nobody but the views wants it any more: a frame that was let go.
    let_go: AtomicBool,
    ptr: *mut u8,
    len_bytes: usize,
    /// The address for a device, by the region's port.
    address: Option<u64>,
}

// SAFETY: `ptr` is only handed on, and to a view: while one is counted, the buffer is here and keeps
// its memory mapped.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Send for Inner {}
// SAFETY: as above; everything else is behind a lock or an atomic.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Sync for Inner {}

/// The bytes that a hand-over gave to the device, as the device finds them.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    /// The bus address of its first byte.
    pub(crate) address: u64,
    /// DLPack's data pointer: that address; or an object, in which the bytes begin behind as many
    /// bytes as `byte_offset` says.
    pub(crate) data: u64,
    pub(crate) byte_offset: u64,
    /// The device, as DLPack names it: a GPU, or one that has no name there.
    pub(crate) device: DlDevice,
    /// Which it is of all hand-overs.
    pub(crate) number: u64,
}

/// Whose it is.
enum State {
    Cpu(CpuBuf),
    /// By which hand-over.
    Device(DevBuf, u64),
    /// In a job; or lost to a device that would not stop.
    Job,
    /// Freed.
    Gone,
}

/// How many hand-overs there were.
static HANDOVERS: AtomicU64 = AtomicU64::new(0);

fn freed() -> Refusal {
    of_class(
        "Buffer",
        "this buffer was freed, by freebuffer(), or as a stream's frame; such a frame is the pool's again when the next one is asked for or \
         the loop ends. An array of it that is kept keeps it",
    )
}

fn in_a_job() -> Refusal {
    of_class(
        "Buffer",
        "this buffer is in a job: wait() for the job; one that nobody kept is in its engine's `jobs`, and the engine's stop() ends it",
    )
}

impl Inner {
    /// Of `buf`, whose first `len_bytes` are the array's.
    pub(crate) fn new(memory: Arc<Memory>, mut buf: CpuBuf, len_bytes: usize) -> Result<Self, Refusal> {
        let (region, ptr) = (memory.region()?, buf.as_mut_ptr());
        let address = memory.port.and_then(|port| region.dev_addr_of(&port, ptr, len_bytes).ok()).map(|address| address.0);
        Ok(Self {
            memory,
            state: Mine::new(Lock::new(State::Cpu(buf))),
            views: AtomicUsize::new(0),
            let_go: AtomicBool::new(false),
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
        act: impl FnOnce(&mut State) -> Result<R, Refusal> + Send,
    ) -> Result<R, Refusal> {
        let state = self.state.get()?;
        match py {
            Some(py) => state.with_py(py, act),
            None => state.with(act),
        }
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// How many look at it.
    pub(crate) fn views(&self) -> usize {
        self.views.load(Ordering::Relaxed)
    }

    /// The address for a device, by the region's port.
    pub(crate) fn address(&self) -> Result<u64, Refusal> {
        self.here()?;
        self.memory.port.ok_or_else(no_port)?;
        self.address.ok_or_else(|| refused("the region's port does not reach this buffer"))
    }

    /// "cpu", "device" (a job's too), or "gone" (freed).
    pub(crate) fn owner(&self, py: Python<'_>) -> Result<&'static str, Refusal> {
        self.locked(Some(py), |state| {
            Ok(match state {
                State::Cpu(_) => "cpu",
                State::Device(..) | State::Job => "device",
                State::Gone => "gone",
            })
        })
    }

    /// Nobody but the views wants it any more: back to where it came from now, or with the last.
    pub(crate) fn let_go(&self) {
        // SeqCst, here and at the three other places of the two: this thread looks for views behind
        // its store, and the last view looks for it behind its own. One of them sees the other, and
        // brings the buffer home.
        self.let_go.store(true, Ordering::SeqCst);
        self.goes_home();
    }

    /// Back to where it came from, now. Refused while somebody looks, or a device has it.
    pub(crate) fn free(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.taken(Some(py), State::Gone).map(drop)
    }

    pub(crate) fn view_gone(&self) {
        // It releases, too: what the view's user did to the bytes is done before they are given
        // away (`taken`).
        let last = self.views.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.let_go.load(Ordering::SeqCst) {
            self.goes_home();
        }
    }

    /// Back to where it came from, where it is the CPU's and nobody looks.
    fn goes_home(&self) {
        drop(self.taken(None, State::Gone));
    }

    /// Is this the process that made it?
    pub(crate) fn here(&self) -> Result<(), Refusal> {
        self.state.get().map(drop)
    }

    /// One view more of the device's address, while it is a device's by this hand-over.
    pub(crate) fn device_view(self: &Arc<Self>, py: Python<'_>, handover: u64) -> Result<Counted, Refusal> {
        self.locked(Some(py), |state| match state {
            State::Device(buf, current) if *current == handover => {
                // The consumer waits for nothing that the hand-over began.
                buf.settled().map_err(raised)?;
                self.views.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(of_class("Buffer", "this hand-over has ended")),
        })?;
        Ok(Counted::new(Arc::clone(self)))
    }

    /// Is it a device's by this hand-over?
    pub(crate) fn is_out(&self, py: Python<'_>, handover: u64) -> Result<bool, Refusal> {
        self.locked(Some(py), |state| Ok(matches!(state, State::Device(_, current) if *current == handover)))
    }

    /// One view more, while it is the CPU's.
    pub(crate) fn view(self: &Arc<Self>, py: Python<'_>) -> Result<Counted, Refusal> {
        self.locked(Some(py), |state| match state {
            State::Cpu(_) => {
                self.views.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            State::Device(..) => Err(of_class(
                "Buffer",
                "a device has this buffer: take it back first (end of the `with`; after an exception in it, when the device has stopped: \
                 take_back)",
            )),
            State::Job => Err(in_a_job()),
            State::Gone => Err(freed()),
        })?;
        Ok(Counted::new(Arc::clone(self)))
    }

    /// The buffer, out of here, for a job, when it is the CPU's and nobody looks at it: `put` or
    /// `put_device` ends that.
    pub(crate) fn take_for_job(&self) -> Result<CpuBuf, Refusal> {
        self.taken(None, State::Job)
    }

    fn taken(&self, py: Option<Python<'_>>, left: State) -> Result<CpuBuf, Refusal> {
        self.locked(py, |state| self.out_of(state, left))
    }

    fn out_of(&self, state: &mut State, left: State) -> Result<CpuBuf, Refusal> {
        let views = self.views.load(Ordering::SeqCst);
        match std::mem::replace(state, left) {
            State::Cpu(buf) if views == 0 => Ok(buf),
            State::Cpu(buf) => {
                *state = State::Cpu(buf);
                let arrays = if views == 1 { "an array (NumPy's, or another framework's by DLPack) is" } else { "arrays are" };
                Err(of_class(
                    "Buffer",
                    format!(
                        "{views} view(s): {arrays} still looking at this buffer, and would race the device; delete them first (`del a`)"
                    ),
                ))
            }
            other @ State::Device(..) => {
                *state = other;
                Err(of_class("Buffer", "a device has this buffer already"))
            }
            other @ State::Job => {
                *state = other;
                Err(in_a_job())
            }
            State::Gone => {
                *state = State::Gone;
                Err(freed())
            }
        }
    }

    pub(crate) fn put(&self, buf: CpuBuf) {
        self.becomes(State::Cpu(buf));
    }

    /// Back from a job, and still the device's: `take_back` tries again.
    pub(crate) fn put_device(&self, buf: DevBuf) {
        self.becomes(State::Device(buf, HANDOVERS.fetch_add(1, Ordering::Relaxed)));
    }

    fn becomes(&self, new: State) {
        // A child of fork leaves it as it is, and has none.
        let _ = self.locked(None, |state| {
            *state = new;
            Ok(())
        });
    }

    /// To a device behind the region's port.
    pub(crate) fn give(&self, py: Python<'_>, direction: Direction) -> Result<Given, Refusal> {
        let port = self.memory.port.ok_or_else(no_port)?;
        // SAFETY: the device that the Python program drives is behind the region's port, touches
        // these bytes and no others, and has stopped before `take_back`. Its programmer promises
        // that by `give` and by the end of the hand-over. Nothing else drops the buffer: it is
        // forgotten (`Inner`'s `Drop`).
        #[allow(unsafe_code, reason = "see above")]
        // (An empty array has a byte of its own.)
        match unsafe { self.taken(Some(py), State::Gone)?.hand_over(&port, 64, ..self.len_bytes.max(1), direction) } {
            Ok(buf) => {
                let (address, number) = (buf.slice().addr.0, HANDOVERS.fetch_add(1, Ordering::Relaxed));
                let of = |device_type, ordinal: u32| DlDevice { device_type, device_id: ordinal.cast_signed() };
                let (device, data, byte_offset) = match (buf.handle(), port.bus) {
                    (Some(object), _) => {
                        let device_type = if object.api == Api::Vulkan { device::VULKAN } else { device::OPENCL };
                        (of(device_type, object.device_id), object.raw, buf.offset_bytes() as u64)
                    }
                    (None, Bus::Gpu(ordinal)) => (of(device::CUDA, ordinal), address, 0),
                    (None, _) => (of(device::EXT_DEV, 0), address, 0),
                };
                self.becomes(State::Device(buf, number));
                Ok(Given { address, data, byte_offset, device, number })
            }
            Err(refused) => {
                let (error, buf) = refused.into_parts();
                self.put(buf);
                Err(raised(error))
            }
        }
    }

    /// From the device, which has stopped; by this hand-over, or whichever it is.
    pub(crate) fn take_back(&self, py: Python<'_>, by: Option<u64>) -> Result<(), Refusal> {
        self.locked(Some(py), |state| self.back_to(state, by))
    }

    fn back_to(&self, state: &mut State, by: Option<u64>) -> Result<(), Refusal> {
        let views = self.views.load(Ordering::Acquire);
        match std::mem::replace(state, State::Gone) {
            State::Device(buf, handover) if by.is_some_and(|by| by != handover) => {
                *state = State::Device(buf, handover);
                Err(of_class("Buffer", "this hand-over has ended, and the buffer is a device's by another"))
            }
            State::Device(buf, handover) if views > 0 => {
                *state = State::Device(buf, handover);
                Err(of_class(
                    "Buffer",
                    format!(
                        "{views} view(s): a framework still has the device's view of this buffer; synchronise its stream and delete its tensors first"
                    ),
                ))
            }
            State::Device(buf, handover) => match buf.into_cpu() {
                Ok(buf) => {
                    *state = State::Cpu(buf);
                    Ok(())
                }
                Err(refused) => {
                    let (error, buf) = refused.into_parts();
                    *state = State::Device(buf, handover);
                    Err(raised(error))
                }
            },
            other @ State::Job => {
                *state = other;
                Err(in_a_job())
            }
            other => {
                *state = other;
                Err(of_class(
                    "Buffer",
                    "no device has this buffer: give it first (`with buf.give(reads=False)`), because lines that the CPU has \
                     written could otherwise go over what the device writes",
                ))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A child of fork leaves it as it is.
        let Ok(state) = self.state.get_mut() else { return };
        if let State::Device(buf, _) = std::mem::replace(state.get_mut(), State::Gone) {
            // Nobody said that the device has stopped: leaked, never given to the next.
            std::mem::forget(buf);
        }
    }
}

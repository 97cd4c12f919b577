#![allow(unsafe_code, reason = "the driver's functions are called")]
//! A stream of launches, with an event after each.

use super::abi::{
    Api, CuEvent, CuFunction, CuResult, CuStream, DISABLE_TIMING, NON_BLOCKING, NOT_READY,
};
use super::driver::check;
use super::packed::Packed;
use super::{Gpu, Module};
use crate::hw::Wait;
use crate::hw::wait::poll_until;
use crate::linux::Spin;
use crate::types::{Error, Result};
use core::ffi::{CStr, c_void};
use core::mem::ManuallyDrop;
use core::ptr;
use core::time::Duration;
use heapless::{Deque, Vec};

/// How many launches can be in a stream at once.
pub(super) const DEPTH: usize = 8;
/// How long a stop waits for a kernel that should have finished: longer than a display driver's
/// watchdog allows one.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(5);
/// How long dropping waits for a kernel: a job that was forgotten may be about to end. Also how
/// long a stop waits after a wait that failed.
const DROP_LIMIT: Duration = Duration::from_millis(100);

/// A function on a stream of its own, with an event for each slot. Launches in it run one after the
/// other.
pub(super) struct Stream {
    /// Dropped if the stream was destroyed, and kept for ever if not.
    module: ManuallyDrop<Module>,
    function: CuFunction,
    stream: CuStream,
    /// By slot. There are `DEPTH` events once the stream is complete.
    events: Vec<CuEvent, DEPTH>,
    /// The slots whose event was recorded and not reported, oldest first.
    in_flight: Deque<usize, DEPTH>,
    /// A stop waited for the stream: its jobs have ended, and the next launch starts afresh.
    stopped: bool,
    clock: Spin,
    /// The stream did not end when it should have, and no later wait has seen its end.
    hung: bool,
}

impl Stream {
    /// Makes a stream for the function called `entry`.
    ///
    /// # Errors
    /// [`Error::Cuda`].
    pub(super) fn new(module: &Module, entry: &CStr) -> Result<Self> {
        let function = module.function(entry)?;
        let mut stream = ptr::null_mut();
        module.gpu().within(|api| {
            // SAFETY: the pointer comes from a reference.
            check("cuStreamCreate", unsafe { (api.stream_create)(&raw mut stream, NON_BLOCKING) })
        })?;
        // From here on dropping destroys the stream, and the events that were made.
        module.gpu().took();
        let (events, in_flight) = (Vec::new(), Deque::new());
        let mut this = Self {
            module: ManuallyDrop::new(module.clone()),
            function,
            stream,
            events,
            in_flight,
            stopped: false,
            clock: Spin,
            hung: false,
        };
        for _ in 0..DEPTH {
            let mut event = ptr::null_mut();
            module.gpu().within(|api| {
                // SAFETY: the pointer comes from a reference.
                check("cuEventCreate", unsafe {
                    (api.event_create)(&raw mut event, DISABLE_TIMING)
                })
            })?;
            // There is room for `DEPTH` events.
            let _ = this.events.push(event);
        }
        Ok(this)
    }

    /// Puts a job into the stream: what `act` puts there, and then the event of `slot`.
    ///
    /// # Errors
    /// The error of `act`, and [`Error::Cuda`]. Jobs that were put there before stay there.
    pub(super) fn submit(
        &mut self,
        slot: usize,
        act: impl FnOnce(&Self, &Api) -> Result<()>,
    ) -> Result<()> {
        if self.stopped {
            self.in_flight.clear();
            self.stopped = false;
        }
        let full = Error::QueueFull { depth: DEPTH };
        let event =
            self.events.get(slot).copied().filter(|_| !self.in_flight.is_full()).ok_or(full)?;
        self.module.gpu().within(|api| {
            act(self, api)?;
            // SAFETY: both belong to this context.
            check("cuEventRecord", unsafe { (api.event_record)(event, self.stream) })
        })?;
        self.in_flight.push_back(slot).map_err(|_| full)
    }

    /// Launches the function in the stream. The context is current.
    ///
    /// # Safety
    /// `packed` matches the function's declaration: as many parameters, none of them longer there
    /// than here. The bytes that the function touches belong to it until the stream is empty, or
    /// the event after it has happened.
    pub(super) unsafe fn launch(&self, api: &Api, packed: &mut Packed) -> Result<()> {
        let super::Launch { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = packed.launch;
        let mut parameters = Vec::<*mut c_void, { super::Signature::MAX_PARAMETERS }>::new();
        let values = packed.values.as_mut_ptr();
        for at in &packed.at {
            // `at` has room for no more.
            let _ = parameters.push(values.wrapping_add(*at).cast());
        }
        // SAFETY: function and stream belong to this context. The parameters match by the caller's
        // promise; the driver copies them before it returns (CUDA Driver API, `cuLaunchKernel`).
        check("cuLaunchKernel", unsafe {
            (api.launch)(
                self.function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared_bytes,
                self.stream,
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }

    /// Returns the oldest job's slot if the job has ended. `None`: it still runs, or there is none.
    ///
    /// # Errors
    /// [`Error::Cuda`].
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Option<usize>> {
        let Some((slot, event)) =
            self.in_flight.front().and_then(|slot| Some((*slot, *self.events.get(*slot)?)))
        else {
            return Ok(None);
        };
        let (gpu, clock, mut answer) = (self.module.gpu(), self.clock, Ok(NOT_READY));
        poll_until(&clock, timeout, |_| {
            // SAFETY: the event belongs to this context.
            answer = gpu.within(|api| Ok(unsafe { (api.event_query)(event) }));
            answer != Ok(NOT_READY)
        })?;
        match answer? {
            NOT_READY => Ok(None),
            code => check("cuEventQuery", code).map(|()| self.in_flight.pop_front().or(Some(slot))),
        }
    }

    /// Waits for the end of everything in the stream: a kernel cannot be stopped. After a wait that
    /// failed, later waits are shorter.
    ///
    /// # Errors
    /// [`Error::WillNotStop`].
    pub(super) fn stop(&mut self, device: &'static str) -> Result<()> {
        let since_us = self.clock.now_us();
        self.ended(if self.hung { DROP_LIMIT } else { STOP_LIMIT }).map_err(|code| {
            let waited_us =
                u32::try_from(self.clock.now_us().saturating_sub(since_us)).unwrap_or(u32::MAX);
            Error::WillNotStop {
                device,
                status: u32::try_from(code).unwrap_or(u32::MAX),
                waited_us,
            }
        })?;
        self.stopped = true;
        Ok(())
    }

    /// Returns the stream, for copies.
    pub(super) const fn raw(&self) -> CuStream {
        self.stream
    }

    /// Returns the GPU.
    pub(super) fn gpu(&self) -> &Gpu {
        self.module.gpu()
    }

    /// Returns whether the stream is empty.
    pub(super) fn is_idle(&mut self) -> bool {
        self.ended(DROP_LIMIT).is_ok()
    }

    /// Waits until the stream is empty, and remembers if it is not. `Err` is the driver's last
    /// answer.
    fn ended(&mut self, timeout: Duration) -> Result<(), CuResult> {
        let (gpu, stream, clock) = (self.module.gpu(), self.stream, self.clock);
        let mut answer = NOT_READY;
        let waited = poll_until(&clock, timeout, |_| {
            // SAFETY: the stream belongs to this context.
            answer = gpu.within(|api| Ok(unsafe { (api.stream_query)(stream) })).unwrap_or_else(
                |error| match error {
                    Error::Cuda { code, .. } => code,
                    _ => NOT_READY,
                },
            );
            answer == 0 || is_lost(answer)
        });
        let ended = waited == Ok(true) && answer == 0;
        if self.hung == ended {
            self.hung = !ended;
            gpu.hangs(self.hung);
        }
        if ended { Ok(()) } else { Err(answer) }
    }
}

/// Returns whether the context is lost: no later answer will differ. Faults of kernels and of the
/// machine lose it; a call that is forbidden now does not (900: a thread captures a graph).
const fn is_lost(code: CuResult) -> bool {
    // The driver is gone; memory or NVLink errors that cannot be corrected; faults of kernels.
    matches!(code, 4 | 214 | 220 | 700..=799)
}

impl Drop for Stream {
    /// Destroys events and stream; or keeps them, with the module and the context, if a kernel has
    /// not ended.
    fn drop(&mut self) {
        if !self.is_idle() {
            return;
        }
        let (events, stream) = (&self.events, self.stream);
        let given_back = self.module.gpu().within(|api| {
            for event in events {
                // SAFETY: the event is valid, and is destroyed once.
                let _ = unsafe { (api.event_destroy)(*event) };
            }
            // SAFETY: the stream is valid, and is destroyed once.
            check("cuStreamDestroy", unsafe { (api.stream_destroy)(stream) })
        });
        if given_back.is_ok() {
            self.module.gpu().gave_back();
            // SAFETY: this runs once, and nothing uses the module after it.
            unsafe { ManuallyDrop::drop(&mut self.module) };
        }
    }
}

// SAFETY: streams, events and functions may be used on any thread where their context is current.
unsafe impl Send for Stream {}

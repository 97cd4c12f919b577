#![allow(unsafe_code, reason = "the driver's functions are called")]
//! A queue with some launches in it, and the event of each.

use super::error::check;
use super::event::{Event, InFlight, flush};
use super::late::{self, Bytes};
use super::{OpenClGpu, OpenClModule};
use cl3::command_queue::{create_command_queue, enqueue_nd_range_kernel, release_command_queue};
use cl3::kernel::release_kernel;
use cl3::types::{cl_command_queue, cl_kernel};
use contigo::job::{Launch, MAX_OPERANDS};
use contigo::linux::Spin;
use contigo::mem::DevSlice;
use contigo::{Error, Result, Wait};
use core::ffi::CStr;
use core::time::Duration;
use core::{mem, ptr};
use std::collections::VecDeque;

/// How many launches are in a queue at once.
pub(super) const DEPTH: usize = 8;
/// How long a kernel is waited for where it should have been finished: longer than a display
/// driver's watchdog allows one.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How long the drop of a kernel waits for the end of its launches: a job that was forgotten may be
/// about to end.
const DROP_LIMIT: Duration = Duration::from_millis(100);

/// A kernel on a queue of its own. Its launches run one after the other: the queue is in order.
pub(super) struct Launches {
    /// Dropped behind the kernel, which is given back in `drop`.
    module: OpenClModule,
    kernel: cl_kernel,
    queue: cl_command_queue,
    /// The launches whose end `poll` has not reported.
    in_flight: InFlight,
    /// The late transfers of the operands of a launch that was not given yet.
    waits: Vec<Event>,
    /// A launch was refused: a transfer whose end cannot be seen may use its operands.
    blocked: bool,
    /// The queue was waited for: what is in flight has ended, and the next launch begins anew.
    stopped: bool,
    /// It did not end when it should have, and no call has seen its end since.
    hung: bool,
}

impl Launches {
    /// The kernel called `entry`.
    pub(super) fn new(module: &OpenClModule, entry: &CStr) -> Result<Self> {
        module.gpu().must_be_ours()?;
        let kernel = module.kernel(entry)?;
        // SAFETY: context and device belong together. No property asks for another order.
        let queue = check("clCreateCommandQueue", unsafe {
            create_command_queue(module.gpu().context, module.gpu().device, 0)
        });
        let queue = queue.inspect_err(|_| {
            // SAFETY: the kernel is one, and given back once.
            let _ = unsafe { release_kernel(kernel) };
        })?;
        Ok(Self {
            module: module.clone(),
            kernel,
            queue,
            in_flight: VecDeque::with_capacity(DEPTH),
            waits: Vec::with_capacity(late::MOST),
            blocked: false,
            stopped: false,
            hung: false,
        })
    }

    pub(super) const fn kernel(&self) -> cl_kernel {
        self.kernel
    }

    pub(super) fn gpu(&self) -> &'static OpenClGpu {
        self.module.gpu()
    }

    /// Is there room for a launch with these operands? Launches that had ended before a stop are
    /// forgotten. The launch will wait for what is late of the operands' hand-over.
    ///
    /// The late transfers come first: whatever else is refused, [`stop`](Self::stop) knows of them.
    /// Where the end of one cannot be seen, this call and `stop` fail.
    pub(super) fn begin(&mut self, operands: &[DevSlice]) -> Result<()> {
        if mem::take(&mut self.stopped) {
            self.in_flight.clear();
        }
        // An address of no object has no transfer.
        let is_blocked = |error: &Error| !matches!(error, Error::OutOfRange { .. });
        self.find_late(operands).inspect_err(|error| self.blocked |= is_blocked(error))?;
        if self.in_flight.len() < DEPTH { Ok(()) } else { Err(Error::QueueFull { depth: DEPTH }) }
    }

    fn find_late(&mut self, operands: &[DevSlice]) -> Result<()> {
        let gpu = self.gpu();
        gpu.must_be_ours()?;
        gpu.takes_commands()?;
        let mut bytes = [const { None::<Bytes> }; MAX_OPERANDS];
        // No job has more operands.
        for (operand, bytes) in operands.iter().zip(&mut bytes) {
            let (block, origin) = gpu.objects.find(operand)?;
            *bytes = Some((block, origin..origin + operand.len_bytes));
        }
        let waits = &mut self.waits;
        gpu.late.of(&bytes, |event| {
            if waits.len() == late::MOST {
                return Err(Error::TooMany {
                    what: "transfers that are late",
                    most: late::MOST as u64,
                });
            }
            waits.push(event.again()?);
            Ok(())
        })
    }

    /// Launches the kernel with the arguments that it has, behind the transfers that are late.
    /// Where the driver had taken it and this call fails all the same, it is in flight.
    ///
    /// # Safety
    /// The arguments are set, each of the kernel's. The bytes that it then touches belong to it
    /// until `poll` has reported its end, or the queue was stopped.
    pub(super) unsafe fn launch(&mut self, slot: usize, launch: &Launch) -> Result<()> {
        let Launch { grid, block, .. } = *launch;
        let local = block.map(|items| usize::try_from(items).unwrap_or(usize::MAX));
        let [x, y, z] = grid.map(|blocks| usize::try_from(blocks).unwrap_or(usize::MAX));
        let [lx, ly, lz] = local;
        // `check` has found that they fit.
        let global = [x.saturating_mul(lx), y.saturating_mul(ly), z.saturating_mul(lz)];
        let mut waits = [ptr::null_mut(); late::MOST];
        let count =
            waits.iter_mut().zip(&self.waits).map(|(raw, event)| *raw = event.raw()).count();
        let (count, waits) = (
            u32::try_from(count).unwrap_or(0),
            if count == 0 { ptr::null() } else { waits.as_ptr() },
        );
        // SAFETY: kernel and queue belong together, the arrays have three numbers, so many events
        // are there, and the rest is the caller's promise.
        let given = unsafe {
            enqueue_nd_range_kernel(
                self.queue,
                self.kernel,
                3,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                count,
                waits,
            )
        };
        let event = Event::of("clEnqueueNDRangeKernel", given)?;
        // There is room: `begin`. From here on it is in flight, whatever else happens.
        self.in_flight.push_back((slot, event));
        // Its end is theirs: it waits for them.
        self.waits.clear();
        flush(self.queue)
    }

    /// The slot of the oldest launch, where it has ended. `None`: it goes on, or there is none.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Option<usize>> {
        let Some((_, event)) = self.in_flight.front() else { return Ok(None) };
        let ended = event.ended(timeout)?;
        Ok(if ended { self.in_flight.pop_front().map(|(slot, _)| slot) } else { None })
    }

    /// Waits for the end of all that is in the queue: a kernel cannot be stopped.
    pub(super) fn stop(&mut self, device: &'static str) -> Result<()> {
        let since_us = Spin.now_us();
        self.ended(STOP_LIMIT).map_err(|code| {
            let waited_us =
                u32::try_from(Spin.now_us().saturating_sub(since_us)).unwrap_or(u32::MAX);
            Error::WillNotStop { device, status: code.cast_unsigned(), waited_us }
        })?;
        self.stopped = true;
        Ok(())
    }

    /// Waits until all launches have ended well, and the transfers that one should have waited for.
    /// Keeps in mind where they have not. `Err`: 0, one goes on; else its error. After an error a
    /// device may be lost, and what its queues do is its maker's (OpenCL 3.0, 5.11). So its buffers
    /// are not taken back.
    fn ended(&mut self, timeout: Duration) -> Result<(), i32> {
        let until_us =
            Spin.now_us().saturating_add(u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
        let blocked = if self.blocked || self.gpu().is_forked() { Err(0) } else { Ok(()) };
        let mut all = self.waits.iter().chain(self.in_flight.iter().map(|(_, event)| event));
        let ended = blocked.and_then(|()| {
            all.try_for_each(|event| {
                let left = Duration::from_micros(until_us.saturating_sub(Spin.now_us()));
                match event.ended(left) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(0),
                    Err(Error::Gpu { code, .. }) => Err(code),
                    Err(_) => Err(i32::MIN),
                }
            })
        });
        if ended.is_ok() {
            self.waits.clear();
        }
        if self.hung == ended.is_ok() {
            self.hung = ended.is_err();
            self.gpu().hung.change(self.hung);
        }
        ended
    }
}

impl Drop for Launches {
    /// Gives kernel and queue back; or keeps them, with the program, where a launch has not ended.
    fn drop(&mut self) {
        // `ended` looks at the process first: in a child of fork nothing of the driver is called.
        let gpu = self.gpu();
        let ended = self.ended(DROP_LIMIT);
        if ended.is_err() || gpu.keeps_all() {
            mem::forget(self.module.clone());
            let (in_flight, waits) = (mem::take(&mut self.in_flight), mem::take(&mut self.waits));
            // One goes on, and no more is known to be wrong: it may end well.
            if ended == Err(0) && !self.blocked && waits.is_empty() && !gpu.is_forked() {
                gpu.hung.forget(in_flight);
            } else {
                mem::forget((in_flight, waits));
            }
            return;
        }
        self.in_flight.clear();
        // SAFETY: both are given back once, and the queue is empty.
        let _ = unsafe { (release_kernel(self.kernel), release_command_queue(self.queue)) };
    }
}

// SAFETY: OpenCL's functions may be called on any thread. `clSetKernelArg` is the exception, which
// asks for one thread at a time for a kernel: it is called by `&mut self` (OpenCL 3.0, A.2).
unsafe impl Send for Launches {}

#![allow(
    unsafe_code,
    reason = "Vulkan's functions are called, with objects that are destroyed once"
)]
//! A pipeline's jobs in the device's queue, and a fence behind each.

use super::object::Bound;
use super::pipeline::{DEPTH, Pipeline};
use super::{VulkanGpu, VulkanModule};
use ash::vk;
use contigo::hw::poll_until;
use contigo::linux::{Spin, same_process};
use contigo::{Error, Result, Wait};
use core::ffi::CStr;
use core::mem;
use core::time::Duration;
use std::collections::VecDeque;

/// How long the drop of a kernel waits for the end of its jobs: a job that was forgotten may be
/// about to end.
const DROP_LIMIT: Duration = Duration::from_millis(100);

/// A pipeline, and its jobs in the queue.
pub(super) struct Lane {
    /// Destroyed in `drop`; its module is dropped behind it.
    pipeline: Pipeline,
    /// The slots in the queue whose end `poll` has not reported, oldest first.
    in_flight: VecDeque<usize>,
    /// All that is in flight has ended, and the next job begins anew.
    stopped: bool,
    pub(super) stop_limit: Duration,
    /// It did not end when it should have, and no call has seen its end since.
    hung: bool,
}

impl Lane {
    /// The pipeline of the entry point `entry`, which the module has.
    pub(super) fn new(
        module: &VulkanModule,
        entry: &CStr,
        operands: usize,
        push_bytes: u32,
        stop_limit: Duration,
    ) -> Result<Self> {
        same_process()?;
        // From here on dropping destroys what was made.
        let mut this = Self {
            pipeline: Pipeline::none(module),
            in_flight: VecDeque::with_capacity(DEPTH),
            stopped: false,
            stop_limit,
            hung: false,
        };
        this.pipeline.make(entry, operands, push_bytes)?;
        Ok(this)
    }

    /// The device.
    pub(super) fn gpu(&self) -> &'static VulkanGpu {
        self.pipeline.module.gpu()
    }

    /// Records a job into `slot`, and puts it into the queue. Nothing of the heap is taken here.
    ///
    /// # Safety
    /// The shader has the operands, as many, and the words. Its bytes belong to the device until
    /// `poll` tells of the slot, or `stop` returns `Ok`.
    pub(super) unsafe fn submit(
        &mut self,
        slot: usize,
        grid: [u32; 3],
        operands: &[Bound],
        words: &[u8],
    ) -> Result<()> {
        same_process()?;
        if self.stopped {
            self.in_flight.clear();
            self.stopped = false;
        }
        let full = Error::QueueFull { depth: DEPTH };
        let free = !self.in_flight.contains(&slot) && self.in_flight.len() < DEPTH;
        let objects = self.pipeline.slots.get(slot).copied().filter(|_| free).ok_or(full)?;
        // SAFETY: the slot's last job has ended, so that nothing of it is in the queue. Its objects
        // are this value's alone (`&mut`). The rest is the caller's promise.
        unsafe { self.pipeline.record(objects, grid, operands, words)? };
        // SAFETY: the fence was reset and is in no queue; both stay until it is signalled (`drop`).
        // The commands touch the operands, which belong to the device.
        unsafe { self.gpu().submit(objects.commands, objects.fence) }?;
        // There is room: the heap is left alone.
        self.in_flight.push_back(slot);
        Ok(())
    }

    /// The slot of the oldest job, where it has ended. `None`: it goes on, or there is none.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Option<usize>> {
        same_process()?;
        let Some((slot, fence)) = self
            .in_flight
            .front()
            .and_then(|slot| Some((*slot, self.pipeline.slots.get(*slot)?.fence)))
        else {
            return Ok(None);
        };
        let (gpu, mut answer) = (self.gpu(), Ok(false));
        poll_until(&Spin, timeout, |_| {
            // SAFETY: the fence is this device's.
            answer = unsafe { gpu.is_signalled(fence) };
            answer != Ok(false)
        })?;
        if !gpu.check("vkGetFenceStatus", answer)? {
            return Ok(None);
        }
        self.in_flight.pop_front();
        Ok(Some(slot))
    }

    /// Waits for the end of all that is in the queue of this kernel: a dispatch cannot be stopped.
    pub(super) fn stop(&mut self, device: &'static str) -> Result<()> {
        same_process()?;
        let since_us = Spin.now_us();
        self.ended(self.stop_limit).map_err(|code| {
            let waited_us =
                u32::try_from(Spin.now_us().saturating_sub(since_us)).unwrap_or(u32::MAX);
            Error::WillNotStop { device, status: code.as_raw().cast_unsigned(), waited_us }
        })?;
        self.stopped = true;
        Ok(())
    }

    /// Waits until every job has ended, and keeps in mind where one has not. `Err` is the last
    /// answer.
    fn ended(&mut self, timeout: Duration) -> core::result::Result<(), vk::Result> {
        let gpu = self.gpu();
        let mut answer = vk::Result::NOT_READY;
        let fences = || {
            self.in_flight
                .iter()
                .filter_map(|slot| self.pipeline.slots.get(*slot))
                .map(|slot| slot.fence)
        };
        // A limit that is too long is an error, and the answer stays.
        let _ = poll_until(&Spin, timeout, |_| {
            // SAFETY: the fences are this device's.
            let all = fences()
                .try_fold(true, |all, fence| Ok(all && unsafe { gpu.is_signalled(fence) }?));
            answer = match all {
                // Of a lost device nothing is believed any more.
                _ if gpu.is_lost() => vk::Result::ERROR_DEVICE_LOST,
                Ok(true) => vk::Result::SUCCESS,
                Ok(false) => vk::Result::NOT_READY,
                Err(result) => result,
            };
            matches!(answer, vk::Result::SUCCESS | vk::Result::ERROR_DEVICE_LOST)
        });
        let ended = answer == vk::Result::SUCCESS;
        if self.hung == ended {
            self.hung = !ended;
            gpu.hung.change(self.hung);
        }
        if ended { Ok(()) } else { Err(answer) }
    }

    /// Can all of it be destroyed? Where a job goes on, the device looks at its fence from here on.
    fn can_go(&mut self) -> bool {
        if same_process().is_err() {
            return false;
        }
        if self.ended(DROP_LIMIT).is_err() {
            if let Some(slot) =
                self.in_flight.back().and_then(|slot| self.pipeline.slots.get(*slot))
            {
                self.gpu().hung.forget(slot.fence);
            }
            return false;
        }
        !self.gpu().is_hung()
    }
}

impl Drop for Lane {
    /// Destroys all of it; or keeps it, with the module, where a job has not ended, and in a child
    /// of fork.
    fn drop(&mut self) {
        if !self.can_go() {
            mem::forget(self.pipeline.module.clone());
            return;
        }
        // SAFETY: every job has ended, so that nothing of it is in the queue; and once.
        unsafe { self.pipeline.destroy() }
    }
}

#![allow(unsafe_code, reason = "the driver's functions are called")]
//! A command's event, and a bounded wait for it.

use super::error::{check, error};
use cl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, cl_event, get_event_info, release_event,
    retain_event, wait_for_events,
};
use cl3::info_type::InfoType;
use cl3::types::cl_command_queue;
use contigo::hw::poll_until;
use contigo::linux::Spin;
use contigo::{Error, Result};
use core::time::Duration;
use std::collections::VecDeque;

/// Asks the driver to begin with what is in the queue.
pub(super) fn flush(queue: cl_command_queue) -> Result<()> {
    check("clFlush", cl3::command_queue::flush(queue))
}

/// The slots of launches, oldest first, with the event of each.
pub(super) type InFlight = VecDeque<(usize, Event)>;

/// The event of a command: released when it is dropped, whether or not the command has ended.
#[derive(Debug)]
pub(super) struct Event {
    raw: cl_event,
    /// The call that the command is from, for errors.
    call: &'static str,
}

impl Event {
    /// Owns the event that `call` answered with.
    pub(super) fn of(call: &'static str, answer: Result<cl_event, i32>) -> Result<Self> {
        check(call, answer).map(|raw| Self { raw, call })
    }

    /// The same event, owned once more.
    pub(super) fn again(&self) -> Result<Self> {
        // SAFETY: it is one, and the new value gives this reference back.
        check("clRetainEvent", unsafe { retain_event(self.raw) })?;
        Ok(Self { raw: self.raw, call: self.call })
    }

    /// For a list of events that a command waits for.
    pub(super) const fn raw(&self) -> cl_event {
        self.raw
    }

    /// Has the command ended? Waits at most for `timeout`. Where the answer is `true`, what the
    /// command did is visible to the CPU and to every command that is given from here on.
    ///
    /// To see `CL_COMPLETE` is no synchronisation point (OpenCL 3.0, 5.11, `clGetEventInfo`: "a
    /// lightweight query"); `clWaitForEvents` is one. That call has no limit, so it is made only
    /// for an event that is complete: there it has nothing to wait for.
    pub(super) fn ended(&self, timeout: Duration) -> Result<bool> {
        let mut status = Err(CL_COMPLETE);
        poll_until(&Spin, timeout, |_| {
            status = self.status();
            !matches!(status, Ok(1..))
        })?;
        match status {
            Ok(CL_COMPLETE) => {
                check("clWaitForEvents", wait_for_events(&[self.raw])).map(|()| true)
            }
            Ok(code) if code < 0 => Err(error(self.call, code)),
            Ok(_) => Ok(false),
            Err(code) => Err(error("clGetEventInfo", code)),
        }
    }

    /// As [`ended`](Self::ended), for what must have ended by then.
    pub(super) fn must_end(&self, timeout: Duration) -> Result<()> {
        let timeout_us = u32::try_from(timeout.as_micros()).unwrap_or(u32::MAX);
        if self.ended(timeout)? { Ok(()) } else { Err(Error::Timeout { timeout_us }) }
    }

    /// More than 0: it goes on. Less: its error. (OpenCL 3.0, 5.11, `clGetEventInfo`. The binding
    /// allocates nothing for this one.)
    fn status(&self) -> Result<i32, i32> {
        match get_event_info(self.raw, CL_EVENT_COMMAND_EXECUTION_STATUS)? {
            InfoType::Int(status) => Ok(status),
            // The binding has this number as an `Int`.
            _ => Err(cl3::error_codes::CL_INVALID_VALUE),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference, and gives it back once. The command goes on.
        let _ = unsafe { release_event(self.raw) };
    }
}

// SAFETY: OpenCL's functions may be called on any thread, `clSetKernelArg` apart (OpenCL 3.0, A.2),
// and an event changes its status by itself.
unsafe impl Send for Event {}
// SAFETY: as for `Send`.
unsafe impl Sync for Event {}

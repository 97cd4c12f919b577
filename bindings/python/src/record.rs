//! A job: its buffers, how it ended, and the taker of its end.

use crate::buffer::Buffer;
use crate::error::{Refusal, raised_as, refused};
use crate::inner::Inner;
use crate::lock::{Kept, Plain};
use contigo::{Completion, CpuBuf, DevBuf, Error};
use contigo_objects::Job;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock, Weak};
use std::{mem, ptr};

/// Takes the ends of queued jobs: a queue, a stream, or the engine itself. None takes those of
/// another, and what is kept for one goes with it.
pub(crate) struct Taker(Arc<()>);

impl Taker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(()))
    }

    /// As a record names it.
    pub(crate) fn name(&self) -> Weak<()> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn is(&self, taker: &Weak<()>) -> bool {
        ptr::eq(taker.as_ptr(), Arc::as_ptr(&self.0))
    }
}

/// A job: its buffers, and how it ended.
pub(crate) struct Record {
    buffers: Vec<Kept<Buffer>>,
    /// The taker of its end, of a job that was queued.
    pub(crate) taker: Option<Weak<()>>,
    /// The number of its push, to give jobs back in their order.
    pub(crate) serial: u64,
    end: OnceLock<End>,
}

impl Plain for Record {}

/// How a job ended. Its buffers are the CPU's then, unless synchronising one failed.
#[derive(Clone)]
pub(crate) enum End {
    Done(Completion),
    /// It failed alone, or with all others.
    Failed(Error, String),
    /// The program stopped the device.
    Cancelled,
}

impl Record {
    pub(crate) fn new(buffers: Vec<Kept<Buffer>>, taker: Option<&Taker>, serial: u64) -> Self {
        Self { buffers, taker: taker.map(Taker::name), serial, end: OnceLock::new() }
    }

    /// Its buffers, in their order.
    pub(crate) fn handles(&self, py: Python<'_>) -> Vec<Py<Buffer>> {
        self.buffers.iter().map(|buffer| buffer.clone_ref(py)).collect()
    }

    pub(crate) fn inners(&self) -> impl Iterator<Item = &Arc<Inner>> {
        self.buffers.iter().map(|buffer| buffer.get().inner())
    }

    /// Whether a taker gets its end.
    pub(crate) fn is_kept(&self) -> bool {
        self.taker.is_some()
    }

    /// Whether `taker` takes its end.
    pub(crate) fn is_of(&self, taker: &Taker) -> bool {
        self.taker.as_ref().is_some_and(|own| taker.is(own))
    }

    /// Whether one taker takes the ends of both.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        matches!((&self.taker, &other.taker), (Some(own), Some(other)) if own.ptr_eq(other))
    }

    /// Whether its taker still exists.
    pub(crate) fn is_wanted(&self) -> bool {
        self.taker.as_ref().is_some_and(|own| own.strong_count() > 0)
    }

    /// Whether it ended by a fault or a stop.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.end(), Some(End::Failed(..) | End::Cancelled))
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Its completion; the exception, where it failed or was cancelled; `None` while it is in
    /// flight.
    pub(crate) fn completion(&self) -> Option<Result<Completion, Refusal>> {
        Some(match self.end.get()? {
            End::Done(completion) => Ok(*completion),
            End::Failed(error, text) => Err(raised_as(*error, text.clone())),
            End::Cancelled => {
                Err(refused("cancelled: the device was stopped before this job ended"))
            }
        })
    }

    /// All buffers that could come back did.
    pub(crate) fn ends(&self, end: End, unsynced: Option<Error>) {
        let end = match unsynced {
            Some(error) => End::Failed(
                error,
                format!("{error}; a buffer stays the device's: sync_from_device()"),
            ),
            None => end,
        };
        // Once: it was in flight until now.
        let _ = self.end.set(end);
    }
}

/// A job in flight, as the ledger has it.
#[derive(Default)]
pub(crate) struct Flight {
    pub(crate) record: Option<Arc<Record>>,
    /// Why one of its buffers is still the device's.
    pub(crate) unsynced: Option<Error>,
}

impl Job for Flight {
    fn put(&mut self, index: usize, buf: Result<CpuBuf, DevBuf>) {
        match self.record.as_ref().and_then(|record| record.inners().nth(index)) {
            Some(inner) => self.unsynced = inner.put(buf).err().or(self.unsynced),
            // Never: each has its record. Leak, never free.
            None => mem::forget(buf),
        }
    }

    fn refused(&mut self) {
        *self = Self::default();
    }
}

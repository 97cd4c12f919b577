//! A queue without types: for `&mut dyn Driver`, and for bindings that know a job's operands only
//! at run time.

use super::{
    Queue,
    flight::{Buffers, Look},
};
use crate::{
    job::{Completion, Done, Driver, JobError, prepare::Slices},
    mem::{DevBuf, Operand},
    trace::Site,
    types::Result,
};
use core::time::Duration;
use heapless::Vec;

impl<'p, D: Driver, const SLOTS: usize, const OPERANDS: usize, T> Queue<'p, D, SLOTS, OPERANDS, T> {
    /// As [`push`](Self::push), with the words that the driver's documentation names: for a driver
    /// without types, such as `&mut dyn Driver`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn push_words(
        &mut self,
        operands: [Operand<'p, T>; OPERANDS],
        args: &[u32],
    ) -> Result<usize, JobError<[Operand<'p, T>; OPERANDS]>> {
        let mut list = Vec::from_array(operands);
        self.push_list(&mut list, args, 0).map_err(|JobError { error, cause, operand, buffers }| {
            // They are as many as they were.
            JobError { error, cause, operand, buffers: buffers.and_then(|()| list.into_array().ok()) }
        })
    }

    /// As [`push_words`](Self::push_words), with as many operands as the driver's jobs have, for a
    /// caller that knows their count only at run time. They go from the caller's list into their
    /// place, and no more is moved than there are. The job's end has its `tag`
    /// ([`next_each`](Self::next_each)), by which a caller finds what it keeps for the job.
    ///
    /// # Errors
    /// As [`push`](Self::push). Where the error has buffers, all operands are in the list again.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn push_list(&mut self, operands: &mut Vec<Operand<'p, T>, OPERANDS>, args: &[u32], tag: usize) -> Result<usize, JobError<()>> {
        let site = Site::here();
        let mut slices = Slices::new();
        let most_bytes = match self.ready(operands, &mut slices, args, site) {
            Ok(most_bytes) => most_bytes,
            Err((operand, error)) => return Err(JobError { operand, ..JobError::gave_back(error, ()) }),
        };
        self.launch(operands, tag, most_bytes, &slices, args, site)
    }

    /// As [`next_device`](Self::next_device), with what the device said as it is.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_words(&mut self, timeout: Duration) -> Look<'p, Done<Buffers<'p, T, OPERANDS>>, T, OPERANDS> {
        let Some((place, completion)) = self.ended_well(timeout, Site::here())? else { return Ok(None) };
        let mut buffers = Vec::new();
        // There is room for each.
        let tag = self.hand_out(place, |_, _, buf| drop(buffers.push(buf)));
        Ok(tag.map(|_| Done { buffers, report: completion, completion }))
    }

    /// As [`next_words`](Self::next_words), and each buffer goes from its place to `each`, with its
    /// job's tag and its number. The answer is the tag and what the device said; a job that failed
    /// alone is one whose `failed` says why.
    ///
    /// # Errors
    /// As [`next`](Self::next), for the channel as a whole.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_each(
        &mut self,
        timeout: Duration,
        each: impl FnMut(usize, usize, DevBuf<'p, T>),
    ) -> Result<Option<(usize, Completion)>, JobError<()>> {
        match self.ended(timeout, Site::here()) {
            Ok(Some((place, completion))) => Ok(self.hand_out(place, each).map(|tag| (tag, completion))),
            Ok(None) => Ok(None),
            Err(failed) => Err(failed.map(drop)),
        }
    }

    /// As [`take_back`](Self::take_back), and each buffer goes from its place to `each`. The answer
    /// is the job's tag.
    pub fn take_back_each(&mut self, each: impl FnMut(usize, usize, DevBuf<'p, T>)) -> Option<usize> {
        let place = self.oldest_to_take_back()?;
        self.counts.cancelled += 1;
        self.hand_out(place, each)
    }
}

//! Tickets of the jobs of one engine: a hold on each buffer's entry, and how each job ended.

use super::MAX_OPERANDS;
use crate::{
    fault::Fault,
    limits::JOBS,
    object::buf::{Buf, Owner},
    table::JobHold,
};
use contigo::{Completion, DevBuf, Error, Operand};
use core::mem::{self, MaybeUninit};
use heapless::Vec;

/// How a job ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// The device told of its end, of a failed one too (`Completion::failed`).
    Told(Completion),
    /// The device was stopped: by a fault of the channel, or because the time of the wait was over.
    Fault(Error),
    /// The device was stopped for another reason than this job.
    Cancelled,
}

struct Ticket {
    /// Which job of the engine; 0: none.
    number: u64,
    /// How it ended; of the job before, until the next one begins.
    ended: Option<Ended>,
    /// The entries of its buffers. Nobody but this reaches them.
    holds: Vec<JobHold<Buf>, MAX_OPERANDS>,
}

/// The jobs of one engine that nobody has taken the end of.
pub(super) struct Tickets {
    tickets: [Ticket; JOBS],
    /// A bit for each that is in use.
    used: u64,
    /// Those that have ended, in that order.
    ended: Vec<u8, JOBS>,
}

const _: () = assert!(JOBS == u64::BITS as usize, "`used` has a bit for each");

impl Tickets {
    /// None in use, made where they will be.
    #[allow(unsafe_code, reason = "no stack holds all of them at once")]
    pub(super) fn new_in(place: &mut MaybeUninit<Self>) {
        let this = place.as_mut_ptr();
        // SAFETY: every field is written once, inside `place`, which is borrowed alone.
        unsafe {
            let tickets = (&raw mut (*this).tickets).cast::<Ticket>();
            (0..JOBS).for_each(|at| tickets.add(at).write(Ticket { number: 0, ended: None, holds: Vec::new() }));
            (&raw mut (*this).used).write(0);
            (&raw mut (*this).ended).write(Vec::new());
        }
    }

    /// How many jobs nobody has taken the end of.
    pub(super) const fn used(&self) -> u32 {
        self.used.count_ones()
    }

    /// How many of them have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    /// A free one.
    #[inline]
    pub(super) fn free(&self) -> Option<usize> {
        let at = (!self.used).trailing_zeros() as usize;
        (at < JOBS).then_some(at)
    }

    /// Job number `number` has ticket `at` from here on, with the entries of its buffers.
    #[inline]
    pub(super) fn open(&mut self, at: usize, number: u64) -> Option<&mut Vec<JobHold<Buf>, MAX_OPERANDS>> {
        let ticket = self.tickets.get_mut(at)?;
        self.used |= 1 << at;
        (ticket.number, ticket.ended) = (number, None);
        Some(&mut ticket.holds)
    }

    /// The number of ticket `at`'s job.
    pub(super) fn number(&self, at: usize) -> u64 {
        self.tickets.get(at).map_or(0, |ticket| ticket.number)
    }

    /// Has it ended?
    pub(super) fn has_ended(&self, at: usize) -> bool {
        self.tickets.get(at).is_some_and(|ticket| ticket.number != 0 && ticket.ended.is_some())
    }

    /// The first that ended.
    pub(super) fn first_ended(&self) -> Option<usize> {
        self.ended.first().map(|at| usize::from(*at))
    }

    /// Buffer `index` of ticket `at` came out of the queue: it goes into its entry, as the CPU's
    /// where `to_cpu` says so. One whose caches could not be maintained stays a device's.
    #[inline]
    pub(super) fn put(&mut self, at: usize, index: usize, buf: DevBuf, to_cpu: bool) {
        match self.tickets.get_mut(at).and_then(|ticket| ticket.holds.get_mut(index)) {
            Some(hold) if to_cpu => {
                let held = buf.into_cpu().map_or_else(|refused| Owner::Dev(refused.into_returned()), Owner::Cpu);
                hold.value().put(held);
            }
            Some(hold) => hold.value().put(Owner::Dev(buf)),
            // Every job in the queue has its ticket. Leak, never free.
            None => mem::forget(buf),
        }
    }

    /// The job of ticket `at` has ended.
    #[inline]
    pub(super) fn end(&mut self, at: usize, how: Ended) {
        if let Some(ticket) = self.tickets.get_mut(at) {
            ticket.ended = Some(how);
            // There is room for each.
            #[allow(clippy::cast_possible_truncation, reason = "below JOBS")]
            let _ = self.ended.push(at as u8);
        }
    }

    /// Gives the buffers of a job that has ended to whoever has their handles, on the CPU's side
    /// where `to_cpu` says so, and frees the ticket. One whose caches could not be maintained is
    /// still a device's, and the reason goes to `stale`. `None`: the ticket is of no such job.
    #[inline]
    pub(super) fn close(&mut self, at: usize, to_cpu: bool, stale: &mut Result<(), Fault>) -> Option<&Ended> {
        let ticket = self.tickets.get_mut(at).filter(|ticket| ticket.number != 0 && ticket.ended.is_some())?;
        while let Some(mut hold) = ticket.holds.pop() {
            if to_cpu && let Err(fault) = hold.value().back_to_cpu() {
                *stale = Err(fault);
            }
            hold.back();
        }
        ticket.number = 0;
        self.used &= !(1 << at);
        // Mostly it is the only one.
        if self.ended.last().is_some_and(|ended| usize::from(*ended) == at) {
            let _ = self.ended.pop();
        } else if let Some(place) = self.ended.iter().position(|ended| usize::from(*ended) == at) {
            self.ended.remove(place);
        }
        ticket.ended.as_ref()
    }

    /// The job of ticket `at` was refused: its operands are in their entries again.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, at: usize, operands: &mut Vec<Operand, MAX_OPERANDS>) {
        let Some(ticket) = self.tickets.get_mut(at) else { return };
        for (mut hold, operand) in ticket.holds.drain(..).zip(operands.drain(..)) {
            hold.value().put(operand.into_buf().map_or_else(Owner::Dev, Owner::Cpu));
            hold.back();
        }
        ticket.number = 0;
        self.used &= !(1 << at);
    }
}

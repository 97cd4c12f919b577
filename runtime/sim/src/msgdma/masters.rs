//! The read and write masters: one descriptor at a time, burst by burst, and all events that need
//! no access.

use super::dispatcher::{Active, Descriptor};
use super::{MsgdmaMode, MsgdmaModel, manual as m};
use crate::SimBus;
use crate::faults::Fate;
use contigo_core::types::DevAddr;

/// From a descriptor to its first burst.
const LATENCY_NS: u64 = 200;
/// One burst: 16 beats of 32 bits, times four.
const BURST_BYTES: usize = 256;
/// How many bytes the masters move in a nanosecond.
const BYTES_PER_NS: u64 = 1;
/// From the last burst until all writes are answered.
const WRITE_NS: u64 = 100;
/// The same if the core does not wait for the answer, in a congested interconnect.
const POSTED_NS: u64 = 5_000;

impl MsgdmaModel {
    /// When the next event is due.
    pub(super) fn next_at_ns(&self) -> Option<u64> {
        let master = self.dispatcher.active.and_then(|active| self.burst_ns(&active));
        let posted = self.posted.map(|(at_ns, ..)| at_ns);
        let times = [
            master,
            posted,
            self.dispatcher.stops_at_ns,
            self.dispatcher.resets_at_ns,
            self.fetch.next_at_ns(self.dispatcher.room()),
        ];
        times.into_iter().flatten().filter(|&at_ns| at_ns != u64::MAX).min()
    }

    /// When the line rises for the current descriptor, or an earlier time.
    pub(super) fn expected_ns(&self) -> Option<u64> {
        let active = self.dispatcher.active?;
        let enabled = self.build.config.prefetcher_at.is_some() || self.dispatcher.interrupts();
        let delay_ns = active.irq_delay_ns.filter(|_| enabled)?;
        Some(self.burst_ns(&active)? + delay_ns)
    }

    fn burst_ns(&self, active: &Active) -> Option<u64> {
        let stops = self.dispatcher.resets_at_ns.is_some() || self.dispatcher.masters_stop();
        let owed = self.owed && active.over.is_some() && self.waits_for_writes(active);
        if matches!(active.fate, Fate::Hang | Fate::Stuck) || stops || owed {
            return None;
        }
        match self.mode() {
            MsgdmaMode::Receive if active.over.is_none() => {
                let want = (active.descriptor.length - active.done).min(64) as usize;
                Some(self.stream.ready_at_ns(active.next_ns, want)?.max(active.next_ns))
            }
            MsgdmaMode::Send if active.over.is_none() && self.stream.room_bytes() == 0 => None,
            _ => Some(active.next_ns),
        }
    }

    /// Returns whether the descriptor ends only when its writes have been answered.
    const fn waits_for_writes(&self, active: &Active) -> bool {
        active.writes
            && self.build.config.write_responses
            && active.descriptor.control & m::CONTROL_WAIT_WRITE_RESPONSE != 0
    }

    /// Stops the masters.
    pub(super) fn stop_masters(&mut self) {
        let cut = self.dispatcher.active.filter(|active| active.done > 0 && active.over.is_none());
        self.owed |= self.build.stop_loses_responses
            && cut.is_some_and(|active| self.waits_for_writes(&active));
    }

    /// Writes a burst's bytes. If the core does not wait for answers, the last byte arrives later.
    fn write_burst(
        &mut self,
        at_ns: u64,
        to: DevAddr,
        bytes: &[u8],
        waits: bool,
        bus: &mut SimBus<'_>,
    ) {
        let Some((last, others)) = bytes.split_last().filter(|_| !waits) else {
            let _ = bus.write(to, bytes);
            return;
        };
        if let Some((_, addr, byte)) = self.posted.take() {
            let _ = bus.write(DevAddr(addr), &[byte]);
        }
        let _ = bus.write(to, others);
        self.posted = Some((at_ns + POSTED_NS, to.0 + others.len() as u64, *last));
    }

    /// Performs the write that the interconnect accepted, whatever happens to the core.
    pub(super) fn land(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        if let Some((due_ns, addr, byte)) = self.posted
            && due_ns <= at_ns
        {
            self.posted = None;
            let _ = bus.write(DevAddr(addr), &[byte]);
        }
    }

    /// Handles the event that is due at `at_ns`.
    pub(super) fn happen(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        self.land(at_ns, bus);
        self.dispatcher.settle(at_ns);
        self.step_fetch(at_ns, bus);
        self.begin_next(at_ns, bus);
        if let Some(active) = self.dispatcher.active
            && self.burst_ns(&active).is_some_and(|burst_ns| burst_ns <= at_ns)
        {
            match active.over {
                Some(response) => self.finish(at_ns, &active, response),
                None => self.burst(at_ns, active, bus),
            }
            self.begin_next(at_ns, bus);
        }
    }

    /// Starts the next descriptor if none is active.
    pub(super) fn begin_next(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        if !self.dispatcher.may_begin() {
            return;
        }
        let Some(descriptor) = self.dispatcher.fifo.pop_front() else { return };
        let faults = *bus.faults();
        let receives = self.mode() == MsgdmaMode::Receive;
        if bus.strikes(faults.error) && !receives {
            self.gone = true;
        }
        let fate = match bus.fate() {
            // The stream's source sends these error bits with the data.
            Fate::Good if receives && bus.strikes(faults.error) => {
                Fate::Error(1 << bus.rng().u32(..8))
            }
            fate => fate,
        };
        let irq_delay_ns = bus.irq_delay_ns(20_000);
        if receives {
            self.stream.trigger(at_ns);
        }
        let writes = self.mode() != MsgdmaMode::Send;
        let next_ns = at_ns + LATENCY_NS + bus.rng().u64(..100);
        self.dispatcher.active =
            Some(Active { descriptor, done: 0, next_ns, over: None, irq_delay_ns, fate, writes });
    }

    /// Moves one burst. Avalon's masters see no error where there is no memory.
    fn burst(&mut self, at_ns: u64, mut active: Active, bus: &mut SimBus<'_>) {
        let Descriptor { read, write, length, control, strides, .. } = active.descriptor;
        let at = |addr: u64, stride: u32| {
            DevAddr(if stride == 0 { addr } else { addr + u64::from(active.done) })
        };
        let (from, to) = (at(read, strides & 0xFFFF), at(write, strides >> 16));
        let left = (length - active.done) as usize;
        let mut beats = [0; BURST_BYTES];
        let size = left.min(BURST_BYTES);
        let mut ends = false;
        let waits = self.waits_for_writes(&active);
        let moved = match self.mode() {
            MsgdmaMode::Copy => {
                let bytes = beats.get_mut(..size).unwrap_or_default();
                let _ = bus.read_words(from, bytes, (self.build.config.data_bits / 8) as usize);
                self.write_burst(at_ns, to, bytes, waits, bus);
                size
            }
            MsgdmaMode::Send => {
                let bytes = beats.get_mut(..size.min(self.stream.room_bytes())).unwrap_or_default();
                let _ = bus.read_words(from, bytes, (self.build.config.data_bits / 8) as usize);
                let marks = m::CONTROL_GENERATE_SOP | m::CONTROL_GENERATE_EOP;
                let last = bytes.len() == left && control & marks == marks;
                self.stream.give(bytes, last)
            }
            MsgdmaMode::Receive => {
                let taken = self.stream.take(at_ns, beats.get_mut(..size).unwrap_or_default());
                self.write_burst(
                    at_ns,
                    to,
                    beats.get(..taken.bytes).unwrap_or_default(),
                    waits,
                    bus,
                );
                ends = taken.last && control & m::CONTROL_END_ON_EOP != 0;
                taken.bytes
            }
        };
        active.done += u32::try_from(moved).unwrap_or(0);
        let full = active.done == length;
        if full || ends {
            let early = full
                && !ends
                && self.mode() == MsgdmaMode::Receive
                && control & m::CONTROL_END_ON_EOP != 0;
            let bits = if let Fate::Error(bits) = active.fate { bits } else { 0 };
            let status = bits | if early { m::RESPONSE_EARLY_TERMINATION } else { 0 };
            // Only a receiver with packets reports a count of bytes.
            let bytes = if self.mode() == MsgdmaMode::Receive { active.done } else { 0 };
            // Without the wait, the last write is answered after the descriptor's end.
            (active.over, active.next_ns) =
                (Some((bytes, status)), if waits { at_ns + WRITE_NS } else { at_ns });
        } else {
            active.next_ns = at_ns + (moved as u64 / BYTES_PER_NS).max(4);
        }
        self.dispatcher.active = Some(active);
    }

    fn finish(&mut self, at_ns: u64, active: &Active, response: (u32, u32)) {
        let config = &self.build.config;
        let fetched = config.prefetcher_at.is_some();
        self.dispatcher.done(
            at_ns,
            active,
            response,
            config.resp_at.is_some() || fetched,
            !fetched,
        );
        if fetched {
            self.fetch.response(at_ns, active.irq_delay_ns);
        }
    }
}

//! The mover of data: one transfer at a time, burst by burst, and all events that need no access.

use super::queue::{Request, address};
use super::{AxiDmacBuild, AxiDmacModel, Manager, Side, manual as m};
use crate::SimBus;
use crate::faults::Fate;
use contigo_core::types::DevAddr;

/// From a transfer to its first burst, or to the fetch of its descriptor.
const LATENCY_NS: u64 = 150;
/// How many bytes the mover moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// From the last burst to its response.
const RESPONSE_NS: u64 = 100;
/// The largest burst.
const BURST_BYTES: usize = 256;

/// A descriptor, as the memory has it.
pub(super) type Descriptor = [u8; 8 * m::DESCRIPTOR_BEATS];

/// The transfer being carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    request: Request,
    /// The descriptor to fetch, if the transfer is a list.
    fetch: Option<u64>,
    /// Another descriptor follows the current one.
    follows: bool,
    row: u32,
    /// Bytes moved of this row, and of the whole transfer.
    done: u32,
    total: u32,
    next_ns: u64,
    /// All bytes were moved; the inner value is the length of a packet that was short.
    over: Option<Option<u32>>,
    irq_delay_ns: Option<u64>,
    fate: Fate,
    writes: bool,
    /// The current row was queued before the end of the previous one.
    behind: bool,
}

impl Active {
    pub(super) fn never_stops(&self) -> bool {
        self.fate == Fate::Stuck
    }

    /// When the read of a descriptor that is under way ends.
    pub(super) fn fetched_at_ns(&self) -> Option<u64> {
        (self.fetch.is_some() && self.fate == Fate::Good).then_some(self.next_ns)
    }

    /// Reads the descriptor to fetch.
    pub(super) fn descriptor(&self, bus: &mut SimBus<'_>) -> Option<Descriptor> {
        let mut bytes = [0; 8 * m::DESCRIPTOR_BEATS];
        let _ = bus.read(DevAddr(self.fetch?), &mut bytes);
        Some(bytes)
    }

    pub(super) fn stuck_at(&self) -> Option<u64> {
        (self.fate == Fate::Stuck && self.writes).then_some(self.request.destination)
    }
}

/// `MAX_BYTES_PER_BURST`.
fn burst_of(build: &AxiDmacBuild) -> u32 {
    u32::try_from(build.burst_bytes).unwrap_or(u32::MAX)
}

impl AxiDmacModel {
    /// When the next event is due.
    pub(super) fn next_at_ns(&self) -> Option<u64> {
        let queue = if self.manager == Manager::Enabled { self.queue.next_at_ns() } else { None };
        let mover = self.active.as_ref().and_then(|active| self.step_ns(active));
        [self.manager_ns(), queue, mover].into_iter().flatten().min()
    }

    /// When the line rises for the current transfer, or an earlier time.
    pub(super) fn expected_ns(&self) -> Option<u64> {
        let active = self.active.as_ref()?;
        let delay_ns = active.irq_delay_ns?;
        Some(self.step_ns(active)? + delay_ns)
    }

    fn step_ns(&self, active: &Active) -> Option<u64> {
        if active.fate != Fate::Good {
            return None;
        }
        if active.over.is_some() {
            // The core stops if it has no room for a report.
            return self.queue.has_room_for_report().then_some(active.next_ns);
        }
        let [source, destination] = self.build.sides;
        if active.fetch.is_none() && source != Side::Memory {
            let left = active.request.x_length + 1 - active.done;
            return Some(
                self.stream.ready_at_ns(active.next_ns, left.min(64) as usize)?.max(active.next_ns),
            );
        }
        let waits =
            active.fetch.is_none() && destination != Side::Memory && self.stream.room_bytes() == 0;
        (!waits).then_some(active.next_ns)
    }

    /// Handles the event that is due at `at_ns`.
    pub(super) fn happen(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        self.step_manager(at_ns, bus);
        if self.manager == Manager::Enabled
            && self.queue.next_at_ns().is_some_and(|due| due <= at_ns)
        {
            self.queue.take_in(&self.request);
            self.raise(m::TRANSFER_QUEUED, Some(at_ns));
        }
        self.begin_next(at_ns, false, bus);
        if let Some(active) = self.active
            && self.step_ns(&active).is_some_and(|due| due <= at_ns)
        {
            match (active.over, active.fetch) {
                (Some(report), _) => self.finish(at_ns, &active, report, bus),
                (None, Some(_)) => self.fetch(at_ns, active, bus),
                (None, None) => self.burst(at_ns, active, bus),
            }
        }
    }

    /// Begins the next transfer; `behind`: it was queued before the previous one ended.
    fn begin_next(&mut self, at_ns: u64, behind: bool, bus: &mut SimBus<'_>) {
        if self.active.is_some() || self.manager != Manager::Enabled || self.queue.is_empty() {
            return;
        }
        let Some((_, request)) = self.queue.pop() else { return };
        self.gone = bus.strikes(bus.faults().error);
        let fate = match bus.fate() {
            Fate::Good if core::mem::take(&mut self.rewound) => Fate::Hang,
            fate => fate,
        };
        let irq_delay_ns = bus.irq_delay_ns(20_000);
        let [source, destination] = self.build.sides;
        if source != Side::Memory {
            self.stream.trigger(at_ns);
        }
        let listed = self.control & m::HWDESC != 0;
        let fetch_ns = if listed { self.build.fetch_ns } else { 0 };
        let next_ns = at_ns + LATENCY_NS + bus.rng().u64(..100) + fetch_ns;
        self.active = Some(Active {
            request,
            fetch: listed.then_some(request.list),
            follows: false,
            row: 0,
            done: 0,
            total: 0,
            next_ns,
            over: None,
            irq_delay_ns,
            fate,
            writes: destination == Side::Memory && !listed,
            behind,
        });
        self.look_at_lengths(bus);
    }

    const fn burst_bytes(&self) -> usize {
        if self.build.burst_bytes < BURST_BYTES { self.build.burst_bytes } else { BURST_BYTES }
    }

    fn is_one_burst(&self, x_length: u32) -> bool {
        (x_length as usize) < self.burst_bytes()
    }

    /// Applies the flaws that depend on the length of the transfer, piece or row that begins.
    fn look_at_lengths(&mut self, bus: &mut SimBus<'_>) {
        let AxiDmacBuild { sides, words: [source_word, destination_word], .. } = self.build;
        let Some(active) =
            self.active.filter(|active| active.fetch.is_none() && active.fate == Fate::Good)
        else {
            return;
        };
        let x_length = active.request.x_length;
        let ragged = !(x_length as usize + 1).is_multiple_of(source_word);
        if self.build.early_last
            && sides == [Side::Memory; 2]
            && source_word > destination_word
            && ragged
        {
            self.active = Some(Active { fate: Fate::Hang, ..active });
            return;
        }
        // Each memory side has its own address generator. A packet's length from a stream is known
        // only later.
        let known = sides[0] != Side::Stream;
        if !self.build.single_bursts
            || !known
            || !active.behind
            || !self.is_one_burst(x_length)
            || bus.rng().bool()
        {
            return;
        }
        let listed = self.control & m::HWDESC != 0;
        let next = match active.row < active.request.y_length {
            true => Some(active.request),
            false => self.queue.waiting().next().copied().filter(|_| !listed),
        };
        // The last burst of the successor, if there is one.
        let length = next.map(|next| next.x_length % burst_of(&self.build));
        self.active = Some(match length {
            Some(x_length) => Active { request: Request { x_length, ..active.request }, ..active },
            None => Active { fate: Fate::Hang, ..active },
        });
    }

    /// Returns whether the core takes the current row's end for a job's end. A row that is four or
    /// eight later and already under way has overwritten the note.
    fn row_ends_a_job(&self, active: &Active) -> bool {
        let is_last = |request: &Request, row: u32| row == request.y_length;
        let mut told = is_last(&active.request, active.row) && !active.follows;
        if !self.build.row_ids {
            return told;
        }
        let own = (active.row + 1..=active.request.y_length)
            .map(|row| (active.request, row, !active.follows));
        // For lists, only the descriptors define the rows.
        let listed = self.control & m::HWDESC != 0;
        let waiting = self
            .queue
            .waiting()
            .filter(|_| !listed)
            .flat_map(|request| (0..=request.y_length).map(|row| (*request, row, true)));
        // The most bursts that are requested and not answered.
        let most = 2 * self.build.fifo_bursts - 1;
        let mut bursts = 1;
        for (index, (request, row, ends)) in own.chain(waiting).enumerate() {
            if bursts > most {
                break;
            }
            if index % m::ROW_IDS == m::ROW_IDS - 1 {
                told = is_last(&request, row) && ends;
            }
            bursts += request.x_length / burst_of(&self.build) + 1;
        }
        told
    }

    /// Reads the next descriptor of a list: six beats of 64 bits.
    fn fetch(&mut self, at_ns: u64, mut active: Active, bus: &mut SimBus<'_>) {
        let Some(mut bytes) = active.descriptor(bus) else { return };
        if self.manager != Manager::Enabled {
            // The core was disabled meanwhile: it takes the beats, and becomes idle.
            self.active = None;
            return;
        }
        if let Some(owed) = &mut self.owed {
            // Answers arrive in the order of the reads.
            core::mem::swap(owed, &mut bytes);
        }
        let beat = |index: usize| {
            bytes
                .get(8 * index..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |beat| u64::from_le_bytes(*beat))
        };
        #[allow(clippy::cast_possible_truncation, reason = "the two halves of a beat")]
        let halves = |index: usize| (beat(index) as u32, (beat(index) >> 32) as u32);
        let (flags, _) = halves(0);
        let (y_length, x_length) = halves(4);
        let (source_stride, destination_stride) = halves(5);
        let AxiDmacBuild { words: [source_word, destination_word], address_bits, .. } = self.build;
        let request = Request {
            destination: address(beat(1), destination_word, address_bits),
            source: address(beat(2), source_word, address_bits),
            list: address(beat(3), 8, address_bits),
            x_length,
            y_length,
            source_stride,
            destination_stride,
            ..active.request
        };
        let follows = flags & m::MASK_LAST_HWDESC == 0;
        // A list ends only if the descriptor requests the interrupt.
        let ends = flags & m::MASK_EOT_IRQ != 0;
        let fate = if !follows && !ends { Fate::Hang } else { active.fate };
        let behind = active.behind || active.total > 0;
        (active.row, active.done, active.next_ns) = (0, 0, at_ns + LATENCY_NS);
        self.active = Some(Active { request, fetch: None, follows, fate, behind, ..active });
        self.look_at_lengths(bus);
    }

    /// Moves one burst of a row.
    fn burst(&mut self, at_ns: u64, mut active: Active, bus: &mut SimBus<'_>) {
        let Request {
            destination,
            source,
            x_length,
            y_length,
            destination_stride,
            source_stride,
            flags,
            ..
        } = active.request;
        let at = |addr: u64, stride: u32| {
            DevAddr(addr + u64::from(stride) * u64::from(active.row) + u64::from(active.done))
        };
        let (from, to) = (at(source, source_stride), at(destination, destination_stride));
        let left = (x_length + 1 - active.done) as usize;
        let size = left.min(self.burst_bytes());
        let mut beats = [0; BURST_BYTES];
        let last_row = active.row == y_length;
        let mut ends = false;
        let moved = match self.build.sides {
            [Side::Memory, Side::Memory] => {
                let bytes = beats.get_mut(..size).unwrap_or_default();
                let _ = bus.read_words(from, bytes, self.build.words[0]);
                let _ = bus.write(to, bytes);
                size
            }
            [Side::Memory, _] => {
                let bytes = beats.get_mut(..size.min(self.stream.room_bytes())).unwrap_or_default();
                let _ = bus.read_words(from, bytes, self.build.words[0]);
                let last = bytes.len() == left
                    && last_row
                    && !active.follows
                    && flags & m::FLAG_TLAST != 0;
                self.stream.give(bytes, last)
            }
            _ => {
                let taken = self.stream.take(at_ns, beats.get_mut(..size).unwrap_or_default());
                ends = taken.last && self.build.sides[0] == Side::Stream;
                let one_burst = active.total as usize + taken.bytes <= self.burst_bytes();
                let single = ends && active.behind && one_burst && self.build.single_bursts;
                // The burst takes another burst's length.
                let written =
                    if single && bus.rng().bool() { taken.bytes / 2 } else { taken.bytes };
                let _ = bus.write(to, beats.get(..written).unwrap_or_default());
                taken.bytes
            }
        };
        let moved_bytes = u32::try_from(moved).unwrap_or(0);
        (active.done, active.total) = (active.done + moved_bytes, active.total + moved_bytes);
        active.next_ns = at_ns + (moved as u64 / BYTES_PER_NS).max(4);
        let row_ends = active.done == x_length + 1;
        if ends && !(row_ends && last_row) {
            // `up_dma_enable_tlen_reporting`: the core uses FLAGS as it is now, not as submitted.
            let report =
                (self.request.flags & m::FLAG_PARTIAL_REPORTING != 0).then_some(active.total);
            let burst_of = |byte: u32| byte as usize / self.burst_bytes();
            let late = burst_of(x_length) - burst_of(active.done.saturating_sub(1)) <= 2
                && !self.queue.is_empty();
            self.rewound = self.build.late_packet_ends && late && bus.rng().bool();
            (active.over, active.next_ns) = (Some(report), at_ns + RESPONSE_NS);
        } else if row_ends && !last_row {
            if self.row_ends_a_job(&active) {
                self.queue.ended(None);
                self.raise(m::TRANSFER_COMPLETED, active.irq_delay_ns.map(|delay| at_ns + delay));
            }
            (active.row, active.done, active.behind) = (active.row + 1, 0, true);
            self.active = Some(active);
            return self.look_at_lengths(bus);
        } else if row_ends && active.follows {
            (active.fetch, active.next_ns) =
                (Some(active.request.list), active.next_ns + self.build.fetch_ns);
        } else if row_ends {
            (active.over, active.next_ns) = (Some(None), at_ns + RESPONSE_NS);
        }
        self.active = Some(active);
    }

    fn finish(&mut self, at_ns: u64, active: &Active, report: Option<u32>, bus: &mut SimBus<'_>) {
        self.active = None;
        // After a disable, IDs and DONE are cleared and stay cleared.
        if self.manager == Manager::Enabled {
            if report.is_some() || self.row_ends_a_job(active) {
                self.queue.ended(report);
                self.raise(m::TRANSFER_COMPLETED, active.irq_delay_ns.map(|delay| at_ns + delay));
            }
            self.begin_next(at_ns, true, bus);
        }
    }
}

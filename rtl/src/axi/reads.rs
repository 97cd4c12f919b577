//! The read half of memory: AR and R.

use super::chance::{Fate, Habits, next_answer};
use super::cycle::Cycle;
use super::watch::{Patience, Ready, Watch};
use super::{Breach, Burst, Channel, Landing};
use crate::ports::{AxiAddress, AxiIn, AxiOut, DATA_WORDS};
use contigo::DevAddr;

/// The data and the response of a beat.
type Beat = ([u32; DATA_WORDS], u32);

/// A burst under way.
#[derive(Debug)]
struct Read {
    burst: Burst,
    fate: Fate,
    /// The cycle from which its beats are ready.
    due: u64,
    /// The beats that the core took.
    taken: usize,
    /// Its beats, where memory was read when the address came; empty: each is read when it goes.
    sampled: Vec<Beat>,
}

/// The read half of memory.
#[derive(Debug)]
pub(super) struct Reads {
    /// Oldest first.
    queue: Vec<Read>,
    /// The place of the burst whose beat is on the wires, and that beat.
    offered: Option<(usize, Beat)>,
    address: Watch<AxiAddress>,
    address_ready: Ready,
    /// `None`: they are drawn with the next cycle.
    habits: Option<Habits>,
    ready: Patience,
}

impl Reads {
    pub(super) const fn new() -> Self {
        Self {
            queue: Vec::new(),
            offered: None,
            address: Watch::new(Channel::Ar),
            address_ready: Ready::new(Channel::Ar),
            habits: None,
            ready: Patience::new(),
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    pub(super) fn owed(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.queue.first().map(|read| read.burst.addr)
    }

    pub(super) fn drive(&mut self, input: &mut AxiIn, cycle: &mut Cycle<'_, '_>) {
        let habits = *self.habits.get_or_insert_with(|| Habits::draw(cycle.config, cycle.bus));
        let room = self.queue.len() < cycle.config.outstanding;
        input.arready =
            self.address_ready.drive(room, habits.ready_after_valid(cycle.config), cycle);
        if self.offered.is_none() && !self.queue.is_empty() && !cycle.stalls() {
            self.offered = self
                .choose(cycle)
                .and_then(|place| Some((place, self.queue.get(place)?.beat(cycle))));
        }
        input.rvalid = u32::from(self.offered.is_some());
        if let Some((place, (data, response))) = &self.offered
            && let Some(read) = self.queue.get(*place)
        {
            (input.rid, input.rdata, input.rresp) = (read.burst.id, *data, *response);
            input.rlast = u32::from(read.taken + 1 == read.burst.beats);
        }
    }

    /// The place of the burst whose beat goes next.
    fn choose(&self, cycle: &mut Cycle<'_, '_>) -> Option<usize> {
        let begun =
            self.queue.iter().position(|read| read.taken > 0).filter(|_| !cycle.config.interleaves);
        begun.or_else(|| {
            let bursts = self.queue.iter().map(|read| (read.burst.id, read.due));
            next_answer(bursts, cycle.now, cycle.config.reorders, cycle.bus)
        })
    }

    pub(super) fn take(&mut self, input: &AxiIn, out: &AxiOut, cycle: &mut Cycle<'_, '_>) {
        let breaches = [
            self.address.see(out.ar.valid, input.arready, out.ar),
            self.address_ready.see(out.ar.valid, input.arready),
        ];
        breaches.into_iter().for_each(|breach| cycle.found(breach));
        if input.rvalid & out.rready == 1
            && let Some((place, (_, response))) = self.offered.take()
            && let Some(read) = self.queue.get_mut(place)
        {
            read.taken += 1;
            cycle.counts.read_beats += 1;
            cycle.counts.errors += u64::from(response != 0);
            if read.taken == read.burst.beats {
                cycle.counts.overtook += u64::from(place > 0);
                self.queue.remove(place);
                self.habits = self.habits.filter(|_| !self.queue.is_empty());
            }
        }
        let waits = self.offered.map(|(place, _)| place);
        if self.ready.is_over(waits.is_some(), cycle.config.patience_cycles) {
            let addr =
                waits.and_then(|place| self.queue.get(place)).map_or(0, |read| read.burst.addr);
            cycle.found(Some(Breach::AnswerNotTaken {
                channel: Channel::R,
                addr,
                cycles: cycle.config.patience_cycles,
            }));
        }
        if out.ar.valid & input.arready == 1 {
            let read = Read::accept(&out.ar, cycle);
            self.queue.push(read);
            cycle.counts.reads += 1;
            cycle.counts.most_reads = cycle.counts.most_reads.max(self.queue.len());
        }
    }
}

impl Read {
    fn accept(address: &AxiAddress, cycle: &mut Cycle<'_, '_>) -> Self {
        let burst = cycle.accept(address);
        let fate = cycle.fate();
        let due = match fate {
            Fate::Lost => u64::MAX,
            _ => cycle.now + cycle.latency(&cycle.config.read_cycles),
        };
        let mut read = Self { burst, fate, due, taken: 0, sampled: Vec::new() };
        if cycle.config.landing == Landing::Random && cycle.bus.rng().bool() && fate != Fate::Lost {
            for n in 0..burst.beats {
                read.taken = n;
                let beat = read.beat(cycle);
                read.sampled.push(beat);
            }
            read.taken = 0;
        }
        read
    }

    /// The beat that goes next. The lanes that it does not have hold anything.
    fn beat(&self, cycle: &mut Cycle<'_, '_>) -> Beat {
        if let Some(beat) = self.sampled.get(self.taken) {
            return *beat;
        }
        let (word, lanes) = self.burst.lanes(self.taken, cycle.bus_bytes);
        let mut bytes = [cycle.bus.rng().u8(..); 4 * DATA_WORDS];
        let addr = DevAddr(word + lanes.start as u64);
        let read = bytes.get_mut(lanes).map(|to| cycle.bus.read_beat(addr, to));
        let response = match read {
            Some(Err(_)) => 3,
            _ if self.fate == Fate::Error => 2,
            _ => 0,
        };
        let mut data = [0; DATA_WORDS];
        for (to, from) in data.iter_mut().zip(bytes.as_chunks().0) {
            *to = u32::from_le_bytes(*from);
        }
        (data, response)
    }
}

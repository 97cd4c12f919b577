//! The write half of memory: AW, W and B.

use super::burst::strobes;
use super::chance::{Fate, Habits, next_answer};
use super::cycle::Cycle;
use super::watch::{Patience, Ready, Watch};
use super::{Breach, Burst, Channel, Landing};
use crate::ports::{AxiAddress, AxiIn, AxiOut, DATA_WORDS};
use contigo::DevAddr;
use std::collections::VecDeque;

/// So many beats may come before their addresses: two bursts of the longest.
const MOST_EARLY: usize = 512;

/// A beat of data.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Beat {
    data: [u32; DATA_WORDS],
    strobes: u64,
    last: bool,
}

/// The moment at which a burst changes memory.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Each beat when it comes.
    Beat,
    /// So many thousandths of the way from the last beat to the answer.
    Between(u32),
    /// With the answer.
    Answer,
}

/// A burst under way.
#[derive(Debug)]
struct Write {
    burst: Burst,
    fate: Fate,
    moment: Moment,
    beats: Vec<Beat>,
    /// The beats that memory has.
    landed: usize,
    /// An error on the way: no memory is there.
    response: u32,
    /// When the rest reaches memory, and from when its answer is ready.
    lands: u64,
    due: u64,
}

/// The write half of memory.
#[derive(Debug)]
pub(super) struct Writes {
    /// Those whose data is not all there.
    open: VecDeque<Write>,
    /// Data whose address has not come.
    early: VecDeque<Beat>,
    /// Those that wait for their answer, oldest first.
    pending: Vec<Write>,
    /// The place of the burst whose answer is on the wires, its ID and response.
    offered: Option<(usize, u32, u32)>,
    address: Watch<AxiAddress>,
    data: Watch<Beat>,
    address_ready: Ready,
    data_ready: Ready,
    /// `None`: they are drawn with the next cycle.
    habits: Option<Habits>,
    answer: Patience,
    data_owed: Patience,
    address_owed: Patience,
    data_waits: Patience,
    address_waits: Patience,
    /// One of address and data waits for the other: the one on the wires is taken without.
    gave_up: bool,
}

impl Writes {
    pub(super) const fn new() -> Self {
        Self {
            open: VecDeque::new(),
            early: VecDeque::new(),
            pending: Vec::new(),
            offered: None,
            address: Watch::new(Channel::Aw),
            data: Watch::new(Channel::W),
            address_ready: Ready::new(Channel::Aw),
            data_ready: Ready::new(Channel::W),
            habits: None,
            answer: Patience::new(),
            data_owed: Patience::new(),
            address_owed: Patience::new(),
            data_waits: Patience::new(),
            address_waits: Patience::new(),
            gave_up: false,
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    pub(super) fn owed(&self) -> usize {
        self.open.len()
            + self.pending.len()
            + usize::from(self.open.is_empty() && !self.early.is_empty())
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.pending.first().or_else(|| self.open.front()).map(|write| write.burst.addr)
    }

    pub(super) fn drive(&mut self, input: &mut AxiIn, cycle: &mut Cycle<'_, '_>) {
        let room = self.open.len() + self.pending.len() < cycle.config.outstanding;
        let habits = *self.habits.get_or_insert_with(|| Habits::draw(cycle.config, cycle.bus));
        let after_valid = habits.ready_after_valid(cycle.config);
        let address_in_turn =
            !habits.data_first(cycle.config) || self.gave_up || !self.early.is_empty();
        let data_in_turn =
            !habits.address_first(cycle.config) || self.gave_up || !self.open.is_empty();
        input.awready = self.address_ready.drive(room && address_in_turn, after_valid, cycle);
        input.wready = self.data_ready.drive(
            self.early.len() < MOST_EARLY && data_in_turn,
            after_valid,
            cycle,
        );
        for place in 0..self.pending.len() {
            if self.pending.get(place).is_some_and(|write| write.lands <= cycle.now) {
                self.land(place, cycle);
            }
        }
        if self.offered.is_none() && !self.pending.is_empty() && !cycle.stalls() {
            let bursts = self.pending.iter().map(|write| (write.burst.id, write.due));
            if let Some(place) = next_answer(bursts, cycle.now, cycle.config.reorders, cycle.bus) {
                self.land(place, cycle);
                self.offered =
                    self.pending.get(place).map(|write| (place, write.burst.id, write.response));
            }
        }
        input.bvalid = u32::from(self.offered.is_some());
        if let Some((_, id, response)) = self.offered {
            (input.bid, input.bresp) = (id, response);
        }
    }

    /// Writes with one ID reach memory in their order: those before `place` with its ID, then it.
    fn land(&mut self, place: usize, cycle: &mut Cycle<'_, '_>) {
        let Some(id) = self.pending.get(place).map(|write| write.burst.id) else { return };
        for write in self.pending.iter_mut().take(place + 1).filter(|write| write.burst.id == id) {
            write.land(cycle);
        }
    }

    pub(super) fn take(&mut self, input: &AxiIn, out: &AxiOut, cycle: &mut Cycle<'_, '_>) {
        let beat = Beat {
            data: out.wdata,
            strobes: u64::from(out.wstrb[0]) | u64::from(out.wstrb[1]) << 32,
            last: out.wlast == 1,
        };
        let breaches = [
            self.address.see(out.aw.valid, input.awready, out.aw),
            self.data.see(out.wvalid, input.wready, beat),
            self.address_ready.see(out.aw.valid, input.awready),
            self.data_ready.see(out.wvalid, input.wready),
        ];
        breaches.into_iter().for_each(|breach| cycle.found(breach));
        if input.bvalid & out.bready == 1
            && let Some((place, _, response)) = self.offered.take()
            && place < self.pending.len()
        {
            self.pending.remove(place);
            self.habits = self.habits.filter(|_| self.owed() > 0);
            cycle.counts.errors += u64::from(response != 0);
            cycle.counts.overtook += u64::from(place > 0);
        }
        if out.aw.valid & input.awready == 1 {
            self.gave_up = false;
            self.open.push_back(Write::accept(&out.aw, cycle));
            cycle.counts.writes += 1;
        }
        if out.wvalid & input.wready == 1 {
            cycle.counts.write_beats += 1;
            self.early.push_back(beat);
        }
        cycle.counts.most_writes =
            cycle.counts.most_writes.max(self.open.len() + self.pending.len());
        self.pair(cycle);
        self.look_at_the_clock(out, cycle);
    }

    /// Gives each beat to its burst: data comes in the order of the addresses (A5.2.2).
    fn pair(&mut self, cycle: &mut Cycle<'_, '_>) {
        while let Some(write) = self.open.front_mut()
            && let Some(beat) = self.early.pop_front()
        {
            write.push(beat, cycle);
            let (came, beats, addr) = (write.beats.len(), write.burst.beats, write.burst.addr);
            if came < beats && !beat.last {
                if matches!(write.moment, Moment::Beat)
                    && !self.pending.iter().any(|other| other.burst.id == write.burst.id)
                {
                    write.land(cycle);
                }
                continue;
            }
            let breach = if beat.last {
                Breach::LastEarly { addr, beats, came }
            } else {
                Breach::LastMissing { addr, beats }
            };
            cycle.found((came < beats || !beat.last).then_some(breach));
            write.complete(cycle);
            self.pending.extend(self.open.pop_front());
        }
    }

    fn look_at_the_clock(&mut self, out: &AxiOut, cycle: &mut Cycle<'_, '_>) {
        let cycles = cycle.config.patience_cycles;
        if self.answer.is_over(self.offered.is_some(), cycles) {
            let addr = self
                .offered
                .and_then(|(place, ..)| self.pending.get(place))
                .map_or(0, |write| write.burst.addr);
            cycle.found(Some(Breach::AnswerNotTaken { channel: Channel::B, addr, cycles }));
        }
        let open = self.open.front().map(|write| write.burst.addr);
        if self.data_owed.is_over(open.is_some() && out.wvalid == 0, cycles) {
            cycle.found(Some(Breach::DataMissing { addr: open.unwrap_or(0), cycles }));
        }
        if self
            .address_owed
            .is_over(open.is_none() && !self.early.is_empty() && out.aw.valid == 0, cycles)
        {
            cycle.found(Some(Breach::AddressMissing { cycles }));
        }
        let habits = self.habits.unwrap_or_default();
        let waits = habits.data_first(cycle.config)
            && out.aw.valid == 1
            && out.wvalid == 0
            && self.owed() == 0;
        if self.data_waits.is_over(waits, cycles) {
            self.gave_up = true;
            let (burst, _) = Burst::new(&out.aw, cycle.bus_bytes);
            cycle.found(Some(Breach::DataWaitsForAddress { addr: burst.addr, cycles }));
        }
        let waits = habits.address_first(cycle.config)
            && out.wvalid == 1
            && out.aw.valid == 0
            && self.owed() == 0;
        if self.address_waits.is_over(waits, cycles) {
            self.gave_up = true;
            cycle.found(Some(Breach::AddressWaitsForData { cycles }));
        }
    }
}

impl Write {
    fn accept(address: &AxiAddress, cycle: &mut Cycle<'_, '_>) -> Self {
        let (burst, fate) = (cycle.accept(address), cycle.fate());
        let moment = match (cycle.config.landing, cycle.bus.rng().u8(..3)) {
            (Landing::AtAnswer, _) | (_, 0) => Moment::Answer,
            (_, 1) => Moment::Between(cycle.bus.rng().u32(..1_000)),
            _ => Moment::Beat,
        };
        Self {
            burst,
            fate,
            moment,
            beats: Vec::new(),
            landed: 0,
            response: 0,
            lands: u64::MAX,
            due: u64::MAX,
        }
    }

    fn push(&mut self, beat: Beat, cycle: &mut Cycle<'_, '_>) {
        let (_, lanes) = self.burst.lanes(self.beats.len(), cycle.bus_bytes);
        let allowed = strobes(&lanes);
        if beat.strobes & !allowed != 0 {
            let addr = self.burst.beat_addr(self.beats.len());
            cycle.found(Some(Breach::StrobeOutside { addr, strobes: beat.strobes, allowed }));
        }
        self.beats.push(Beat { strobes: beat.strobes & allowed, ..beat });
    }

    /// All its data is there.
    fn complete(&mut self, cycle: &mut Cycle<'_, '_>) {
        let latency = cycle.latency(&cycle.config.write_cycles);
        if self.fate != Fate::Lost {
            self.due = cycle.now + latency;
        }
        self.lands = match self.moment {
            Moment::Beat => cycle.now,
            Moment::Between(thousandths) => cycle.now + latency * u64::from(thousandths) / 1_000,
            Moment::Answer => self.due,
        };
    }

    /// The beats that came and are not in memory go there.
    fn land(&mut self, cycle: &mut Cycle<'_, '_>) {
        for n in self.landed..self.beats.len() {
            let Some(beat) = self.beats.get(n) else { break };
            let (word, _) = self.burst.lanes(n, cycle.bus_bytes);
            let mut bytes = [0; 4 * DATA_WORDS];
            for (to, from) in bytes.as_chunks_mut().0.iter_mut().zip(beat.data) {
                *to = from.to_le_bytes();
            }
            if cycle.bus.write_strobed(DevAddr(word), &bytes, beat.strobes).is_err() {
                self.response = 3;
            }
        }
        self.landed = self.beats.len();
        if self.fate == Fate::Error && self.response == 0 {
            self.response = 2;
        }
    }
}

//! Memory behind a master, without a core: random bursts of every kind and width, every byte
//! compared. Verilator is not needed here.
#![allow(clippy::cast_possible_truncation, reason = "addresses are below 64 KiB")]

use super::rig::Plain;
use contigo::sim::{Faults, SimBus};
use contigo_rtl::axi::{AxiSlave, Burst, BurstKind, Findings, Landing, SlaveConfig};
use contigo_rtl::ports::{AxiAddress, AxiIn, AxiOut};
use fastrand::Rng;
use std::collections::VecDeque;
use std::ops::Range;

const MEMORY_BYTES: usize = 64 << 10;
/// A master that is answered at all has ended by then.
const MOST_CYCLES: u64 = 200_000;

/// A burst of the master's, the bytes that it reads or writes, and the data of its beats.
#[derive(Debug)]
struct Job {
    burst: Burst,
    address: AxiAddress,
    bytes: Range<usize>,
    beats: Vec<([u8; 64], u64)>,
    done: usize,
}

/// An answer that waits: its ID, data, response and last beat.
type Offer = (u32, [u32; 16], u32, u32);

/// A master that asks for `left` random bursts. None is over bytes that another one has, except for
/// writes of one ID: those reach memory in their order.
#[derive(Default)]
struct Master {
    rng: Rng,
    bus_bytes: usize,
    left: usize,
    /// Asked, and its address not taken; its data goes its own way.
    asks: [VecDeque<AxiAddress>; 2],
    data: VecDeque<([u8; 64], u64, bool)>,
    reads: Vec<Job>,
    writes: Vec<Job>,
    expected: Vec<u8>,
    errors: usize,
    early: usize,
    interleaved: usize,
    /// Writes over bytes of an older one that was not answered.
    overlaps: usize,
    last_read: Option<u32>,
    /// The answers to reads and writes that were on the wires, and were not taken.
    waits: [Option<Offer>; 2],
}

impl Master {
    fn new(seed: u64, bus_bytes: usize, left: usize, expected: Vec<u8>) -> Self {
        let rng = Rng::with_seed(seed);
        Self { rng, bus_bytes, left, expected, ..Self::default() }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.reads.is_empty() && self.writes.is_empty()
    }

    /// A random burst that AXI allows; half of the writes are near an older one, with its ID.
    fn draw(&mut self, writes: bool) -> Option<Job> {
        let size = self.rng.u32(..=self.bus_bytes.trailing_zeros());
        let burst = self.rng.u32(..3);
        let most = if burst == 0 { 16 } else { 4096_usize.min(256 << size) >> size };
        let beats =
            if burst == 2 { 2 << self.rng.u32(..4) } else { self.rng.usize(1..=most.min(256)) };
        // Some of them reach over the end of memory.
        let (mut addr, mut id) = (self.rng.u64(..MEMORY_BYTES as u64 + 512), self.rng.u32(..4));
        if let Some(older) = self.writes.last().filter(|_| writes && self.rng.bool()) {
            (addr, id) = (older.burst.addr + self.rng.u64(..64), older.burst.id);
        }
        addr &= if burst == 2 { !((1 << size) - 1) } else { u64::MAX };
        let address =
            AxiAddress { valid: 1, id, addr: [addr as u32, 0], len: beats as u32 - 1, size, burst };
        let (burst, breach) = Burst::new(&address, self.bus_bytes);
        let first = if burst.kind == BurstKind::Wrap { addr - addr % burst.bytes() } else { addr };
        let bytes = first as usize..(first + burst.bytes()) as usize;
        let overlaps = |job: &Job| job.bytes.start < bytes.end && bytes.start < job.bytes.end;
        let ordered = |job: &Job| writes && job.burst.id == id;
        let free = !self.reads.iter().any(overlaps)
            && !self.writes.iter().any(|job| overlaps(job) && !ordered(job));
        self.overlaps += usize::from(free && breach.is_none() && self.writes.iter().any(overlaps));
        (breach.is_none() && free).then_some(Job {
            burst,
            address,
            bytes,
            beats: Vec::new(),
            done: 0,
        })
    }

    fn ask(&mut self) {
        let writes = self.rng.bool();
        let Some(mut job) = self.draw(writes) else { return };
        self.left -= 1;
        if !writes {
            self.asks[0].push_back(job.address);
            self.reads.push(job);
            return;
        }
        for n in 0..job.burst.beats {
            let (word, lanes) = job.burst.lanes(n, self.bus_bytes);
            let mut bytes = [0; 64];
            self.rng.fill(&mut bytes);
            let strobes =
                lanes.filter(|_| self.rng.u8(..4) > 0).fold(0, |strobes, lane| strobes | 1 << lane);
            for lane in (0..64).filter(|lane| strobes >> lane & 1 == 1) {
                // No burst reads these bytes before the answer.
                if let Some(byte) = self.expected.get_mut(word as usize + lane) {
                    *byte = bytes[lane];
                }
            }
            job.beats.push((bytes, strobes));
            self.data.push_back((bytes, strobes, n + 1 == job.burst.beats));
        }
        self.asks[1].push_back(job.address);
        self.writes.push(job);
    }

    fn drive(&mut self, before: &AxiOut, taken: [bool; 3]) -> AxiOut {
        if self.left > 0 && self.rng.u8(..4) == 0 && self.reads.len() + self.writes.len() < 12 {
            self.ask();
        }
        let mut out = AxiOut {
            bready: u32::from(self.rng.bool()),
            rready: u32::from(self.rng.bool()),
            ..AxiOut::default()
        };
        // An offer stays until it is taken; a new one comes when it likes.
        let stays = |valid: u32, taken: bool| valid == 1 && !taken;
        if let Some(address) =
            self.asks[0].front().filter(|_| stays(before.ar.valid, taken[0]) || self.rng.bool())
        {
            out.ar = *address;
        }
        if let Some(address) =
            self.asks[1].front().filter(|_| stays(before.aw.valid, taken[1]) || self.rng.bool())
        {
            out.aw = *address;
        }
        if let Some((bytes, strobes, last)) =
            self.data.front().filter(|_| stays(before.wvalid, taken[2]) || self.rng.bool())
        {
            (out.wvalid, out.wlast, out.wstrb) =
                (1, u32::from(*last), [*strobes as u32, (*strobes >> 32) as u32]);
            for (word, from) in out.wdata.iter_mut().zip(bytes.chunks(4)) {
                *word = u32::from_le_bytes(from.try_into().unwrap());
            }
        }
        out
    }

    fn take(&mut self, input: &AxiIn, out: &AxiOut, memory: &Plain) -> [bool; 3] {
        // An answer stays as it is until it is taken (A3.2.1).
        let read =
            (input.rvalid == 1).then_some((input.rid, input.rdata, input.rresp, input.rlast));
        let written = (input.bvalid == 1).then_some((input.bid, [0; 16], input.bresp, 0));
        for (now, (waits, ready)) in
            [read, written].into_iter().zip(self.waits.iter_mut().zip([out.rready, out.bready]))
        {
            assert!(
                waits.is_none_or(|before| now == Some(before)),
                "an answer changed before it was taken"
            );
            *waits = now.filter(|_| ready == 0);
        }
        let taken = [
            out.ar.valid & input.arready == 1,
            out.aw.valid & input.awready == 1,
            out.wvalid & input.wready == 1,
        ];
        for (_, asks) in taken.iter().zip(&mut self.asks).filter(|(taken, _)| **taken) {
            asks.pop_front();
        }
        if taken[2] {
            self.data.pop_front();
        }
        if input.rvalid & out.rready == 1 {
            self.beat(input);
        }
        if input.bvalid & out.bready == 1 {
            let place = self.writes.iter().position(|job| job.burst.id == input.bid).unwrap();
            let job = self.writes.remove(place);
            let inside = job.bytes.end <= MEMORY_BYTES;
            assert!(
                inside
                    || job.beats.iter().all(|beat| beat.1 == 0)
                    || input.bresp == 3
                    || job.burst.kind == BurstKind::Fixed
            );
            self.errors += usize::from(input.bresp != 0);
            // A younger write over some of these bytes may be there or not.
            let younger = |at: &usize| self.writes.iter().any(|write| write.bytes.contains(at));
            let written =
                (job.bytes.start..job.bytes.end.min(MEMORY_BYTES)).filter(|at| !younger(at));
            let wrong = written
                .filter(|_| input.bresp == 0)
                .find(|at| memory.bytes[*at] != self.expected[*at]);
            assert!(wrong.is_none(), "byte {wrong:x?} after {:?}", job.burst);
        } else if let Some(job) = self.writes.first().filter(|job| job.bytes.end <= MEMORY_BYTES) {
            self.early +=
                usize::from(memory.bytes[job.bytes.clone()] == self.expected[job.bytes.clone()]);
        }
        taken
    }

    fn beat(&mut self, input: &AxiIn) {
        let place = self.reads.iter().position(|job| job.burst.id == input.rid).unwrap();
        let job = &mut self.reads[place];
        self.interleaved += usize::from(job.done > 0 && self.last_read != Some(input.rid));
        self.last_read = Some(input.rid);
        let (word, lanes) = job.burst.lanes(job.done, self.bus_bytes);
        let bytes: Vec<u8> = input.rdata.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (from, to) = (word as usize + lanes.start, word as usize + lanes.end);
        assert_eq!(input.rresp == 3, to > MEMORY_BYTES, "{:?}", job.burst);
        if input.rresp == 0 {
            assert_eq!(
                bytes[lanes],
                self.expected[from..to],
                "beat {} of {:?}",
                job.done,
                job.burst
            );
        }
        self.errors += usize::from(input.rresp != 0);
        job.done += 1;
        assert_eq!(input.rlast == 1, job.done == job.burst.beats);
        if input.rlast == 1 {
            self.reads.remove(place);
        }
    }
}

/// Random bursts until all are answered.
fn run(seed: u64, bus_bytes: usize, config: SlaveConfig) -> (Master, AxiSlave) {
    let (mut rng, faults) = (Rng::with_seed(seed), Faults::NONE);
    let mut memory =
        Plain { bytes: (0..MEMORY_BYTES).map(|_| rng.u8(..)).collect(), ..Plain::default() };
    let mut master = Master::new(seed, bus_bytes, 150, memory.bytes.clone());
    let mut slave = AxiSlave::new(0, 8 * bus_bytes as u32, config);
    let (mut findings, mut input, mut out, mut taken) =
        (Findings::default(), AxiIn::default(), AxiOut::default(), [false; 3]);
    for cycle in 0..MOST_CYCLES {
        slave.drive(
            cycle,
            &mut input,
            &mut findings,
            &mut SimBus::over(&mut memory, &mut rng, &faults),
        );
        out = master.drive(&out, taken);
        taken = master.take(&input, &out, &memory);
        slave.take(
            cycle,
            &input,
            &out,
            &mut findings,
            &mut SimBus::over(&mut memory, &mut rng, &faults),
        );
        if master.is_done() {
            break;
        }
    }
    assert!(
        master.is_done(),
        "seed {seed}: {} reads and {} writes are left",
        master.reads.len(),
        master.writes.len()
    );
    assert_eq!((slave.owes_nothing(), findings.list()), (true, &[] as &[_]), "seed {seed}");
    (master, slave)
}

#[test]
fn every_byte_of_every_kind_of_burst() {
    let (mut overtook, mut interleaved, mut early, mut kinds, mut overlaps) = (0, 0, 0, (0, 0), 0);
    for seed in 0..60 {
        let config = SlaveConfig { data_first: seed % 3 == 0, ..SlaveConfig::HOSTILE };
        let (master, slave) = run(seed, 4 << (seed % 5), config);
        overtook += slave.counts().overtook;
        kinds = (kinds.0 + slave.counts().narrow, kinds.1 + slave.counts().not_rising);
        (interleaved, early) = (interleaved + master.interleaved, early + master.early);
        overlaps += master.overlaps;
        assert!(slave.counts().most_writes > 1 && slave.counts().most_reads > 1);
    }
    assert!(
        overtook > 500
            && interleaved > 500
            && early > 500
            && kinds.0 > 2_000
            && kinds.1 > 2_000
            && overlaps > 500,
        "{overtook} {interleaved} {early} {kinds:?} {overlaps}"
    );
}

/// In order, each write at its answer: nothing overtakes, nothing is early.
#[test]
fn calm_memory_keeps_the_order() {
    for seed in 0..10 {
        let (master, slave) = run(seed, 8, SlaveConfig::CALM);
        assert_eq!((slave.counts().overtook, master.interleaved), (0, 0));
    }
}

#[test]
fn errors_are_answered_and_counted() {
    for seed in 0..10 {
        let (master, slave) = run(
            seed,
            16,
            SlaveConfig { errors: 300, landing: Landing::Random, ..SlaveConfig::HOSTILE },
        );
        assert!(master.errors > 10 && slave.counts().errors == master.errors as u64);
    }
}

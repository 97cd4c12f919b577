//! Buffers: one random step at a time, each compared with the model.

use crate::{
    jobs::Unit,
    lanes::{self, Lane},
    liar::Lie,
    world::{Home, World},
};
use contigo::{
    Align, Arena, Backend, CpuBuf, DevAddr, DevBuf, Direction, LocalPool, OneThread, Pool, Region,
    drivers::axi_dma::{AxiDmaModel, CoreSpec},
    sim::{Faults, Sim, SimBoard, SimConfig, SimCounts, SimDevice, SimSpec, stream::SourceConfig},
};
use contigo_gemm8::SimGemm8;
use contigo_testkit::{
    conformance::{
        Failure, Verdict, boards,
        mutant::{Mutant, Mutation},
    },
    ensure,
};
use fastrand::Rng;
use std::{collections::BTreeMap, ops::Range};

pub(crate) const REGION_BYTES: usize = 64 << 10;
pub(crate) const POOL_SLOTS: usize = 5;
pub(crate) const LOCAL_SLOTS: usize = 4;
pub(crate) const BLOCKS: usize = 16;
/// Holds any operand of the largest job here: 32 rows of 48 columns.
pub(crate) const SLOT_BYTES: usize = 2048;
pub(crate) const ARENA_BYTES: usize = 12 << 10;

/// The settings of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) faults: Faults,
    pub(crate) mutation: Mutation,
    /// Which rule the queue's driver breaks.
    pub(crate) lie: Lie,
    pub(crate) steps: u32,
    /// Prints every step.
    pub(crate) trace: bool,
}

/// Which bytes of a buffer a job is given.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) claim: usize,
    /// The bytes that the buffer owns.
    pub(crate) extent: Range<usize>,
    /// The base of `range`: the bytes that the buffer shows, or those that were handed over.
    pub(crate) of: Range<usize>,
    pub(crate) range: Range<usize>,
    pub(crate) direction: Direction,
    /// `None`: the CPU owned it.
    pub(crate) held_coherent: Option<bool>,
    /// The bytes that its views show.
    pub(crate) shown: Range<usize>,
}

impl Part {
    /// From the beginning of the block.
    pub(crate) const fn absolute(&self) -> Range<usize> {
        self.of.start + self.range.start..self.of.start + self.range.end
    }
}

/// A buffer that the CPU owns.
pub(crate) struct Held<'p> {
    pub(crate) buf: CpuBuf<'p, OneThread>,
    pub(crate) claim: usize,
    pub(crate) extent: Range<usize>,
}

/// A buffer that a device owns, between two jobs.
pub(crate) struct Lent<'p> {
    pub(crate) buf: DevBuf<'p, OneThread>,
    pub(crate) claim: usize,
    pub(crate) extent: Range<usize>,
    pub(crate) shown: Range<usize>,
    pub(crate) given: Range<usize>,
    pub(crate) coherent: bool,
}

/// How often each thing happened, by name.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

/// The things under test, and the model of them.
pub(crate) struct Machine<'p> {
    pub(crate) rng: Rng,
    pub(crate) world: World,
    pub(crate) held: Vec<Held<'p>>,
    pub(crate) lent: Vec<Lent<'p>>,
    pub(crate) base: u64,
    pub(crate) line: Align,
    pub(crate) faults: Faults,
    pub(crate) steps_left: u32,
    /// Half of the sequences forget nothing, so that their region is freed.
    pub(crate) forgets: bool,
    tally: Tally,
    trace: bool,
    pub(crate) region: &'p Region<Mutant<Sim>>,
    pub(crate) pool: &'p Pool<'p, POOL_SLOTS>,
    pub(crate) local: &'p LocalPool<'p, LOCAL_SLOTS>,
    pub(crate) arena: &'p Arena<'p, BLOCKS>,
    pub(crate) territory: [Range<usize>; 4],
    pub(crate) carved: usize,
    pub(crate) carves: u64,
    pub(crate) copied: u64,
}

/// One sequence from a seed, and what must hold when it is over.
pub(crate) fn run(seed: u64, plan: Plan) -> Verdict<Tally> {
    let mut rng = Rng::with_seed(seed);
    let board = SimBoard::with(SimConfig { seed, faults: plan.faults });
    let line = Align::new([32, 64, 64, 128][rng.usize(..4)])?;
    let backend = board.memory_with(SimSpec { len_bytes: REGION_BYTES, line, ..SimSpec::default() })?;
    let base = backend.mapping().base.raw();
    let ports = [board.port(), if rng.bool() { board.port() } else { board.coherent_port() }];
    let forgets = rng.bool();
    let devices = ports.map(|port| SimGemm8::new(&board, port));
    let config = SourceConfig { packet_bytes: lanes::PACKET, short_every: Some(3), gap_ns: rng.u64(..2_000), ..SourceConfig::default() };
    let camera = SimDevice::with_model(&board, ports[1], AxiDmaModel::new(CoreSpec::camera(config, 512)));
    let (leaked, tally) = {
        let region = Region::new(Mutant::new(backend, plan.mutation))?;
        let mut carved: usize = 0;
        let mut carve = |len_bytes| -> Verdict<_> {
            let (start, piece) = (carved.next_multiple_of(line.max(Align::LINE).bytes()), region.carve(len_bytes, Align::LINE)?);
            carved = start + piece.len_bytes();
            Ok((start..carved, piece))
        };
        // Something before them, so that they do not begin at round addresses.
        drop(carve(line.bytes() * rng.usize(1..16))?);
        let rings = Pool::<1>::new(carve(lanes::RING_BYTES)?.1, lanes::RING_BYTES)?;
        let (in_pool, pool) = carve(POOL_SLOTS * SLOT_BYTES)?;
        let (in_local, local) = carve(LOCAL_SLOTS * SLOT_BYTES)?;
        let (in_arena, arena) = carve(ARENA_BYTES)?;
        let pool = Pool::<POOL_SLOTS>::new(pool, SLOT_BYTES)?;
        let local = LocalPool::<LOCAL_SLOTS>::new(local, SLOT_BYTES)?;
        let arena = Arena::<BLOCKS>::new(arena)?;
        let [first, second] = &devices;
        let mut units = [Unit::new(first, ports[0].coherent)?, Unit::new(second, ports[1].coherent)?];
        let mut lane = Lane::new(&camera, &rings, ports[1].coherent, rng.bool(), plan.lie);
        let mut machine = Machine {
            rng,
            world: World::new(REGION_BYTES),
            held: Vec::new(),
            lent: Vec::new(),
            base,
            line,
            faults: plan.faults,
            steps_left: plan.steps,
            forgets,
            tally: Tally::new(),
            trace: plan.trace,
            region: &region,
            pool: &pool,
            local: &local,
            arena: &arena,
            territory: [in_pool, in_local, in_arena, carved..REGION_BYTES],
            carved,
            carves: 5,
            copied: 0,
        };
        while machine.steps_left > 0 {
            machine.step(&mut units, &mut lane)?;
        }
        machine.end_lane(&mut lane)?;
        let leaked = machine.end(&units)?;
        (leaked || lane.leaked, machine.tally)
    };
    // The region is gone. A device that is stuck goes on writing: into memory that was leaked, or
    // else astray.
    for device in &devices {
        device.run_for(1_000)?;
    }
    camera.run_for(1_000)?;
    let SimCounts { stray_accesses, unowned_accesses, lost_writes, .. } = board.counts();
    ensure!(lost_writes == 0, "{lost_writes} statuses were overwritten");
    ensure!(stray_accesses == 0, "{stray_accesses} accesses to memory that was freed");
    ensure!(unowned_accesses == 0, "{unowned_accesses} accesses to bytes that were not handed over");
    let freed = boards::read(&board, board.port(), DevAddr(base), &mut [0; 4]).is_err();
    ensure!(freed != leaked, "something was leaked: {leaked}, and the block was freed: {freed}");
    Ok(tally)
}

impl<'p> Machine<'p> {
    /// One step, and the comparison after it.
    pub(crate) fn step(&mut self, units: &mut [Unit<'_>], lane: &mut Lane<'_, 'p>) -> Verdict {
        self.steps_left = self.steps_left.saturating_sub(1);
        let step = self.steps_left;
        let (name, done) = match self.rng.u32(..100) {
            0..16 => ("take", self.take()),
            16..18 => ("carve", self.carve()),
            18..34 => ("write", self.write()),
            34..41 => ("slice", self.slice()),
            41..44 => ("split", self.split()),
            44..52 => ("drop", self.drop_one()),
            52 if self.forgets => ("forget", self.forget_one()),
            52..58 => ("a buffer back from a device", self.lent_one()),
            58..63 => ("recover", self.recover(units)),
            63..78 => ("queue", self.lane(lane)),
            _ if !self.could_start() => ("take", self.take()),
            _ => ("job", self.job(units, lane)),
        };
        done.and_then(|()| self.compare()).map_err(|failure| match failure {
            Failure::Wrong(what) => Failure::Wrong(format!("{name}, {step} steps before the end: {what}")),
            skipped @ Failure::Skipped(_) => skipped,
        })
    }

    /// Counts something, so that a test can see that the sequences reach it.
    pub(crate) fn tally(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Says what happens, where somebody reruns a seed to see it.
    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{:3}: {}", self.steps_left, what());
        }
    }

    /// Everything that can be seen from outside.
    fn compare(&mut self) -> Verdict {
        for held in &self.held {
            self.world.look(held.buf.offset_bytes(), held.buf.view::<u8>()?)?;
        }
        let out = [Home::Pool, Home::Local, Home::Arena].map(|home| self.world.out(home));
        let taken = [self.pool.taken(), self.local.taken(), self.arena.taken()];
        ensure!(taken == out, "pool, local pool and arena say {taken:?} are taken, the model {out:?}");
        let stats = self.region.stats();
        ensure!(
            (stats.carves, stats.bytes_copied) == (self.carves, self.copied),
            "{} carves, {} bytes copied: {stats:?}",
            self.carves,
            self.copied
        );
        ensure!(self.region.free_bytes() == REGION_BYTES - self.carved, "{} bytes free", self.region.free_bytes());
        Ok(())
    }

    /// Everything back: what was not leaked is there again, and can be used.
    fn end(&mut self, units: &[Unit<'_>]) -> Verdict<bool> {
        for unit in units {
            unit.count()?;
        }
        while !self.lent.is_empty() {
            self.lent_one()?;
        }
        self.compare()?;
        while !self.held.is_empty() {
            self.drop_one()?;
        }
        self.compare()?;
        let all: Vec<_> = (0..POOL_SLOTS).map_while(|_| self.pool.take().ok()).collect();
        ensure!(all.len() == POOL_SLOTS - self.world.out(Home::Pool), "{} slots of the pool can be used", all.len());
        let all: Vec<_> = (0..LOCAL_SLOTS).map_while(|_| self.local.take().ok()).collect();
        ensure!(all.len() == LOCAL_SLOTS - self.world.out(Home::Local), "{} slots of the local pool can be used", all.len());
        if self.world.out(Home::Arena) == 0 {
            // No piece is left between others: all of it is one block again.
            drop(self.arena.take(ARENA_BYTES)?);
        }
        self.tally(if self.world.leaked() { "region leaked" } else { "region freed" });
        Ok(self.world.leaked())
    }
}

/// Some part of `len` bytes, maybe none.
pub(crate) fn random_range(rng: &mut Rng, len: usize) -> Range<usize> {
    let (one, other) = (rng.usize(..=len), rng.usize(..=len));
    one.min(other)..one.max(other)
}

//! Buffers: one random step at a time, each compared with the model.

use crate::liar::Lie;
use crate::units::Unit;
use crate::world::{Home, World};
use contigo::mem::{DevSlice, Requirements};
use contigo::sim::{Faults, SimBoard, SimCounts, SimSpec};
use contigo::{Align, Backend, CpuBuf, DevAddr, DevBuf, Direction, Limits, Operand, Pool, Region};
use contigo_gemm8::SimGemm8;
use contigo_testkit::conformance::mutant::{Mutant, Mutation};
use contigo_testkit::conformance::{Failure, Verdict, boards};
use contigo_testkit::ensure;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

pub(crate) const REGION_BYTES: usize = 48 << 10;
/// Blocks and pools of the region.
pub(crate) const ALLOCATIONS: usize = 16;
/// Of the pool that is there from beginning to end.
const POOL_SLOTS: usize = 5;
/// Holds any operand of the largest job here: 32 rows of 48 columns.
pub(crate) const SLOT_BYTES: usize = 2048;

/// The settings of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) faults: Faults,
    pub(crate) mutation: Mutation,
    /// Which rule the stream's driver breaks.
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
pub(crate) struct Held {
    pub(crate) buf: CpuBuf,
    pub(crate) claim: usize,
    pub(crate) extent: Range<usize>,
}

/// A buffer that a device owns, between two jobs.
pub(crate) struct Lent {
    pub(crate) buf: DevBuf,
    pub(crate) claim: usize,
    pub(crate) extent: Range<usize>,
    pub(crate) shown: Range<usize>,
    pub(crate) given: Range<usize>,
    pub(crate) coherent: bool,
}

/// A pool of the region's.
pub(crate) struct Slots {
    pub(crate) pool: Pool,
    /// In the model.
    pub(crate) number: usize,
    pub(crate) count: usize,
}

/// How often each thing happened, by name.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

/// The things under test, and the model of them.
pub(crate) struct Machine {
    pub(crate) rng: Rng,
    pub(crate) world: World,
    pub(crate) held: Vec<Held>,
    pub(crate) lent: Vec<Lent>,
    pub(crate) base: u64,
    pub(crate) line: Align,
    pub(crate) faults: Faults,
    pub(crate) steps_left: u32,
    /// Half of the sequences forget nothing, so that their region is freed.
    pub(crate) forgets: bool,
    tally: Tally,
    trace: bool,
    pub(crate) region: Region,
    pub(crate) pools: Vec<Slots>,
    pub(crate) carves: u64,
    pub(crate) copied: u64,
}

/// One sequence from a seed, and what must hold when it is over.
pub(crate) fn run(seed: u64, plan: Plan) -> Verdict<Tally> {
    let mut rng = Rng::with_seed(seed);
    let board = SimBoard::with(seed, plan.faults);
    let line = Align::new([32, 64, 64, 128][rng.usize(..4)])?;
    let backend =
        board.memory_with(SimSpec { len_bytes: REGION_BYTES, line, ..SimSpec::default() })?;
    let base = backend.mapping().base.raw();
    let ports = [board.port(), if rng.bool() { board.port() } else { board.coherent_port() }];
    let forgets = rng.bool();
    let devices = ports.map(|port| SimGemm8::new(&board, port));
    let (leaked, tally) = {
        let limits = Limits { allocations: ALLOCATIONS };
        let region =
            Region::with(Mutant::new(backend, plan.mutation), Requirements::default(), limits)?;
        let [first, second] = &devices;
        let mut units = [Unit::new(first, ports[0].coherent), Unit::new(second, ports[1].coherent)];
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
            region,
            pools: Vec::new(),
            carves: 0,
            copied: 0,
        };
        // Something before them, so that they do not begin at round addresses.
        let before = machine.region.alloc(line.bytes() * machine.rng.usize(1..16), line)?;
        machine.carves += 1;
        machine.hold(Home::Block, before)?;
        machine.open_pool(POOL_SLOTS, SLOT_BYTES)?;
        while machine.steps_left > 0 {
            machine.step(&mut units)?;
        }
        machine.end_units(&mut units)?;
        (machine.end()?, machine.tally)
    };
    // The region is gone. A device that is stuck goes on writing: into memory that was leaked, or
    // else astray.
    for device in &devices {
        device.run_for(1_000)?;
    }
    let SimCounts { stray_accesses, unowned_accesses, lost_writes, .. } = board.counts();
    ensure!(lost_writes == 0, "{lost_writes} statuses were overwritten");
    ensure!(stray_accesses == 0, "{stray_accesses} accesses to memory that was freed");
    ensure!(unowned_accesses == 0, "{unowned_accesses} accesses to bytes not handed over");
    let freed = boards::read(&board, board.port(), DevAddr(base), &mut [0; 4]).is_err();
    ensure!(freed != leaked, "something was leaked: {leaked}, and the block was freed: {freed}");
    Ok(tally)
}

impl Machine {
    /// One step, and the comparison after it.
    pub(crate) fn step(&mut self, units: &mut [Unit<'_>]) -> Verdict {
        self.steps_left = self.steps_left.saturating_sub(1);
        let step = self.steps_left;
        let (name, done) = match self.rng.u32(..100) {
            0..16 => ("take", self.take()),
            16..18 => ("pool", self.pool()),
            18..34 => ("write", self.write()),
            34..41 => ("slice", self.slice()),
            41..44 => ("split", self.split()),
            44..52 => ("drop", self.drop_one()),
            52 if self.forgets => ("forget", self.forget_one()),
            52..58 => ("a buffer back from a device", self.lent_one()),
            58..63 => ("recover", self.recover(units)),
            _ if !self.could_start() => ("take", self.take()),
            _ => ("job", self.job(units)),
        };
        done.and_then(|()| self.compare())
            .map_err(|failure| failure.before(format_args!("{name}, {step} steps before the end")))
    }

    /// Counts something, so that a test can see that the sequences reach it.
    pub(crate) fn tally(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Prints what happens, where a seed is rerun with `trace`.
    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{:3}: {}", self.steps_left, what());
        }
    }

    /// A buffer came back to the CPU, and shows the bytes that it showed before.
    pub(crate) fn returned(
        &mut self,
        buf: CpuBuf,
        claim: usize,
        extent: Range<usize>,
        shown: &Range<usize>,
    ) -> Verdict {
        let now = place(&buf);
        ensure!(now == *shown, "a buffer comes back showing {now:?}, not {shown:?}");
        self.held.push(Held { buf, claim, extent });
        Ok(())
    }

    /// A job was refused: its operand's buffer is as it was, on the side where it was.
    pub(crate) fn untaken(&mut self, operand: Operand, part: Part) -> Verdict {
        let Part { claim, extent, of, held_coherent, shown, .. } = part;
        match (operand.into_buf(), held_coherent) {
            (Ok(buf), None) => self.returned(buf, claim, extent, &shown),
            (Err(buf), Some(coherent)) => {
                let (now, before) = (buf.handed_over_bytes(), of.len());
                ensure!(now == before, "{buf:?} was refused, and had {before} bytes");
                self.lent.push(Lent { buf, claim, extent, shown, given: of, coherent });
                Ok(())
            }
            _ => Err(Failure::Wrong("a refused buffer changed sides".into())),
        }
    }

    /// A buffer stays the device's after a job on a part of it.
    pub(crate) fn lend(&mut self, buf: DevBuf, part: Part, coherent: bool) -> Verdict {
        let used = part.absolute();
        let given = if part.held_coherent.is_some() { part.of } else { used.clone() };
        let addr = DevAddr(self.base + used.start as u64);
        let slice = DevSlice { addr, offset_bytes: 0, len_bytes: used.len() };
        let found = (buf.slice(), buf.handed_over_bytes());
        ensure!(found == (slice, given.len()), "{buf:?} instead of {slice:?} of {given:?}");
        let Part { claim, extent, shown, .. } = part;
        self.lent.push(Lent { buf, claim, extent, shown, given, coherent });
        Ok(())
    }

    /// Everything that can be seen from outside.
    fn compare(&mut self) -> Verdict {
        for held in &self.held {
            self.world.look(held.buf.offset_bytes(), held.buf.view::<u8>()?)?;
        }
        for Slots { pool, number, .. } in &self.pools {
            let (taken, out) = (pool.taken(), self.world.out(Home::Pool(*number)));
            ensure!(taken == out, "pool {number} says {taken} are taken, the model {out}");
        }
        let (stats, expected) = (self.region.stats(), (self.carves, self.copied));
        ensure!((stats.carves, stats.bytes_copied) == expected, "{expected:?}: {stats:?}");
        let found = (self.region.free_bytes(), self.region.users());
        let expected = (self.world.free_bytes(), 1 + self.world.allocations());
        ensure!(found == expected, "free bytes and users: {found:?}, not {expected:?}");
        Ok(())
    }

    /// Everything back: what was not leaked is there again, and can be used. Says whether anything
    /// was.
    fn end(&mut self) -> Verdict<bool> {
        while !self.lent.is_empty() {
            self.lent_one()?;
        }
        self.compare()?;
        while !self.held.is_empty() {
            self.drop_one()?;
        }
        self.compare()?;
        for Slots { pool, number, count } in mem::take(&mut self.pools) {
            let all: Vec<_> = (0..count).map_while(|_| pool.take().ok()).collect();
            let (usable, out) = (all.len(), self.world.out(Home::Pool(number)));
            ensure!(usable == count - out, "{usable} slots of pool {number} can be used");
            self.world.close(number);
        }
        self.compare()?;
        let leaked = self.world.leaked();
        if !leaked {
            // No piece is left between others: all of it is one block again.
            drop(self.region.alloc(REGION_BYTES, self.line)?);
        }
        self.tally(if leaked { "region leaked" } else { "region freed" });
        Ok(leaked)
    }
}

/// Where a buffer is in the block: the bytes that it shows.
pub(crate) fn place(buf: &CpuBuf) -> Range<usize> {
    buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes()
}

/// Some part of `len` bytes, maybe none.
pub(crate) fn random_range(rng: &mut Rng, len: usize) -> Range<usize> {
    let (one, other) = (rng.usize(..=len), rng.usize(..=len));
    one.min(other)..one.max(other)
}

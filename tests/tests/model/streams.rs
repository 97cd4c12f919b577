//! A stream: frames fetched, held, given back, dropped and forgotten, with stops, faults and resets
//! between. Every packet is in a frame or counted.

use crate::liar::Liar;
use crate::machine::{Plan, Tally};
use contigo::drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, PacketReport, Side};
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::{SourceConfig, packet};
use contigo::sim::{SimBoard, SimDevice, SimSpec, SimWindow};
use contigo::{Align, CpuBuf, Error, Pool, Region, Stream};
use contigo_testkit::conformance::Verdict;
use contigo_testkit::conformance::rig::random_bytes;
use contigo_testkit::ensure;
use fastrand::Rng;
use std::mem;
use std::time::Duration;

/// Is it this packet, or the beginning of it that a fault left?
fn is_packet(number: u32, seen: &[u8]) -> bool {
    seen.get(4..)
        .and_then(packet::number)
        .is_some_and(|whole| packet::begins(number, whole as usize, seen))
}

const SLOTS: usize = 6;
const PLACES: usize = 4;

type Frames = Stream<Liar<AxiDmaChannel<SimWindow<AxiDmaModel>>>>;

struct World<'d> {
    rng: Rng,
    plan: Plan,
    tally: Tally,
    stream: Frames,
    device: &'d SimDevice<AxiDmaModel>,
    pool: &'d Pool,
    in_order: bool,
    /// Frames that the program has, and what they must show.
    held: Vec<(CpuBuf, Vec<u8>)>,
    forgotten: usize,
    next_number: u32,
    told: u64,
    untold: u64,
    /// After a fault, or once all that had ended was fetched: nothing may come before a start.
    drained: bool,
}

/// One sequence from a seed, and what must hold when it is over.
pub(crate) fn run(seed: u64, plan: Plan) -> Verdict<Tally> {
    let mut rng = Rng::with_seed(seed);
    let board = SimBoard::with(seed, plan.faults);
    let line = Align::new([32, 64, 64, 128][rng.usize(..4)])?;
    let spec = SimSpec { len_bytes: 16 << 10, line, ..SimSpec::default() };
    let region = Region::new(board.memory_with(spec)?)?;
    let port = if rng.bool() { board.port() } else { board.coherent_port() };
    let (places, slots, packet_bytes) =
        (rng.usize(1..=PLACES), rng.usize(1..=SLOTS), 4 * rng.usize(64..=128));
    let gap_ns = if rng.bool() { 0 } else { rng.u64(..10_000) };
    let config =
        SourceConfig { packet_bytes, gap_ns, short_every: Some(3), ..SourceConfig::default() };
    let device =
        SimDevice::with_model(&board, port, AxiDmaModel::new(CoreSpec::camera(config, 512)));
    let (rings, pool) = (region.pool(1, PLACES * 128)?, region.pool(slots, 512)?);
    let (in_order, forgets) = (rng.bool(), rng.bool());
    let config = AxiDmaConfig { depth: Some(places), s2mm_dre: true, ..AxiDmaConfig::default() };
    let camera = device.window()?.channel(Side::S2mm, config, Some(rings.take()?))?;
    // More than the device takes at once, or fewer.
    let in_flight = rng.usize(1..=SLOTS);
    let driver = Liar::new(camera, in_order, plan.lie, rng.u64(..));
    let mut world = World {
        stream: Frames::new(driver, pool.clone(), in_flight, &[])?,
        rng,
        plan,
        tally: Tally::new(),
        device: &device,
        pool: &pool,
        in_order,
        held: Vec::new(),
        forgotten: 0,
        next_number: 0,
        told: 0,
        untold: 0,
        drained: true,
    };
    for step in (0..plan.steps).rev() {
        world
            .step(forgets)
            .map_err(|failure| failure.before(format_args!("{step} steps before the end")))?;
    }
    let World { mut tally, stream, held, forgotten, .. } = world;
    let (dry, lost) = device.model(|model| (model.underruns(), model.stream.counts.lost))?;
    let told = stream.counts().underruns;
    ensure!(told <= dry, "{told} underruns are told of {dry}");
    for (what, count) in [("dry", told), ("lost", lost)] {
        *tally.entry(what).or_default() += count;
    }
    drop((stream, held));
    let (stuck, out) = (plan.faults.stuck > 0 && rings.taken() > 0, pool.taken());
    let right = stuck || (rings.taken(), out) == (0, forgotten);
    ensure!(right, "{out} buffers are out, {forgotten} forgotten");
    device.run_for(1_000)?;
    let (counts, model) = (board.counts(), device.model(|model| model.stream.counts)?);
    let seen =
        [counts.stray_accesses, counts.unowned_accesses, counts.evictions, counts.lost_writes];
    ensure!(seen == [0; 4], "{counts:?}");
    ensure!((0..=8).contains(&(model.begun - model.taken - model.lost - model.cut)), "{model:?}");
    Ok(tally)
}

impl World<'_> {
    fn tally(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn step(&mut self, forgets: bool) -> Verdict {
        let way = self.rng.u8(..100);
        if self.plan.trace {
            println!("way {way}, {:?}", self.stream);
        }
        match way {
            0..45 => self.next()?,
            45..70 if !self.held.is_empty() => self.one_held(forgets)?,
            45..78 => self.device.run_for(self.rng.u32(..6))?,
            78..84 => self.stop()?,
            84..88 => self.take_back()?,
            _ => self.start()?,
        }
        for (buf, expected) in &self.held {
            ensure!(buf.view::<u8>()? == expected, "a frame changed in its owner's hands");
        }
        let (out, inside, held) =
            (self.pool.taken(), self.stream.queue().len(), self.held.len() + self.forgotten);
        ensure!(out == inside + held, "{out} buffers are out: {inside} inside, {held} held");
        let counts = self.stream.counts();
        ensure!(
            counts.pushed == counts.completed + counts.failed + counts.cancelled + inside as u64,
            "{counts:?}, {inside} inside"
        );
        ensure!(counts.completed == self.told, "{counts:?}, and {} frames", self.told);
        Ok(())
    }

    fn next(&mut self) -> Verdict {
        let timeout = [
            Duration::ZERO,
            Duration::from_micros(self.rng.u32(..8).into()),
            Duration::from_micros(30),
        ][self.rng.usize(..3)];
        let ran = self.stream.is_running();
        match self.stream.next(timeout) {
            Ok(Some(frame)) => {
                ensure!(!self.drained, "a frame after the end of the others, or after the fault");
                let seen = frame.buf.view::<u8>()?;
                let number = packet::number(seen).unwrap_or(u32::MAX);
                let exact = self.plan.faults.short == 0
                    && self.device.model(|model| model.stream.counts)?.cut == 0;
                let right = if exact { packet::is(number, seen) } else { is_packet(number, seen) };
                ensure!(right, "frame {number} is wrong: {frame:?}");
                let report = PacketReport::of(frame.status, frame.words);
                ensure!(report.first && report.last && frame.last == Some(true), "{frame:?}");
                let next = self.next_number;
                ensure!(!self.in_order || number >= next, "frame {number} after {next}");
                let expected = seen.to_vec();
                self.next_number = self.next_number.max(number + 1);
                self.told += 1;
                self.held.push((frame.buf, expected));
                self.tally("frame");
            }
            Ok(None) if ran => self.tally("late"),
            Ok(None) => {
                self.drained = true;
                if !self.stream.queue().is_stopped() || self.plan.faults.stuck == 0 {
                    let (written, told) =
                        (self.device.model(AxiDmaModel::written)?, self.told + self.untold);
                    ensure!(written == told, "{written} frames were written, {told} accounted for");
                }
            }
            Err(Error::NoSlots { .. }) => {
                ensure!(self.stream.queue().is_empty(), "the device has a buffer")
            }
            Err(Error::Fault { .. } | Error::FaultAt { .. }) if self.plan.faults.error > 0 => {
                self.drained = true
            }
            Err(Error::WillNotStop { .. }) if self.plan.faults.stuck > 0 => {}
            Err(error) => ensure!(false, "next: {error}"),
        }
        Ok(())
    }

    /// A frame that the program has: given back, dropped, forgotten, or written over.
    fn one_held(&mut self, forgets: bool) -> Verdict {
        let (mut buf, _) = self.held.swap_remove(self.rng.usize(..self.held.len()));
        match self.rng.u8(..20) {
            0 if forgets && self.forgotten < 2 => {
                mem::forget(buf);
                self.forgotten += 1;
                self.tally("frame forgotten");
            }
            0..4 => drop(buf),
            4..8 => {
                buf = buf.whole();
                let bytes = random_bytes(&mut self.rng, buf.len_bytes());
                buf.copy_from_slice(&bytes)?;
                self.held.push((buf, bytes));
            }
            _ => {
                self.stream.give_back(buf)?;
                self.tally("frame given back");
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Verdict {
        match self.stream.stop() {
            Ok(()) => {}
            Err(error) => {
                let stuck = self.plan.faults.stuck > 0;
                ensure!(stuck && matches!(error, Error::WillNotStop { .. }), "stop: {error}");
                if self.rng.bool() {
                    self.device.reset()?;
                    self.stream.stop()?;
                }
            }
        }
        ensure!(!self.stream.is_running(), "it was stopped");
        Ok(())
    }

    fn take_back(&mut self) -> Verdict {
        if self.stream.is_running() || self.stream.queue().is_empty() {
            let none = self.stream.take_back().is_none();
            ensure!(none, "a buffer came back from a stream that runs");
            return Ok(());
        }
        while let Some(buf) = self.stream.take_back() {
            drop(buf.into_cpu()?);
            self.tally("taken back");
        }
        if self.stream.queue().is_empty() {
            self.drained = true;
            self.untold = self.device.model(AxiDmaModel::written)? - self.told;
        }
        Ok(())
    }

    fn start(&mut self) -> Verdict {
        let ran = self.stream.is_running();
        // Before the device has its first buffer: it may fill that one while the others are armed.
        let written = self.device.model(AxiDmaModel::written)?;
        match self.stream.start() {
            Ok(armed) => {
                ensure!(armed == self.stream.queue().len() && armed > 0, "{armed} armed");
                if !ran {
                    self.untold = written - self.told;
                }
                self.drained = false;
                self.tally("armed");
            }
            Err(Error::NoSlots { .. }) => {
                ensure!(self.stream.queue().is_empty(), "the device has a buffer");
                self.untold = self.device.model(AxiDmaModel::written)? - self.told;
                self.drained = true;
            }
            Err(error) => ensure!(
                matches!(error, Error::QueueStopped { .. }) && self.plan.faults.stuck > 0,
                "start: {error}"
            ),
        }
        Ok(())
    }
}

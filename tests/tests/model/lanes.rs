//! Queues: several jobs in flight of a camera, on the same buffers as everything else.

use crate::{
    liar::{Liar, Lie},
    machine::{Held, Lent, Machine, Part},
    oracle,
};
use contigo::{
    CpuBuf, DevBuf, Direction, Error, JobError, Operand, Pool, Queue,
    drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, PacketReport, Side},
    job::Cancelled,
    sim::{SimDevice, SimWindow, axi_dma::AxiDmaModel, stream::packet},
};
use contigo_testkit::{
    conformance::{Failure, Verdict},
    ensure,
};
use std::{collections::VecDeque, mem, time::Duration};

/// How many jobs the device takes, and how many the queue: the rest waits.
pub(crate) const DEPTH: usize = 3;
const CAPACITY: usize = 5;
/// The longest packet of the camera.
pub(crate) const PACKET: usize = 512;
/// The most bytes of one descriptor.
const DESCRIPTOR: usize = (1 << 14) - 1;
/// A descriptor is a line at least, and lines have 128 bytes at most.
pub(crate) const RING_BYTES: usize = DEPTH * 128;

/// Is it this packet, or the beginning of it that a fault left?
pub(crate) fn is_packet(number: u32, seen: &[u8]) -> bool {
    seen.get(4..)
        .and_then(packet::number)
        .is_some_and(|whole| packet::begins(number, whole as usize, seen))
}

type Jobs = Queue<Liar<AxiDmaChannel<SimWindow<AxiDmaModel>>>>;

/// A job in the queue.
#[derive(Debug)]
struct Inside {
    job: u64,
    part: Part,
    /// The device has it.
    given: bool,
}

/// A queue, its device, and what the model knows of them.
pub(crate) struct Lane<'d> {
    /// `None`: it was dropped or forgotten.
    queue: Option<Jobs>,
    device: &'d SimDevice<AxiDmaModel>,
    rings: Pool,
    coherent: bool,
    in_order: bool,
    lie: Lie,
    state: State,
    /// In the order in which they were submitted.
    inside: VecDeque<Inside>,
    /// Packets come in order.
    next_number: u32,
    /// Packets that were told, among those that the model wrote.
    told: u64,
    untold: u64,
    /// Its descriptors never come back: the queue was forgotten, or the device is stuck.
    pub(crate) leaked: bool,
}

/// A queue's state, as the model has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    AtWork,
    /// `drained`: all that had ended was fetched.
    Stopped {
        drained: bool,
    },
    MustStop,
}

impl<'d> Lane<'d> {
    pub(crate) fn new(
        device: &'d SimDevice<AxiDmaModel>,
        rings: Pool,
        coherent: bool,
        in_order: bool,
        lie: Lie,
    ) -> Self {
        let (queue, state, inside) = (None, State::AtWork, VecDeque::new());
        Self {
            queue,
            device,
            rings,
            coherent,
            in_order,
            lie,
            state,
            inside,
            next_number: 0,
            told: 0,
            untold: 0,
            leaked: false,
        }
    }

    /// A device at work is given what waits, as far as it takes it.
    fn feed(&mut self) {
        let given = self.inside.iter().filter(|inside| inside.given).count();
        if self.state == State::AtWork {
            self.inside
                .iter_mut()
                .filter(|inside| !inside.given)
                .take(DEPTH - given)
                .for_each(|inside| inside.given = true);
        }
    }
}

impl Machine {
    /// One step of a queue.
    pub(crate) fn lane(&mut self, lane: &mut Lane<'_>) -> Verdict {
        if lane.queue.is_none() && !self.open(lane)? {
            return Ok(());
        }
        let Some(mut queue) = lane.queue.take() else { return Ok(()) };
        let way = self.rng.u8(..100);
        self.note(|| format!("queue, way {way}, {:?}, {} inside", lane.state, lane.inside.len()));
        let done = match way {
            0..40 => self.push(lane, &mut queue),
            40..80 => self.next(lane, &mut queue),
            80..84 => Ok(lane.device.run_for(self.rng.u32(..20))?),
            84..92 => self.stop(lane, &mut queue),
            92..97 => self.take_back(lane, &mut queue),
            97 if self.forgets => {
                mem::forget(queue);
                self.tally("queue forgotten");
                self.all_leaked(lane);
                return Ok(());
            }
            _ => return self.drop_queue(lane, queue),
        };
        done?;
        let counts = queue.counts();
        let (inside, ended) =
            (lane.inside.len() as u64, counts.completed + counts.failed + counts.cancelled);
        ensure!(
            queue.len() as u64 == inside && counts.pushed == ended + inside,
            "{counts:?} with {inside} inside"
        );
        lane.queue = Some(queue);
        Ok(())
    }

    /// A driver and a queue. `false`: the last driver keeps the device, or its descriptors.
    fn open(&mut self, lane: &mut Lane<'_>) -> Verdict<bool> {
        if lane.leaked {
            return Ok(false);
        }
        let camera = lane.device.window()?.channel(
            Side::S2mm,
            AxiDmaConfig { depth: Some(DEPTH), s2mm_dre: true, ..AxiDmaConfig::default() },
            Some(lane.rings.take()?),
        )?;
        let driver = Liar::new(camera, lane.in_order, lane.lie, self.rng.u64(..));
        match Queue::new(driver, CAPACITY) {
            Ok(queue) => {
                (lane.queue, lane.state) = (Some(queue), State::AtWork);
                Ok(true)
            }
            Err(refused) => {
                ensure!(self.faults.stuck > 0, "a new queue: {}", refused.error);
                lane.leaked = true;
                Ok(false)
            }
        }
    }

    fn push(&mut self, lane: &mut Lane<'_>, queue: &mut Jobs) -> Verdict {
        let Some((operand, part)) = self.one_operand() else { return Ok(()) };
        let in_flight = lane.inside.len();
        let expected = match lane.state {
            State::AtWork if in_flight == CAPACITY => Some(Error::QueueFull { depth: CAPACITY }),
            State::AtWork => {
                oracle::operand(0, &part, Direction::FromDevice, lane.coherent, self.line.bytes())
            }
            _ => Some(Error::QueueStopped { in_flight }),
        };
        self.note(|| format!("push {:?}, expect {expected:?}", part.absolute()));
        match queue.submit([operand], &[]) {
            Ok(job) if expected.is_none() => {
                ensure!(lane.inside.iter().all(|before| before.job < job), "job {job} is inside");
                lane.inside.push_back(Inside { job, part, given: false });
                lane.feed();
                self.tally(if lane.inside.len() > DEPTH { "waits" } else { "pushed" });
                Ok(())
            }
            Ok(_) => {
                Err(Failure::Wrong(format!("a job was taken that must be refused: {expected:?}")))
            }
            Err(refused) => self.not_pushed(refused, expected, part),
        }
    }

    fn not_pushed(
        &mut self,
        refused: JobError<[Operand; 1]>,
        expected: Option<Error>,
        part: Part,
    ) -> Verdict {
        ensure!(Some(refused.error) == expected, "{refused:?} instead of {expected:?}");
        self.tally(match refused.error {
            Error::QueueFull { .. } => "queue full",
            Error::QueueStopped { .. } => "queue stopped",
            _ => "not pushed",
        });
        let [operand] =
            refused.buffers.ok_or(Failure::Wrong("a refused job kept its buffer".into()))?;
        let Part { claim, extent, of, held_coherent, shown, .. } = part;
        match (operand.into_buf(), held_coherent) {
            (Ok(buf), None) => self.held.push(Held { buf, claim, extent }),
            (Err(buf), Some(coherent)) => {
                self.lent.push(Lent { buf, claim, extent, shown, given: of, coherent })
            }
            _ => return Err(Failure::Wrong("a refused buffer changed sides".into())),
        }
        Ok(())
    }

    /// Some part of a buffer, mostly long enough for a packet.
    fn one_operand(&mut self) -> Option<(Operand, Part)> {
        if self.held.is_empty() && self.lent.is_empty() {
            return None;
        }
        let (operand, part) = self.operand(PACKET, Direction::FromDevice);
        // A range that is too short is a fault of the channel: now and then is enough. One of
        // several descriptors too, and the device goes on after it.
        let len = part.range.len();
        if len > DESCRIPTOR || len < PACKET && self.rng.u8(..12) > 0 {
            let Part { claim, extent, of, held_coherent, shown, .. } = part;
            match (operand.into_buf(), held_coherent) {
                (Ok(buf), _) => self.held.push(Held { buf, claim, extent }),
                (Err(buf), coherent) => self.lent.push(Lent {
                    buf,
                    claim,
                    extent,
                    shown,
                    given: of,
                    coherent: coherent == Some(true),
                }),
            }
            return None;
        }
        Some((operand, part))
    }

    fn next(&mut self, lane: &mut Lane<'_>, queue: &mut Jobs) -> Verdict {
        let timeout = [
            Duration::ZERO,
            Duration::from_micros(self.rng.u32(..8).into()),
            Duration::from_micros(50),
        ][self.rng.usize(..3)];
        if self.rng.u8(..4) == 0 {
            return match queue.wait_device(timeout) {
                Ok(Some(done)) => {
                    let part = self.told(lane, done.job)?;
                    let [buf] = done.buffers;
                    self.tally("packet, kept on the device");
                    lane.told += 1;
                    lane.next_number += 1;
                    self.world.forget(part.absolute());
                    self.back(buf, part, lane.coherent)
                }
                Ok(None) => self.nothing(lane),
                Err(failed) => self.channel_failed(lane, queue, &failed),
            };
        }
        match queue.wait(timeout) {
            Ok(Some(done)) => {
                let part = self.told(lane, done.job)?;
                let [buf] = done.buffers;
                // The rest of a packet that was longer than the operand before begins none.
                let (bytes, begins) = (
                    done.bytes.unwrap_or(usize::MAX),
                    PacketReport::of(done.status, done.words).first,
                );
                self.packet(lane, buf, part, bytes, begins)
            }
            Ok(None) => self.nothing(lane),
            Err(failed) => self.channel_failed(lane, queue, &failed),
        }
    }

    /// That job was told of.
    fn told(&mut self, lane: &mut Lane<'_>, job: u64) -> Verdict<Part> {
        ensure!(
            lane.state != State::Stopped { drained: true },
            "a job was told of after the end of the others, or after the fault"
        );
        let found = lane.inside.iter().position(|inside| inside.job == job && inside.given);
        ensure!(
            found.is_some() && (!lane.in_order || found == Some(0)),
            "job {job} is reported, inside are {:?}",
            lane.inside
        );
        let Inside { part, .. } = found
            .and_then(|index| lane.inside.remove(index))
            .ok_or(Failure::Wrong("no such job".into()))?;
        if lane.inside.is_empty() && lane.state != State::MustStop {
            lane.state = State::AtWork;
        }
        lane.feed();
        Ok(part)
    }

    /// A packet in a buffer: the right one, all of it, and nothing beside it.
    fn packet(
        &mut self,
        lane: &mut Lane<'_>,
        buf: CpuBuf,
        part: Part,
        bytes: usize,
        begins: bool,
    ) -> Verdict {
        let at = part.absolute().start;
        let seen = buf
            .view::<u8>()?
            .get(at - part.shown.start..)
            .and_then(|rest| rest.get(..bytes))
            .unwrap_or_default();
        let number =
            packet::number(seen).ok_or(Failure::Wrong(format!("a packet of {bytes} bytes")))?;
        ensure!(
            !begins || is_packet(number, seen),
            "packet {number} is wrong, {bytes} bytes of it"
        );
        ensure!(
            !begins || !lane.in_order || number >= lane.next_number,
            "packet {number} after {}",
            lane.next_number
        );
        if begins {
            lane.next_number = lane.next_number.max(number + 1);
        }
        lane.told += 1;
        self.tally("packet");
        self.world.write(at, seen);
        let Part { claim, extent, .. } = part;
        self.held.push(Held { buf, claim, extent });
        Ok(())
    }

    fn nothing(&mut self, lane: &mut Lane<'_>) -> Verdict {
        if let State::Stopped { drained } = &mut lane.state {
            *drained = true;
            self.tally("drained");
            let written = lane.device.model(AxiDmaModel::written)?;
            ensure!(
                written == lane.told + lane.untold,
                "{written} packets were written, and {} told of",
                lane.told + lane.untold
            );
        }
        Ok(())
    }

    fn channel_failed<B>(
        &mut self,
        lane: &mut Lane<'_>,
        queue: &Jobs,
        failed: &JobError<B>,
    ) -> Verdict {
        let short =
            lane.inside.iter().any(|inside| inside.given && inside.part.range.len() < PACKET);
        let possible = match failed.error {
            Error::Fault { .. } | Error::FaultAt { .. } => self.faults.error > 0 || short,
            Error::WillNotStop { .. } => self.faults.stuck > 0,
            _ => false,
        };
        ensure!(
            possible && failed.buffers.is_none() && queue.is_stopped(),
            "the channel failed: {failed}, with {:?}",
            self.faults
        );
        self.tally("channel failed");
        // The ends before the fault were told, and nothing comes after it.
        lane.state = if matches!(failed.error, Error::WillNotStop { .. }) {
            State::MustStop
        } else {
            State::Stopped { drained: true }
        };
        Ok(())
    }

    fn stop(&mut self, lane: &mut Lane<'_>, queue: &mut Jobs) -> Verdict {
        if lane.state == State::MustStop && self.rng.bool() {
            lane.device.reset()?;
        }
        match queue.stop() {
            Ok(()) => {
                self.tally("queue was stopped");
                let drained = lane.state == State::Stopped { drained: true };
                lane.state =
                    if lane.inside.is_empty() { State::AtWork } else { State::Stopped { drained } };
            }
            Err(error) => {
                ensure!(
                    matches!(error, Error::WillNotStop { .. }) && self.faults.stuck > 0,
                    "stop: {error}"
                );
                self.tally("queue would not stop");
                lane.state = State::MustStop;
            }
        }
        Ok(())
    }

    /// All jobs that a stopped device has not ended, and that it was not given; and those that it
    /// had ended, where no wait asked for them.
    fn take_back(&mut self, lane: &mut Lane<'_>, queue: &mut Jobs) -> Verdict {
        if !matches!(lane.state, State::Stopped { .. }) {
            ensure!(
                queue.take_back::<1>()?.is_none(),
                "a job was taken back in state {:?}",
                lane.state
            );
            return Ok(());
        }
        while let Some(Cancelled { buffers: [buf], job: taken }) = queue.take_back()? {
            let Some(Inside { job, part, .. }) = lane.inside.pop_front() else {
                return Err(Failure::Wrong("more was taken back than was inside".into()));
            };
            ensure!(job == taken, "job {taken} was taken back, not {job}");
            self.tally("taken back");
            self.world.forget(part.absolute());
            self.back(buf, part, lane.coherent)?;
        }
        ensure!(lane.inside.is_empty(), "{} were not taken back", lane.inside.len());
        self.count_untold(lane)?;
        lane.state = State::AtWork;
        Ok(())
    }

    /// Packets that were written, and that no wait will return any more.
    fn count_untold(&mut self, lane: &mut Lane<'_>) -> Verdict {
        lane.untold = lane.device.model(AxiDmaModel::written)? - lane.told;
        Ok(())
    }

    /// A buffer on the device's side.
    fn back(&mut self, buf: DevBuf, part: Part, coherent: bool) -> Verdict {
        let given = if part.held_coherent.is_some() { part.of.clone() } else { part.absolute() };
        ensure!(buf.handed_over_bytes() == given.len(), "{buf:?} of {given:?}");
        let Part { claim, extent, shown, .. } = part;
        self.lent.push(Lent { buf, claim, extent, shown, given, coherent });
        Ok(())
    }

    fn all_leaked(&mut self, lane: &mut Lane<'_>) {
        lane.leaked = true;
        lane.inside.drain(..).for_each(|inside| self.world.leak(inside.part.claim));
    }

    /// A buffer that the device does not have any more went back to its pool.
    fn dropped(&mut self, part: &Part) {
        self.world.forget(part.absolute());
        self.world.claims[part.claim].handles -= 1;
    }

    /// Drops the queue: its device stops, or keeps what it was given.
    fn drop_queue(&mut self, lane: &mut Lane<'_>, queue: Jobs) -> Verdict {
        drop(queue);
        let leaked = lane.rings.taken() > 0;
        ensure!(
            !leaked || self.faults.stuck > 0,
            "a driver kept its descriptors whose device stops"
        );
        self.tally(if leaked { "queue leaked" } else { "queue dropped" });
        if leaked {
            // The driver tries once more than the queue, and a device that is stuck stays so.
            let (given, waiting): (VecDeque<_>, VecDeque<_>) =
                mem::take(&mut lane.inside).into_iter().partition(|inside| inside.given);
            waiting.iter().for_each(|inside| self.dropped(&inside.part));
            lane.inside = given;
            self.all_leaked(lane);
            return Ok(());
        }
        mem::take(&mut lane.inside).iter().for_each(|inside| self.dropped(&inside.part));
        self.count_untold(lane)?;
        lane.state = State::AtWork;
        Ok(())
    }

    /// The end of a sequence.
    pub(crate) fn end_lane(&mut self, lane: &mut Lane<'_>) -> Verdict {
        match lane.queue.take() {
            Some(queue) => self.drop_queue(lane, queue),
            None => Ok(()),
        }
    }
}

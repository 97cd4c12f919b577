//! Which round comes next: the seed decides all of them.

use super::Worked;
use super::disturb::Bound;
use super::work::{self, Mode, Work};
use crate::checks::{self, Subject, engine};
use crate::machine::Engine;
use crate::options::Options;
use crate::row::{Name, Row, Status};
use crate::setup::Place;
use crate::verdict::{Verdict, Wrong};
use crate::{child, plan};
use contigo_boards::DmaKind;
use fastrand::Rng;
use std::time::Duration;

/// Jobs of one round, in milliseconds: long enough for thousands, short enough to end soon.
const SLICE_MS: std::ops::RangeInclusive<u64> = 200..=3000;
/// A kill comes so long after the work began.
const KILL_MS: std::ops::Range<u64> = 0..400;
/// Of so many rounds, one is a kill, one an unbind, two are faults, and one has memory pressure.
const OF: u8 = 16;

#[derive(Debug)]
pub(crate) struct Rounds {
    rng: Rng,
    seed: u64,
    places: Vec<Place>,
    bound: Vec<Bound>,
    /// Who is attacked by a hostile user. Only a reset stops what such a user began; elsewhere each
    /// attack may cost memory until the next boot.
    hostile: Option<Subject>,
    simulated: bool,
}

/// Makes the row of a round, in its own process.
type Make = Box<dyn Fn(&Name) -> Row>;

pub(crate) struct Round {
    name: Name,
    work: Make,
    pub(crate) kind: Kind,
    pub(crate) pressure: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Jobs(Mode),
    Kill,
    Rebind,
    /// A fault that is provoked, and must be seen.
    Fault,
    Hostile,
}

impl Rounds {
    /// All that this machine has; an error where there is nothing.
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let (places, simulated) = plan::places(options);
        if places.is_empty() {
            let why = "no engine here can be given a memory: contigo-board-tests --list says why";
            return Err(why.into());
        }
        let mut bound: Vec<_> =
            places.iter().filter_map(|place| Bound::of(place.engine.device()?)).collect();
        bound.dedup();
        let hostile = places
            .iter()
            .find_map(|place| plan::subject(&place.engine))
            .filter(|subject| subject.reset().is_some());
        let (seed, rng) = (options.seed, Rng::with_seed(options.seed));
        Ok(Self { rng, seed, places, bound, hostile, simulated })
    }

    pub(crate) fn random(&mut self) -> &mut Rng {
        &mut self.rng
    }

    pub(crate) fn engines(&self) -> Vec<Worked> {
        let mut names: Vec<_> = self.places.iter().map(|place| place.engine.label()).collect();
        names.dedup();
        names.into_iter().map(|name| Worked { name, polled: 0, interrupt: 0, queued: 0 }).collect()
    }

    pub(crate) fn left_out(&self) -> Vec<String> {
        let mut left = Vec::new();
        if self.simulated {
            left.push("silicon: no engine was found, so that the simulated board is soaked".into());
        }
        if !self.places.iter().any(is_held) {
            left.push(
                "kills: nothing stops the engine of a killed program here; load the module contigo"
                    .into(),
            );
        }
        if self.bound.is_empty() {
            left.push("unbinds: no engine has a driver that this user may take away".into());
        }
        if self.hostile.is_none() {
            left.push(
                "hostile users: no device of the module contigo has a reset line of the lab's"
                    .into(),
            );
        }
        left
    }

    pub(crate) fn next(&mut self, left: Duration) -> Option<Round> {
        let place = *self.places.get(self.rng.usize(..self.places.len()))?;
        let seed = self.rng.u64(..);
        let mode = match self.rng.u8(..3) {
            0 => Mode::Polled,
            1 => Mode::Interrupt,
            _ => Mode::Queued,
        };
        // The queue moves more than edu takes at once in a while, and the model of the simulated
        // board counts no interrupts of a queue.
        let mode = if mode == Mode::Queued && place.engine.is_slow() { Mode::Polled } else { mode };
        let slice = Duration::from_millis(self.rng.u64(SLICE_MS)).min(left);
        let pressure = self.rng.u8(..OF) == 0;
        let work = Work { seed, mode, slice, slow: place.engine.is_slow() };
        let faults = |check: fn(&Place) -> Verdict, place: Place| -> (Kind, Make) {
            (Kind::Fault, Box::new(move |name| Row::of(name, check(&place).map(Into::into))))
        };
        let (kind, work): (_, Make) = match self.rng.u8(..OF) {
            0 if is_held(&place) => {
                let mut rng = Rng::with_seed(seed);
                let mode = if rng.bool() { Mode::Interrupt } else { Mode::Polled };
                let after = Duration::from_millis(rng.u64(KILL_MS));
                let work = Work { mode, ..work };
                // The one that is killed is a child of the round's.
                (Kind::Kill, Box::new(move |name| Row::of(name, work::kill(&place, work, after))))
            }
            1 if !self.bound.is_empty() => {
                let bound = self.bound.get(self.rng.usize(..self.bound.len()))?.clone();
                (Kind::Rebind, Box::new(move |name| Row::of(name, bound.rebind())))
            }
            2 => faults(engine::timeout, place),
            3 if place.engine.kind() == Some(DmaKind::Pl330) => faults(engine::pl330_fault, place),
            4 if self.hostile.is_some() => {
                let subject = self.hostile.clone()?;
                let hostile = move || checks::hostile(&subject, seed, slice);
                (Kind::Hostile, Box::new(move |name| Row::of(name, hostile().map(Into::into))))
            }
            3 => faults(engine::unreachable, place.out_of_reach()),
            _ => (Kind::Jobs(mode), Box::new(move |name| work::row(name, &place, work))),
        };
        let what = match kind {
            Kind::Jobs(_) => "jobs",
            Kind::Kill => "kill",
            Kind::Rebind => "unbind",
            Kind::Hostile => "hostile user",
            Kind::Fault => "fault",
        };
        let name = Name::jobs(&place.memory.label(), &place.engine.label(), mode.name());
        let name = Name { name: format!("{what} {}", name.name), ..name };
        Some(Round { name, work, kind, pressure })
    }

    /// Gives back what has no driver; the answer is what is not as it was found.
    pub(crate) fn as_found(&self) -> Option<String> {
        let wrong = self.bound.iter().filter_map(|bound| match bound.restore().err()? {
            Wrong::Failed(why) | Wrong::Skipped(why) => Some(why),
        });
        // A last job on each shows that it is stopped, and works.
        let worked = self.places.iter().filter_map(|place| {
            let name = Name::jobs(&place.memory.label(), &place.engine.label(), "polled");
            let (seed, slow) = (self.seed, place.engine.is_slow());
            let work = Work { seed, mode: Mode::Polled, slice: LAST, slow };
            let row =
                child::row(&name, None, super::ROUND_LIMIT_S, |_| work::row(&name, place, work));
            (row.status == Status::Failed)
                .then(|| format!("at the end, {}: {}", name.name, row.reason))
        });
        let wrong: Vec<_> = wrong.chain(worked).collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

const LAST: Duration = Duration::from_millis(50);

/// Is the memory of a killed program held until its engine has stopped: by the module, or by an
/// IOMMU? Elsewhere the engine may write into another program's memory.
fn is_held(place: &Place) -> bool {
    place.memory.is_imported() || matches!(place.engine, Engine::EduVfio(_))
}

impl Round {
    pub(crate) fn run(&self, limit_s: u32) -> Row {
        child::row(&self.name, None, limit_s, |_| (self.work)(&self.name))
    }
}

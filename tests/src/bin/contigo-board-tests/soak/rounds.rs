//! Which round comes next: the seed decides all of them.

use super::{
    Worked, kill,
    rebind::Bound,
    work::{self, Mode, Work},
};
use crate::{
    checks::{Check, Subject},
    child,
    machine::Engine,
    options::Options,
    plan,
    row::{Name, Row},
    setup::Place,
};
use contigo_boards::DmaKind;
use fastrand::Rng;
use std::time::Duration;

/// Jobs of one round, in milliseconds: long enough for thousands, short enough to end soon.
const SLICE_MS: std::ops::RangeInclusive<u64> = 200..=3000;
/// A kill comes so long after the work began.
const KILL_MS: std::ops::Range<u64> = 0..400;
/// Of so many rounds, one is a kill, one an unbind, two are faults, and one has memory pressure.
const OF: u8 = 16;

/// All that can come.
#[derive(Debug)]
pub(super) struct Rounds {
    rng: Rng,
    seed: u64,
    places: Vec<Place>,
    bound: Vec<Bound>,
    /// Who is attacked by a hostile user. Only a reset stops what such a user began; elsewhere each
    /// attack may cost memory until the next boot.
    hostile: Option<Subject>,
    simulated: bool,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Round {
    name: Name,
    seed: u64,
    pub(super) kind: Kind,
    pub(super) pressure: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Jobs {
        place: Place,
        mode: Mode,
        slice: Duration,
    },
    Kill(Place),
    Rebind(Bound),
    /// A fault that is provoked, and must be seen.
    Check(Check),
}

impl Rounds {
    /// All that this machine has; an error where there is nothing.
    pub(super) fn new(options: &Options) -> Result<Self, String> {
        let (places, simulated) = plan::places(options);
        if places.is_empty() {
            return Err(
                "no engine here can be given a memory: contigo-board-tests --list says why".into(),
            );
        }
        let mut bound: Vec<_> =
            places.iter().filter_map(|place| Bound::of(place.engine.device()?)).collect();
        bound.dedup();
        let hostile = places
            .iter()
            .find_map(|place| plan::subject(&place.engine))
            .filter(|subject| subject.reset().is_some());
        Ok(Self {
            rng: Rng::with_seed(options.seed),
            seed: options.seed,
            places,
            bound,
            hostile,
            simulated,
        })
    }

    pub(super) fn random(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Each engine, with nothing done.
    pub(super) fn engines(&self) -> Vec<Worked> {
        let mut names: Vec<_> = self.places.iter().map(|place| place.engine.label()).collect();
        names.dedup();
        names.into_iter().map(|name| Worked { name, polled: 0, interrupt: 0, queued: 0 }).collect()
    }

    /// The kinds that will not come here, and why.
    pub(super) fn left_out(&self) -> Vec<String> {
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

    pub(super) fn next(&mut self, left: Duration) -> Option<Round> {
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
        let kind = match self.rng.u8(..OF) {
            0 if is_held(&place) => Kind::Kill(place),
            1 if !self.bound.is_empty() => {
                Kind::Rebind(self.bound.get(self.rng.usize(..self.bound.len()))?.clone())
            }
            2 => Kind::Check(Check::Timeout(place)),
            3 if place.engine.kind() == Some(DmaKind::Pl330) => {
                Kind::Check(Check::Pl330Fault(place))
            }
            4 if self.hostile.is_some() => {
                Kind::Check(Check::Hostile { subject: self.hostile.clone()?, seed, time: slice })
            }
            3 => Kind::Check(Check::Unreachable(plan::out_of_reach(place))),
            _ => Kind::Jobs { place, mode, slice },
        };
        let what = match &kind {
            Kind::Jobs { .. } => "jobs",
            Kind::Kill(_) => "kill",
            Kind::Rebind(_) => "unbind",
            Kind::Check(Check::Hostile { .. }) => "hostile user",
            Kind::Check(_) => "fault",
        };
        let name = Name::jobs(&place.memory.label(), &place.engine.label(), mode.name());
        Some(Round {
            name: Name { name: format!("{what} {}", name.name), ..name },
            seed,
            kind,
            pressure,
        })
    }

    /// Gives back what has no driver; the answer is what is not as it was found.
    pub(super) fn as_found(&self) -> Option<String> {
        let wrong: Vec<_> = self.bound.iter().filter_map(|bound| bound.restore().err()).collect();
        // A last job on each shows that it is stopped, and works.
        let worked = self.places.iter().filter_map(|place| {
            let name = Name::jobs(&place.memory.label(), &place.engine.label(), "polled");
            let work = Work {
                seed: self.seed,
                mode: Mode::Polled,
                slice: Duration::ZERO,
                slow: place.engine.is_slow(),
            };
            let row = child::row(&name, None, super::ROUND_LIMIT_S, |_| {
                work::row(&name, place, Work { slice: LAST, ..work })
            });
            (row.status == crate::row::Status::Failed)
                .then(|| format!("at the end, {}: {}", name.name, row.reason))
        });
        let wrong: Vec<_> = wrong.into_iter().chain(worked).collect();
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
    pub(super) fn run(&self, limit_s: u32) -> Row {
        let Self { name, seed, .. } = self;
        match &self.kind {
            Kind::Jobs { place, mode, slice } => {
                let work =
                    Work { seed: *seed, mode: *mode, slice: *slice, slow: place.engine.is_slow() };
                child::row(name, None, limit_s, |_| work::row(name, place, work))
            }
            // The one that is killed is a child of the round's.
            Kind::Kill(place) => child::row(name, None, limit_s, |_| {
                let mut rng = Rng::with_seed(*seed);
                kill::row(name, place, *seed, rng.bool(), Duration::from_millis(rng.u64(KILL_MS)))
            }),
            Kind::Rebind(bound) => child::row(name, None, limit_s, |_| bound.row(name)),
            Kind::Check(check) => child::row(name, None, limit_s, |_| check.row(name)),
        }
    }
}

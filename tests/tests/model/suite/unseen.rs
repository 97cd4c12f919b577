#![allow(unsafe_code, reason = "a model is a promise, and so is a driver over it")]
//! A run that saw nothing is no pass: a model that asks for no fault, or needs no time, fails the
//! suite by name, and so does a subject that excuses what its core does.

use contigo::{
    CpuBuf, DevAddr, Driver, Error, Result,
    drivers::zdma::Zdma,
    sim::{BusError, Faults, Model, SimBus, SimMemory, SimWindow, zdma::ZdmaModel},
};
use contigo_testkit::{
    conformance::Failure,
    suite::{Kind, Sight, Subject, faults},
};

/// ZDMA's model, which hears of no faults. `AT_ONCE`: nor does it need time.
#[derive(Default)]
struct Deaf<const AT_ONCE: bool>(ZdmaModel);

/// The board's memory, with a clock of its own where a job ends at once.
struct Through<'a, 'b>(&'a mut SimBus<'b>, u64);

impl SimMemory for Through<'_, '_> {
    fn now_ns(&self) -> u64 {
        self.0.now_ns() + self.1
    }
    fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        self.0.read(addr, to)
    }
    fn write(&mut self, addr: DevAddr, from: &[u8]) -> Result<(), BusError> {
        self.0.write(addr, from)
    }
}

impl<const AT_ONCE: bool> Deaf<AT_ONCE> {
    fn with<R>(
        &mut self,
        bus: &mut SimBus<'_>,
        later_ns: u64,
        act: impl FnOnce(&mut ZdmaModel, &mut SimBus<'_>) -> R,
    ) -> R {
        let mut rng = bus.rng().clone();
        act(&mut self.0, &mut SimBus::over(&mut Through(bus, later_ns), &mut rng, &Faults::NONE))
    }
}

// SAFETY: it does what the model does.
unsafe impl<const AT_ONCE: bool> Model for Deaf<AT_ONCE> {
    const WINDOW_BYTES: usize = ZdmaModel::WINDOW_BYTES;
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.with(bus, 0, |model, bus| model.advance(bus));
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.with(bus, 0, |model, bus| model.read32(offset, bus))
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.with(bus, 0, |model, bus| model.write32(offset, value, bus));
        if AT_ONCE {
            self.with(bus, 1_000_000_000, |model, bus| model.advance(bus));
        }
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.0.irq_at_ns()
    }
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// What it says that the core never does.
struct Says<const AT_ONCE: bool>(&'static [Sight]);

impl<const AT_ONCE: bool> Subject for Says<AT_ONCE> {
    type Model = Deaf<AT_ONCE>;
    fn name(&self) -> &'static str {
        "deaf"
    }
    fn kind(&self) -> Kind {
        Kind::Copy
    }
    fn model(&self) -> Self::Model {
        Deaf::default()
    }
    fn never(&self) -> &'static [Sight] {
        self.0
    }
    fn may_fail(&self, _: &Error) -> bool {
        false
    }
    fn open<R>(
        &self,
        window: SimWindow<Self::Model>,
        _: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R> {
        // SAFETY: the window is ZDMA's, and the only one.
        Ok(act(&mut unsafe { Zdma::simple(window) }?))
    }
}

/// Of so many seeds the suite says what they did not show.
const SEEDS: u64 = 64;

#[track_caller]
fn wrong(subject: &impl Subject, words: &str) {
    let Err(Failure::Wrong(what)) = faults(subject, 0..SEEDS) else { panic!("it passed") };
    assert!(what.contains(words), "{what}");
}

const FAULTS: &[Sight] =
    &[Sight::LateIrq, Sight::LostIrq, Sight::Error, Sight::Short, Sight::Hang, Sight::Stuck];

#[test]
fn a_model_without_faults_fails_unless_its_subject_says_so() {
    wrong(
        &Says::<false>(&[]),
        "64 seeds never saw [LateIrq, LostIrq, Error, Short, Hang, Stuck], so nothing was checked there",
    );
    wrong(&Says::<false>(&[]), "Error: ask bus.strikes(bus.faults().error), and fail the job");
    let tally = faults(&Says::<false>(FAULTS), 0..SEEDS).unwrap();
    assert!(tally.completed > 0 && tally.stopped > 0, "{tally:?}");
    assert!(faults(&Says::<false>(&[]), 0..8).is_ok(), "too few to say");
}

#[test]
fn a_model_that_needs_no_time_fails_unless_its_subject_says_so() {
    wrong(
        &Says::<true>(FAULTS),
        "64 seeds never saw [Stopped], so nothing was checked there. In the model, or in Subject::never: Stopped: let a job take time",
    );
    let all = &[
        Sight::LateIrq,
        Sight::LostIrq,
        Sight::Error,
        Sight::Short,
        Sight::Hang,
        Sight::Stuck,
        Sight::Stopped,
    ];
    assert!(faults(&Says::<true>(all), 0..SEEDS).is_ok());
}

#[test]
fn what_is_excused_and_happens_all_the_same_is_a_failure() {
    wrong(&Says::<false>(&Sight::ALL), "deaf: Subject::never has [Stopped], which happened");
}

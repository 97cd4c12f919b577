//! Checks: what must be refused, decoded, stopped or given back. Each says what it saw.

mod apart;
mod as_user;
mod copies;
mod fuzz;
mod guard;
mod hostile;
mod killed;
mod memory;
mod pinned;
mod pl330;
mod reach;
mod stopped;
mod timeout;
mod unbound;
mod unloaded;

pub(crate) use guard::{KEPT, LOCKED_DOWN, Subject, TAKEN, TESTS};
pub(crate) use killed::killed_while;

use crate::{
    gemm8,
    jobs::refused,
    row::{Name, Row, Status},
    setup::{Bench, Place},
    vfio,
};
use contigo::{
    Error, Result,
    names::{DeviceName, MemoryName},
};

use std::time::Duration;

/// The result of a check: `Ok` tells, in words, what it saw.
pub(crate) type Verdict = std::result::Result<String, Wrong>;

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is not possible here.
    Skipped(String),
    /// It does not hold.
    Failed(String),
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// An address that the engine cannot reach is refused before the doorbell.
    Unreachable(Place),
    /// A job that takes too long is stopped, and nothing is written afterwards.
    Timeout(Place),
    /// A fault comes back decoded, and the next job works.
    Pl330Fault(Place),
    /// A program that never ends is killed, and the next job works.
    Pl330Killed(Place),
    /// The job that a port must refuse because its caches cannot be maintained here.
    RealPort(Place),
    /// All of a memory is taken, refused, and given back.
    Exhausted(MemoryName),
    /// A dma-heap without addresses is refused, and nothing is lost.
    HeapRefused(String),
    /// An ordinary user is not shown physical addresses.
    Hidden(MemoryName),
    /// A pinned huge page stays where it is, and one that is not pinned is seen to move.
    Pinned,
    /// A second driver of the same UIO device is refused.
    UioInUse(DeviceName),
    /// A process is killed while the engine writes into its memory, which another gets at once.
    Killed(Place),
    /// A process is killed while its PL330 executes a program that never ends.
    Stopped(Place),
    /// A hostile user of a port of the module contigo, with a heap for dma-bufs.
    Fuzzed(Subject),
    /// The same for some time, with root beside it who takes the device away; for a soak.
    Hostile { subject: Subject, seed: u64, time: Duration },
    /// The device is taken from the module under its user, and given back.
    Unbound { guard: String, heap: String },
    /// The module contigo is taken out of the kernel, and put back.
    Unloaded { guard: String, heap: String },
    /// One of the checks of a guard by its raw calls, by its number.
    Guard(usize, Subject),
    /// One of the tests of VFIO with edu, by its number, on the PCI function with this address.
    Vfio(usize, String),
    /// The same with LitePCIe's card.
    Litepcie(usize, String),
    /// The same with gemm8's Verilog.
    Gemm8(usize, String),
    /// One of the tests of gemm8 behind the gate, by its number, with the device of this name.
    Gated(&'static [gemm8::Test], usize, DeviceName),
}

impl Check {
    /// Can an ordinary user do it, too, where a guard may be opened?
    pub(crate) fn is_for_user(&self) -> bool {
        matches!(self, Self::Guard(number, _) if TESTS.get(*number).is_some_and(|test| test.for_user))
    }

    /// Does it.
    pub(crate) fn row(&self, name: &Name) -> Row {
        let begun = std::time::Instant::now();
        let row = match self {
            Self::Unreachable(place) => at(name, place, reach::Unreachable),
            Self::Timeout(place) => {
                at(name, place, timeout::Timeouts { slow: place.engine.is_slow() })
            }
            Self::Pl330Fault(place) => at(name, place, pl330::Trial::Fault),
            Self::Pl330Killed(place) => at(name, place, pl330::Trial::Killed),
            Self::RealPort(place) => real_port(name, place),
            Self::Exhausted(memory) => verdict(name, memory::all_of(memory)),
            Self::HeapRefused(heap) => verdict(name, memory::heap_refused(heap)),
            Self::Hidden(memory) => verdict(name, memory::hidden(memory)),
            Self::Pinned => verdict(name, pinned::pinned()),
            Self::UioInUse(device) => verdict(name, reach::uio_in_use(device)),
            Self::Killed(place) => verdict(name, killed::killed(place)),
            Self::Stopped(place) => verdict(name, stopped::stopped(place)),
            Self::Fuzzed(subject) => {
                verdict(name, guard::lazily(subject, || fuzz::fuzzed(subject)))
            }
            Self::Hostile { subject, seed, time } => {
                verdict(name, hostile::hostile(subject, *seed, *time))
            }
            Self::Unbound { guard, heap } => verdict(name, unbound::unbound(guard, heap)),
            Self::Unloaded { guard, heap } => verdict(name, unloaded::unloaded(guard, heap)),
            Self::Guard(number, subject) => verdict(
                name,
                guard::TESTS.get(*number).map_or_else(no_such, |test| (test.run)(subject)),
            ),
            Self::Vfio(number, address) => vfio::row(name, vfio::TESTS, *number, address),
            Self::Litepcie(number, address) => {
                vfio::row(name, vfio::litepcie::TESTS, *number, address)
            }
            Self::Gemm8(number, address) => vfio::row(name, vfio::gemm8::TESTS, *number, address),
            Self::Gated(tests, number, device) => match tests.get(*number) {
                Some((_, test)) => vfio::seen(name, test(device)),
                None => verdict(name, no_such()),
            },
        };
        Row { seconds: begun.elapsed().as_secs_f64(), ..row }
    }
}

fn no_such() -> Verdict {
    Err(Wrong::Failed("there is no such check".into()))
}

/// A check on one memory with one engine.
fn at(name: &Name, place: &Place, bench: impl Bench<Out = Verdict>) -> Row {
    match place.run(false, bench) {
        Ok(seen) => verdict(name, seen),
        Err(error) => refused(name, error),
    }
}

fn verdict(name: &Name, seen: Verdict) -> Row {
    match seen {
        Ok(seen) => Row::new(name, Status::Passed, seen),
        Err(Wrong::Skipped(why)) => Row::new(name, Status::Skipped, why),
        Err(Wrong::Failed(why)) => Row::new(name, Status::Failed, why),
    }
}

/// On the real port, with the driver's own memory already: `CannotSync`, and no other error.
fn real_port(name: &Name, place: &Place) -> Row {
    match place.run(false, copies::OneCopy) {
        Err(error @ Error::CannotSync { .. }) => verdict(name, Ok(error.to_string())),
        Ok(Err(Wrong::Failed(why))) => verdict(name, Err(Wrong::Failed(why))),
        Ok(other) => verdict(name, Err(Wrong::Failed(format!("not refused: {other:?}")))),
        Err(error) => verdict(name, Err(Wrong::Failed(format!("refused, but as: {error}")))),
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Ends a check unless what must hold holds.
fn ensure(holds: bool, otherwise: impl Into<String>) -> std::result::Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong::Failed(otherwise.into())) }
}

/// So that a check can say `?` of what the runtime returns.
fn ok<T, E: Into<Error>>(result: Result<T, E>) -> std::result::Result<T, Wrong> {
    result.map_err(|error| Wrong::from(error.into()))
}

/// Each check must be able to fail: here it is given what it must not accept.
#[cfg(test)]
#[allow(clippy::panic, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::{
        machine::{Engine, Memory},
        setup::{Reach, VIRT_PCIE},
    };
    use contigo_boards::DmaKind;

    fn named(text: &str) -> Memory {
        Memory::named(text).unwrap_or_else(|| panic!("{text} is no name"))
    }

    fn sim(kind: DmaKind, reach: Reach) -> Place {
        Place {
            memory: named("sim"),
            engine: Engine::Sim(kind),
            port: VIRT_PCIE,
            reach,
            armed: true,
        }
    }

    fn status(check: &Check) -> (Status, String) {
        let row = check.row(&Name::check("x", "", ""));
        (row.status, row.reason)
    }

    #[test]
    fn what_can_be_reached_fails_the_check_of_reach() {
        for kind in [DmaKind::Pl330, DmaKind::Zdma] {
            let (passed, why) = status(&Check::Unreachable(sim(kind, Reach::DriverOnly)));
            assert_eq!(passed, Status::Passed, "{why}");
            let (failed, why) = status(&Check::Unreachable(sim(kind, Reach::All)));
            assert_eq!((failed, why.as_str()), (Status::Failed, "the job was started"));
        }
    }

    #[test]
    fn a_port_that_takes_the_memory_fails_the_check_of_the_real_port() {
        let (failed, why) = status(&Check::RealPort(sim(DmaKind::Zdma, Reach::All)));
        assert!(failed == Status::Failed && why.starts_with("not refused"), "{why}");
        let (failed, why) = status(&Check::RealPort(sim(DmaKind::Zdma, Reach::DriverOnly)));
        assert!(
            failed == Status::Failed && !why.contains("caches"),
            "another refusal is not the one: {why}"
        );
        let nowhere =
            Place { memory: named("u-dma-buf:no-such-device"), ..sim(DmaKind::Zdma, Reach::All) };
        let (failed, why) = status(&Check::RealPort(nowhere));
        assert!(failed == Status::Failed && why.starts_with("refused, but as: "), "{why}");
    }

    #[test]
    fn a_simulated_engine_is_stopped_and_decoded() {
        for check in [
            Check::Timeout(sim(DmaKind::Zdma, Reach::All)),
            Check::Timeout(sim(DmaKind::Pl330, Reach::All)),
            Check::Pl330Fault(sim(DmaKind::Pl330, Reach::All)),
            Check::Pl330Killed(sim(DmaKind::Pl330, Reach::All)),
        ] {
            let (passed, why) = status(&check);
            assert_eq!(passed, Status::Passed, "{check:?}: {why}");
        }
        let (failed, why) = status(&Check::Pl330Fault(sim(DmaKind::Zdma, Reach::All)));
        assert_eq!((failed, why.as_str()), (Status::Failed, "this engine is no PL330"));
    }
}

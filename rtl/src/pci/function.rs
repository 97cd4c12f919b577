//! One function: a model, the memory that it reaches, its interrupt, and its time.

use super::PciError;
use super::clock::Clock;
use super::config::{Config, Written};
use super::description::{Description, Fault, Faults};
use super::guest::{Counts, Guest};
use super::msi::Msi;
use contigo::sim::{self, Model, SimBus};
use fastrand::Rng;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Between two looks at a model that has something to do, at least, and at one that has nothing: a
/// look takes a microsecond or so.
const LOOK_NS: (u64, u64) = (50_000, 2_000_000);
/// A model over the guest's memory does as its registers say, and nothing goes wrong.
const FAULTS: sim::Faults = sim::Faults::NONE;

/// A model with what is around it.
pub(super) struct State<M> {
    model: M,
    window_bytes: usize,
    faults: Faults,
    clock: Clock,
    rng: Rng,
    pub(super) guest: Guest,
    pub(super) config: Config,
    pub(super) msi: Msi,
    ended: bool,
}

/// The same for two threads: the one that answers QEMU, and the one that lets time pass.
pub(super) struct Function<M> {
    state: Mutex<State<M>>,
    /// Taken before `state`: so the thread that lets time pass cannot take it again and again while
    /// an access waits.
    turn: Mutex<()>,
    wake: Condvar,
    fatal: fn(&PciError) -> !,
}

impl<M: Model> Function<M> {
    pub(super) fn new(model: M, about: &Description, fatal: fn(&PciError) -> !) -> Self {
        let window_bytes = model.window_bytes();
        let (clock, rng) = (Clock::new(about.slice_ns), Rng::with_seed(1));
        let (guest, config, msi) =
            (Guest::with(about.faults), Config::new(about), Msi::new(about.vectors));
        let state = State {
            model,
            window_bytes,
            faults: about.faults,
            clock,
            rng,
            guest,
            config,
            msi,
            ended: false,
        };
        Self { state: Mutex::new(state), turn: Mutex::new(()), wake: Condvar::new(), fatal }
    }

    /// Does something with it. A state that must not go on ends the program here.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State<M>) -> T) -> T {
        let mut state = self.state();
        let done = work(&mut state);
        self.check(&state);
        self.wake.notify_one();
        done
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.lock().unwrap_or_else(|_| (self.fatal)(&PciError::Panicked))
    }

    /// The whole work of one of the two threads. A panic in it ends the program: the other thread
    /// would wait for ever, or go on with a broken model.
    pub(super) fn or_fatal<T>(&self, work: impl FnOnce() -> T) -> T {
        panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
            self.wake.notify_one();
            (self.fatal)(&PciError::Panicked)
        })
    }

    fn check(&self, state: &State<M>) {
        if let Some(wrong) = &state.guest.wrong {
            (self.fatal)(wrong);
        }
    }

    /// Lets the model's time pass, until `end`.
    pub(super) fn live(&self) {
        loop {
            let mut state = self.state();
            if state.ended {
                return;
            }
            let more = state.step();
            self.check(&state);
            if !more {
                let until = state.look_in();
                drop(self.wake.wait_timeout(state, until));
            }
        }
    }

    /// Ends `live`.
    pub(super) fn end(&self) -> Counts {
        self.with(|state| {
            state.ended = true;
            Counts { interrupts: state.msi.sent(), ..state.guest.counts }
        })
    }

    /// The model, after `live`.
    pub(super) fn into_model(self) -> M {
        let fatal = self.fatal;
        self.state.into_inner().unwrap_or_else(|_| fatal(&PciError::Panicked)).model
    }
}

impl<M: Model> State<M> {
    /// A slice of time passes. True: there is more.
    fn step(&mut self) -> bool {
        let more = self.clock.step();
        self.on_bus(|model, bus| model.advance(bus));
        more
    }

    /// Does something with the model, and tells the guest of its interrupt.
    fn on_bus<T>(&mut self, work: impl FnOnce(&mut M, &mut SimBus<'_>) -> T) -> T {
        self.guest.now_ns = self.clock.now_ns();
        self.guest.is_bus_master = self.config.is_bus_master() || self.faults.has(Fault::BusMaster);
        let done =
            work(&mut self.model, &mut SimBus::over(&mut self.guest, &mut self.rng, &FAULTS));
        self.msi.line(self.model.irq_at_ns().is_some_and(|at_ns| at_ns <= self.clock.now_ns()));
        done
    }

    /// How long until the model has something to do.
    fn look_in(&self) -> Duration {
        let (shortest, longest) = LOOK_NS;
        let due_ns = self
            .model
            .irq_at_ns()
            .and_then(|at_ns| at_ns.checked_sub(self.clock.now_ns()))
            .filter(|ns| *ns > 0);
        Duration::from_nanos(due_ns.unwrap_or(longest).clamp(shortest, longest))
    }

    /// A word of BAR 0; all ones where no register is, as on a bus where no device answers.
    fn read32(&mut self, at: usize) -> u32 {
        if at >= self.window_bytes {
            return u32::MAX;
        }
        self.guest.counts.registers += 1;
        self.on_bus(|model, bus| model.read32(at, bus))
    }

    /// Reads registers: whole words, or a part of one.
    pub(super) fn read(&mut self, at: usize, to: &mut [u8]) {
        self.step();
        let mut done = 0;
        while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let (word, skip) = ((at + done) & !3, (at + done) & 3);
            let bytes = self.read32(word).to_le_bytes();
            let many = rest.len().min(4 - skip);
            for (to, from) in rest.iter_mut().zip(bytes.iter().skip(skip)) {
                *to = *from;
            }
            done += many;
        }
    }

    /// Writes registers, by whole words. No model takes a part of one, and here it is lost.
    pub(super) fn write(&mut self, at: usize, from: &[u8]) {
        self.step();
        let (words, _) = if at.is_multiple_of(4) { from.as_chunks::<4>() } else { (&[][..], from) };
        for (at, word) in (at..).step_by(4).zip(words) {
            if at < self.window_bytes {
                self.guest.counts.registers += 1;
                self.on_bus(|model, bus| model.write32(at, u32::from_le_bytes(*word), bus));
            }
        }
    }

    /// Writes configuration space.
    pub(super) fn configure(&mut self, at: usize, from: &[u8]) {
        // Work that is due before a bit changes is done before.
        self.step();
        if self.config.write(at, from) == Written::Reset {
            self.reset();
        }
    }

    /// The function as after power-on.
    pub(super) fn reset(&mut self) {
        if !self.faults.has(Fault::Reset) {
            self.model.reset();
        }
        self.config.reset();
        self.msi.line(false);
        self.guest.counts.resets += 1;
    }
}

#[cfg(test)]
#[allow(
    unsafe_code,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a model that panics, which reaches no memory"
)]
mod tests {
    use super::super::{Obeys, Vectors};
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    struct Broken;

    // SAFETY: it touches no memory.
    unsafe impl Model for Broken {
        const WINDOW_BYTES: usize = 4096;
        fn advance(&mut self, _: &mut SimBus<'_>) {}
        fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
            panic!("the model is broken")
        }
        fn write32(&mut self, _: usize, _: u32, _: &mut SimBus<'_>) {}
        fn irq_at_ns(&self) -> Option<u64> {
            None
        }
        fn reset(&mut self) {}
    }

    /// It ends one thread here, where the real one ends the program.
    #[test]
    fn a_model_that_panics_is_fatal_in_both_threads() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let fatal: fn(&PciError) -> ! = |error| {
            assert!(matches!(error, PciError::Panicked));
            TOLD.fetch_add(1, Ordering::SeqCst);
            panic!("{error}")
        };
        let about = Description {
            vendor: 1,
            device: 1,
            class: 0,
            vectors: Vectors::Msi,
            obeys: Obeys::Pci,
            slice_ns: 1_000,
            faults: Faults::NONE,
        };
        let function = Function::new(Broken, &about, fatal);
        thread::scope(|scope| {
            let lives = scope.spawn(|| function.or_fatal(|| function.live()));
            let serves = scope
                .spawn(|| function.or_fatal(|| function.with(|state| state.read(0, &mut [0; 4]))));
            assert!(serves.join().is_err() && lives.join().is_err());
        });
        // `live` reports the poisoned lock, and `or_fatal` the panic of that.
        assert_eq!(TOLD.load(Ordering::SeqCst), 3);
    }
}

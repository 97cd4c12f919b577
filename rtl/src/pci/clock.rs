//! A model's clock: real time, in slices.

use std::time::{Duration, Instant};

/// So far may a model be behind: what is more is lost, and its time is slower than real time. A
/// model of gates takes far longer than the gates do.
const BEHIND_MAX_NS: u64 = 10_000_000;

/// Time as a model has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begun: Instant,
    /// Real time that was lost.
    lost_ns: u64,
    now_ns: u64,
    slice_ns: u64,
}

impl Clock {
    pub(super) fn new(slice_ns: u64) -> Self {
        Self { begun: Instant::now(), lost_ns: 0, now_ns: 0, slice_ns: slice_ns.max(1) }
    }

    pub(super) const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass until now, a slice at most. True: there is more.
    pub(super) fn step(&mut self) -> bool {
        self.step_to(self.begun.elapsed())
    }

    fn step_to(&mut self, real: Duration) -> bool {
        let real_ns =
            u64::try_from(real.as_nanos()).unwrap_or(u64::MAX).saturating_sub(self.lost_ns);
        let behind_ns = real_ns.saturating_sub(self.now_ns);
        self.lost_ns += behind_ns.saturating_sub(BEHIND_MAX_NS);
        let behind_ns = behind_ns.min(BEHIND_MAX_NS);
        self.now_ns += behind_ns.min(self.slice_ns);
        behind_ns > self.slice_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_in_slices_and_a_debt_has_a_limit() {
        let mut clock = Clock::new(1_000);
        let at = Duration::from_nanos;
        assert!(!clock.step_to(at(400)) && clock.now_ns() == 400);
        assert!(clock.step_to(at(2_000)) && clock.now_ns() == 1_400);
        assert!(!clock.step_to(at(2_000)) && clock.now_ns() == 2_000);
        // A second without a step.
        let late = Duration::from_secs(1);
        let mut steps = 1;
        while clock.step_to(late) {
            steps += 1;
        }
        assert_eq!((steps, clock.now_ns()), (BEHIND_MAX_NS / 1_000, 2_000 + BEHIND_MAX_NS));
    }
}

//! A core's interrupt line, as the board's faults let it through.

use contigo::sim::SimBus;

/// An interrupt that the board makes late comes so many times later than the core's job took, at
/// most.
const LATE: u64 = 10;

/// A core's interrupt line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum IrqLine {
    #[default]
    Low,
    /// It is high, and is seen from this time on; `None`: not before it has been low.
    High(Option<u64>),
}

impl IrqLine {
    /// The core's own line at `now_ns`. It has worked since `began_ns`.
    pub(crate) fn see(&mut self, high: bool, now_ns: u64, began_ns: u64, bus: &mut SimBus<'_>) {
        if !high {
            *self = Self::Low;
        } else if *self == Self::Low {
            let faults = *bus.faults();
            let lost = bus.strikes(faults.lost_irq);
            let longest_ns = if bus.strikes(faults.late_irq) {
                now_ns.saturating_sub(began_ns).saturating_mul(LATE)
            } else {
                0
            };
            *self = Self::High((!lost).then(|| now_ns + bus.rng().u64(..=longest_ns)));
        }
    }

    /// When it is seen, if it is high.
    pub(crate) const fn seen_from_ns(self) -> Option<u64> {
        match self {
            Self::Low => None,
            Self::High(seen_ns) => seen_ns,
        }
    }
}

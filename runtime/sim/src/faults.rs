//! What goes wrong on the simulated board, and how often.

/// How often each fault strikes, in jobs out of 1,000. The board's seed decides which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The interrupt comes up to ten times as late as the result.
    pub late_irq: u16,
    /// The interrupt never comes; the status register is right.
    pub lost_irq: u16,
    /// The device ends with an error bit.
    pub error: u16,
    /// The device reports that it is done, but wrote only a part.
    pub short: u16,
    /// The device hangs until the driver stops it.
    pub hang: u16,
    /// The device hangs and does not stop before [`SimDevice::reset`](super::SimDevice::reset).
    pub stuck: u16,
}

/// How often each fault struck: [`SimCounts::struck`](super::SimCounts::struck).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Struck {
    /// As [`Faults::late_irq`].
    pub late_irq: u64,
    /// As [`Faults::lost_irq`].
    pub lost_irq: u64,
    /// As [`Faults::error`].
    pub error: u64,
    /// As [`Faults::short`].
    pub short: u64,
    /// As [`Faults::hang`].
    pub hang: u64,
    /// As [`Faults::stuck`].
    pub stuck: u64,
}

impl Struck {
    pub(super) const UNKNOWN: Self = Self {
        late_irq: u64::MAX,
        lost_irq: u64::MAX,
        error: u64::MAX,
        short: u64::MAX,
        hang: u64::MAX,
        stuck: u64::MAX,
    };

    /// Counts a strike for every fault whose rate is `per_mille`.
    pub(super) fn by(&mut self, per_mille: u16, faults: &Faults) {
        let Faults { late_irq, lost_irq, error, short, hang, stuck } = *faults;
        let kinds = [
            (late_irq, &mut self.late_irq),
            (lost_irq, &mut self.lost_irq),
            (error, &mut self.error),
            (short, &mut self.short),
            (hang, &mut self.hang),
            (stuck, &mut self.stuck),
        ];
        for (_, count) in kinds.into_iter().filter(|(kind, _)| *kind == per_mille) {
            *count += 1;
        }
    }
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self { late_irq: 0, lost_irq: 0, error: 0, short: 0, hang: 0, stuck: 0 };

    /// Everything that a job can recover from goes wrong, each in every tenth job or so.
    pub const OFTEN: Self =
        Self { late_irq: 100, lost_irq: 100, error: 100, short: 100, hang: 100, stuck: 0 };
}

/// How a job of a model will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Good,
    /// With these error bits.
    Error(u32),
    /// The device says it is done after so many bytes.
    Short(u32),
    /// Never; a stop or a reset ends it.
    Hang,
    /// Never. It writes [`GARBAGE`] to its destination meanwhile, and only the reset line stops it.
    Stuck,
}

/// The byte that a stuck device keeps writing.
pub(crate) const GARBAGE: u8 = 0xEE;

//! How long to wait: always bounded.

/// A limit in microseconds, at most about 71 minutes. There is no "for ever": a device that hangs
/// must not hang its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timeout(u32);

impl Timeout {
    /// One look, no waiting.
    pub const NOW: Self = Self(0);

    /// So many microseconds.
    #[must_use]
    pub const fn us(timeout_us: u32) -> Self {
        Self(timeout_us)
    }

    /// So many milliseconds; more than `u32::MAX` microseconds become that.
    #[must_use]
    pub const fn ms(timeout_ms: u32) -> Self {
        Self(timeout_ms.saturating_mul(1_000))
    }

    /// The limit in microseconds.
    #[must_use]
    pub const fn as_us(self) -> u32 {
        self.0
    }
}

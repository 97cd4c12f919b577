//! The length of a pulse.

use super::ResetError;

/// The length of a reset pulse: from a microsecond to a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u32);

impl Width {
    /// Microseconds of the longest. The slowest chip on a carrier, an Ethernet PHY, asks for 10 to
    /// 100 ms; more than a second is a slip of the hand.
    pub const MAX_US: u32 = 1_000_000;

    /// A width in microseconds. The pulse is never shorter; the scheduler makes it longer.
    ///
    /// # Errors
    /// [`ResetError::Width`]: none, or more than [`MAX_US`](Self::MAX_US).
    pub const fn from_us(us: u32) -> Result<Self, ResetError> {
        if us == 0 || us > Self::MAX_US { Err(ResetError::Width { us }) } else { Ok(Self(us)) }
    }

    /// The same in microseconds.
    #[must_use]
    pub const fn us(self) -> u32 {
        self.0
    }
}

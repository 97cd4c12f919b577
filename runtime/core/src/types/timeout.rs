//! Time limits: every wait is bounded.

use super::{Error, Result};
use core::time::Duration;

/// The longest time limit: an hour. There is no unlimited wait, because a device that hangs must
/// not hang its caller.
pub const MAX_TIMEOUT: Duration = Duration::from_micros(MAX_TIMEOUT_US);

const MAX_TIMEOUT_US: u64 = 3_600_000_000;

/// Converts `timeout` to whole microseconds, rounded up. Every function with a time limit calls
/// this first; so does a driver or a binding that passes the limit on as a number.
///
/// # Errors
/// [`Error::Argument`]: it is longer than [`MAX_TIMEOUT`].
///
/// ```
/// use core::time::Duration;
/// assert_eq!(contigo::types::timeout_us(Duration::from_nanos(1)), Ok(1));
/// assert_eq!(contigo::types::timeout_us(contigo::types::MAX_TIMEOUT), Ok(3_600_000_000));
/// assert!(contigo::types::timeout_us(Duration::MAX).is_err());
/// ```
#[inline]
pub const fn timeout_us(timeout: Duration) -> Result<u32> {
    let (seconds, part_us) = (timeout.as_secs(), timeout.subsec_nanos().div_ceil(1_000));
    if seconds < MAX_TIMEOUT.as_secs() || (seconds == MAX_TIMEOUT.as_secs() && part_us == 0) {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "3,600 seconds at most, in microseconds fewer than 2^32"
        )]
        Ok(seconds as u32 * 1_000_000 + part_us)
    } else {
        Err(too_long(seconds, part_us))
    }
}

#[cold]
const fn too_long(seconds: u64, part_us: u32) -> Error {
    let value = seconds.saturating_mul(1_000_000).saturating_add(part_us as u64);
    Error::Argument {
        name: "time limit in microseconds",
        value,
        min: 0,
        max: MAX_TIMEOUT_US,
        multiple_of: 1,
    }
}

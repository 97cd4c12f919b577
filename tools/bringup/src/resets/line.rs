//! A reset line behind any pin.

use super::{ResetError, Width};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{OutputPin, PinState};
use std::fmt;
use std::str::FromStr;

/// The level that holds a core in reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// Low, like AXI's `aresetn` and most chips on a carrier.
    Low,
    /// High, as with a name without an `n`.
    High,
}

impl Active {
    /// The level that asserts the reset.
    #[must_use]
    pub const fn asserted(self) -> PinState {
        match self {
            Self::Low => PinState::Low,
            Self::High => PinState::High,
        }
    }

    /// The level that releases the reset.
    #[must_use]
    pub const fn released(self) -> PinState {
        match self {
            Self::Low => PinState::High,
            Self::High => PinState::Low,
        }
    }
}

impl fmt::Display for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::High => "high",
        })
    }
}

impl FromStr for Active {
    type Err = ResetError;

    fn from_str(text: &str) -> Result<Self, ResetError> {
        match text {
            "low" => Ok(Self::Low),
            "high" => Ok(Self::High),
            _ => Err(ResetError::Polarity(text.to_owned())),
        }
    }
}

/// The failure of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseError<E> {
    /// The line could not be asserted. It was released again: nothing was reset.
    NotAsserted(E),
    /// The line could not be released, twice: the core may still be held in reset.
    Held(E),
}

/// A reset line behind any pin. It owns the pin, and knows the active level.
#[derive(Debug)]
pub struct ResetLine<P> {
    pin: P,
    active: Active,
}

impl<P: OutputPin> ResetLine<P> {
    /// Makes a line behind `pin`, and leaves the pin's level unchanged.
    pub const fn new(pin: P, active: Active) -> Self {
        Self { pin, active }
    }

    /// Holds the core in reset.
    ///
    /// # Errors
    /// The pin's own error.
    pub fn assert(&mut self) -> Result<(), P::Error> {
        self.pin.set_state(self.active.asserted())
    }

    /// Lets the core run.
    ///
    /// # Errors
    /// The pin's own error.
    pub fn release(&mut self) -> Result<(), P::Error> {
        self.pin.set_state(self.active.released())
    }

    /// Asserts the line for `width`, and releases it. A core without a clock counts no cycle
    /// meanwhile, so check the clock first.
    ///
    /// # Errors
    /// [`PulseError`] tells whether the core may still be held in reset.
    pub fn pulse(
        &mut self,
        width: Width,
        delay: &mut impl DelayNs,
    ) -> Result<(), PulseError<P::Error>> {
        if let Err(error) = self.assert() {
            // The line may be asserted all the same, and a core must not stay in reset unnoticed.
            return Err(self
                .release()
                .map_or_else(PulseError::Held, |()| PulseError::NotAsserted(error)));
        }
        delay.delay_us(width.us());
        // Tries again after a failure: an expander on a busy bus may have lost one arbitration.
        self.release().or_else(|_| self.release()).map_err(PulseError::Held)
    }
}

//! A reset line, whatever drives it.

use super::{ResetError, Width};
use embedded_hal::{
    delay::DelayNs,
    digital::{OutputPin, PinState},
};
use std::{fmt, str::FromStr};

/// The level that holds a core in reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// As with AXI's `aresetn`, and with most chips on a carrier.
    Low,
    /// As with a name that has no `n`.
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

    /// The other one.
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

/// A pulse that did not end as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseError<E> {
    /// The line could not be asserted. It was released again: nothing was reset.
    NotAsserted(E),
    /// The line could not be released, twice: the core may still be held in reset.
    Held(E),
}

/// A reset line behind any pin. It owns the pin, and knows which level is which.
#[derive(Debug)]
pub struct ResetLine<P> {
    pin: P,
    active: Active,
}

impl<P: OutputPin> ResetLine<P> {
    /// The line behind `pin`, which it leaves as it is.
    pub const fn new(pin: P, active: Active) -> Self {
        Self { pin, active }
    }

    /// Holds the core in reset.
    ///
    /// # Errors
    /// The pin's own.
    pub fn assert(&mut self) -> Result<(), P::Error> {
        self.pin.set_state(self.active.asserted())
    }

    /// Lets the core run.
    ///
    /// # Errors
    /// The pin's own.
    pub fn release(&mut self) -> Result<(), P::Error> {
        self.pin.set_state(self.active.released())
    }

    /// Asserts the line for `width`, and releases it. A core without a clock counts no cycle
    /// meanwhile, so look at the clock first.
    ///
    /// # Errors
    /// [`PulseError`] says whether the core may still be held.
    pub fn pulse(
        &mut self,
        width: Width,
        delay: &mut impl DelayNs,
    ) -> Result<(), PulseError<P::Error>> {
        if let Err(error) = self.assert() {
            // It may have got there all the same, and a core must not stay in reset unnoticed.
            return Err(self
                .release()
                .map_or_else(PulseError::Held, |()| PulseError::NotAsserted(error)));
        }
        delay.delay_us(width.us());
        // Once more where it fails: an expander on a busy bus may have lost one arbitration.
        self.release().or_else(|_| self.release()).map_err(PulseError::Held)
    }
}

//! Events that are no steps of a run, as text. [`trace`](crate::trace) has the steps.

use core::fmt;

/// A text, to `log` and `defmt` where they are on.
pub(crate) fn event(text: fmt::Arguments<'_>) {
    #[cfg(feature = "log")]
    log::trace!(target: "contigo", "{text}");
    #[cfg(feature = "defmt")]
    defmt::trace!("{}", defmt::Display2Format(&text));
    let _ = text;
}

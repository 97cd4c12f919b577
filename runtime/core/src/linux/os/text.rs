//! Events outside the steps of a run, as text. [`trace`](crate::trace) has the steps.

/// Logs a text to `log` and `defmt`, where they are on. It is a macro because `defmt` stores the
/// format string in the program's file and not in the program. Both must accept the string.
macro_rules! event {
    ($text:literal $(, $arg:expr)*) => {{
        #[cfg(feature = "log")]
        log::trace!(target: "contigo", $text $(, $arg)*);
        #[cfg(feature = "defmt")]
        defmt::trace!($text $(, $arg)*);
        #[cfg(not(any(feature = "log", feature = "defmt")))]
        { $( let _ = &$arg; )* }
    }};
}
pub(crate) use event;

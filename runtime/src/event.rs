//! Events: every allocation, carve, sync, submit, completion, map and copy, for whoever listens. Nothing by default.

/// One event, to `log` and `defmt` where they are on. The format string must be one that both take.
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

//! Where a program called the runtime.

#[cfg(feature = "audit")]
use core::panic::Location;

/// Where a program called the runtime, passed down to the code that reports events. Without the
/// feature it is empty, of no size.
#[derive(Clone, Copy, Debug)]
pub struct Site(#[cfg(feature = "audit")] Option<&'static Location<'static>>);

impl Site {
    /// No line: something was dropped, or came back on another library's thread.
    pub(crate) const NONE: Self = Self(
        #[cfg(feature = "audit")]
        None,
    );

    /// The line that called the function which calls this, if that is `track_caller`.
    #[cfg_attr(feature = "audit", track_caller)]
    #[inline]
    pub(crate) fn here() -> Self {
        Self(
            #[cfg(feature = "audit")]
            Some(Location::caller()),
        )
    }

    #[cfg(feature = "audit")]
    pub(super) const fn get(self) -> Option<&'static Location<'static>> {
        self.0
    }
}

//! The gate before a core, as a program names it.

use crate::opening::Opening;
use contigo::names::GateAt;
use std::sync::Arc;

/// Where a gate's registers are.
pub(crate) enum GateIn {
    /// In the core's window, from there on.
    Window(usize),
    /// In a device of its own.
    Own(Arc<Opening>, u8),
}

impl GateIn {
    /// The gate of a core that is driven by window `window`.
    pub(crate) fn at(&self, window: u8) -> GateAt<'_> {
        match self {
            &Self::Window(offset) => GateAt { device: None, window, offset },
            Self::Own(opening, window) => {
                GateAt { device: Some(&opening.device), window: *window, offset: 0 }
            }
        }
    }
}

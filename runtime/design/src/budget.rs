//! How much of a file one question reads.

use super::{DesignError, DesignRule, text::Text};
use core::cell::Cell;

/// A question reads no byte more often than so. Cores of real designs need 2 to 6 passes over their
/// own instance, and some of the processor's and of interconnects. 16 of them over 4 MiB take less
/// than 0.1 s on a PC.
pub(super) const MAX_PASSES: u64 = 16;
/// A small file may be read more often: a core with 16 masters and as many interrupts asks the
/// processor for each.
const LEAST_BYTES: u64 = 2 << 20;

/// The bytes that one question may still read. The reader of tags counts them, so that no search
/// forgets to.
#[derive(Debug)]
pub(super) struct Budget {
    left: Cell<u64>,
    most: u64,
}

/// For what reads an instance once, and what it remembers of others.
pub(super) const ONE_PASS: Option<&Budget> = None;

impl Budget {
    /// For one question about the design in `text`.
    pub(super) fn of(text: &Text<'_>) -> Self {
        let most = (text.source().len() as u64).saturating_mul(MAX_PASSES).max(LEAST_BYTES);
        Self { left: Cell::new(most), most }
    }

    /// Is there so much left? Then it is spent. Otherwise nothing is left.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes as u64);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Refuses an answer that was not read to its end.
    pub(super) fn check(&self, place: &Text<'_>, name: &str) -> Result<(), DesignError> {
        match self.left.get() {
            0 => Err(DesignError::at(place, DesignRule::Tangled, name, self.most)),
            _ => Ok(()),
        }
    }
}

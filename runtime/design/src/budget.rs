//! The limit on how much of a file one query reads.

use super::text::Text;
use super::{DesignError, DesignRule};
use core::cell::Cell;

/// The most times that a query reads each byte. Cores of real designs need 2 to 6 passes over their
/// own instance, and some over the processor's and interconnects'. 16 of them over 4 MiB take less
/// than 0.1 s on a PC.
pub(super) const MAX_PASSES: u64 = 16;
/// The least budget, for small files: a core with 16 masters and as many interrupts reads the
/// processor's tags for each.
const LEAST_BYTES: u64 = 2 << 20;

/// The bytes that one query may still read. The tag reader counts them, so every search is counted.
#[derive(Debug)]
pub(super) struct Budget {
    left: Cell<u64>,
    most: u64,
}

/// For code that reads an instance once, and what it remembers of others.
pub(super) const ONE_PASS: Option<&Budget> = None;

impl Budget {
    /// The budget of one query about the design in `text`.
    pub(super) fn of(text: &Text<'_>) -> Self {
        let most = (text.source().len() as u64).saturating_mul(MAX_PASSES).max(LEAST_BYTES);
        Self { left: Cell::new(most), most }
    }

    /// Spends `bytes` if that many are left; otherwise uses up the budget and returns `false`.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes as u64);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Returns an error if the budget ran out during the query.
    pub(super) fn check(&self, place: &Text<'_>, name: &str) -> Result<(), DesignError> {
        match self.left.get() {
            0 => Err(DesignError::at(place, DesignRule::Tangled, name, self.most)),
            _ => Ok(()),
        }
    }
}

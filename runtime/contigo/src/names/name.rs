//! Names of memory and of devices: texts, each parsed by its table of kinds.

use super::error::Form;
use super::grammar::{self, Parsed};
use super::kinds::Row;
use super::{NameError, NameRule};
use core::fmt;

/// A name: [`DeviceName`](super::DeviceName) or [`MemoryName`](super::MemoryName). It is copied
/// like a number. Whether this machine has such a thing, only [`Inventory`](super::Inventory) and
/// `open` tell.
#[derive(Clone, Copy)]
pub struct Name<K: 'static> {
    pub(super) parsed: Parsed,
    row: &'static Row<K>,
}

impl<K> Name<K> {
    /// The kind: the text before the first colon.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.row.kind
    }

    /// One sentence about its kind.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        self.row.help
    }

    /// The text after its kind: for memory without the device, for a simulated device only its
    /// model, without the seed. `""` where there is none.
    #[must_use]
    pub fn argument(&self) -> &str {
        self.parsed.argument()
    }

    pub(super) const fn row(&self) -> &'static Row<K> {
        self.row
    }

    /// The name that `text` is, by its table; `form` is what an error calls it.
    pub(super) fn of(text: &str, rows: &'static [Row<K>], form: Form) -> Result<Self, NameError> {
        let kind = grammar::kind(text);
        let Some(row) = rows.iter().find(|row| row.kind == kind) else {
            let (rule, len_bytes) = (NameRule::Kind, text.len());
            return Err(NameError { rule, at: 0, len_bytes, form });
        };
        Ok(Self { parsed: grammar::parse(text, row.argument, row.syntax)?, row })
    }

    pub(super) fn text(&self) -> &str {
        self.parsed.text()
    }
}

impl<K> fmt::Display for Name<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl<K> PartialEq for Name<K> {
    fn eq(&self, other: &Self) -> bool {
        self.parsed == other.parsed
    }
}

impl<K> Eq for Name<K> {}

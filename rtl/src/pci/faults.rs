//! The mistakes that a function makes on purpose, so that a test shows that it notices them.

use super::PciError;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It reaches memory while bus mastering is off.
    BusMaster,
    /// Its core goes on after a reset.
    Reset,
    /// It reaches memory that was taken away, until something else is at that address.
    Unmap,
    /// The lowest bit of each write's first byte is wrong.
    Bytes,
}

/// All of them by their names.
const NAMES: [(&str, Fault); 4] = [
    ("bus-master", Fault::BusMaster),
    ("reset", Fault::Reset),
    ("unmap", Fault::Unmap),
    ("bytes", Fault::Bytes),
];

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults(u8);

impl Faults {
    /// None, which is how a function is.
    pub const NONE: Self = Self(0);

    /// Those of these names, with `+` between them.
    ///
    /// # Errors
    /// [`PciError::NoFault`].
    pub fn of(names: &str) -> Result<Self, PciError> {
        let known = |name: &str| NAMES.iter().find(|(known, _)| *known == name);
        names.split('+').try_fold(Self::NONE, |all, name| {
            let (_, fault) = known(name).ok_or_else(|| PciError::NoFault { name: name.into() })?;
            Ok(Self(all.0 | 1 << *fault as u8))
        })
    }

    /// Is this one of them?
    #[must_use]
    pub const fn has(self, fault: Fault) -> bool {
        self.0 >> fault as u8 & 1 == 1
    }
}

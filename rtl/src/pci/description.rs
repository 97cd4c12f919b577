//! A function's identity, and the mistakes that it makes on purpose, so that a test shows that it
//! notices them.

use super::error::PciError;

/// A PCI function's identity, and how its time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Vendor and device, as `lspci -n` prints them.
    pub vendor: u16,
    /// The second half.
    pub device: u16,
    /// Class, subclass and programming interface: 24 bits.
    pub class: u32,
    /// How it interrupts.
    pub vectors: Vectors,
    /// It is stopped by this.
    pub obeys: Obeys,
    /// The most time that the model lets pass at once, in its own nanoseconds. A guest's register
    /// access waits as long as the model needs for that: 1 ms for one of events, some 20 µs for one
    /// of gates.
    pub slice_ns: u64,
    /// Its mistakes.
    pub faults: Faults,
}

/// The capability that its interrupt has. Each has one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// Message Signaled Interrupts.
    Msi,
    /// The same with a table, which is BAR 2.
    MsiX,
}

/// A function's rein: it is kept from memory by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obeys {
    /// Bus mastering and a reset of its own, as PCI has them.
    Pci,
    /// Its registers alone. A core on a SoC's bus has neither: it may always access memory, and
    /// the program that stops it must know how.
    Registers,
}

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

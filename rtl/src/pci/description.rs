//! A function's identity.

use super::Faults;

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

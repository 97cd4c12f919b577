//! Configuration space: 256 bytes, of which QEMU keeps the BARs and the interrupt's messages.

use super::description::{Description, Obeys, Vectors};

/// Its size.
pub(super) const CONFIG_BYTES: usize = 256;

/// Offsets (PCI Local Bus Specification, 6.1).
mod at {
    pub(super) const COMMAND: usize = 0x04;
    pub(super) const STATUS: usize = 0x06;
    pub(super) const CLASS: usize = 0x09;
    pub(super) const SUBSYSTEM: usize = 0x2C;
    pub(super) const CAPABILITIES: usize = 0x34;
    /// The interrupt's capability.
    pub(super) const INTERRUPT: usize = 0x40;
    /// Advanced Features: the function's own reset.
    pub(super) const FEATURES: usize = 0x60;
}

/// `COMMAND`: it may access memory.
const BUS_MASTER: u8 = 1 << 2;
/// `STATUS`: there is a list of capabilities.
const HAS_LIST: u8 = 1 << 4;
/// Advanced Features: Transactions Pending, and reset of a function.
const CAN_RESET: u8 = 0b11;
/// Advanced Features, control: reset now.
const RESET: u8 = 1 << 0;

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Nothing,
    /// The function is reset.
    Reset,
}

/// The bytes of one function.
#[derive(Clone, Debug)]
pub(super) struct Config {
    bytes: [u8; CONFIG_BYTES],
    obeys: Obeys,
}

impl Config {
    pub(super) fn new(about: &Description) -> Self {
        let mut config = Self { bytes: [0; CONFIG_BYTES], obeys: about.obeys };
        config.put(0, &about.vendor.to_le_bytes());
        config.put(2, &about.device.to_le_bytes());
        config.put(at::STATUS, &[HAS_LIST]);
        let [low, middle, high, _] = about.class.to_le_bytes();
        config.put(at::CLASS, &[low, middle, high]);
        config.put(at::SUBSYSTEM, &about.vendor.to_le_bytes());
        config.put(at::SUBSYSTEM + 2, &about.device.to_le_bytes());
        config.put(at::CAPABILITIES, &[0x40]);
        match about.vectors {
            // 05h, one message, 64-bit addresses.
            Vectors::Msi => config.put(at::INTERRUPT, &[0x05, 0, 0x80]),
            // 11h, one message; the table at 0 of BAR 2, the pending bits at 800h.
            Vectors::MsiX => config.put(at::INTERRUPT, &[0x11, 0, 0, 0, 2, 0, 0, 0, 2, 0x08, 0, 0]),
        }
        if about.obeys == Obeys::Pci {
            // The next one in the list.
            config.put(at::INTERRUPT + 1, &[0x60]);
            config.put(at::FEATURES, &[0x13, 0, 6, CAN_RESET, 0, 0]);
        }
        config
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        for (place, byte) in self.bytes.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    }

    /// Reads. Past its end everything is zero.
    pub(super) fn read(&self, at: usize, to: &mut [u8]) {
        for (index, byte) in to.iter_mut().enumerate() {
            *byte = at.checked_add(index).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0);
        }
    }

    /// Writes what can be written: the command register, and the reset.
    pub(super) fn write(&mut self, at: usize, from: &[u8]) -> Written {
        let mut written = Written::Nothing;
        for (at, byte) in (at..).zip(from) {
            match at {
                at::COMMAND | 0x05 => self.put(at, &[*byte]),
                _ if at == at::FEATURES + 4 && byte & RESET != 0 && self.obeys == Obeys::Pci => {
                    self.reset();
                    written = Written::Reset;
                }
                _ => {}
            }
        }
        written
    }

    /// May the function access memory?
    pub(super) fn is_bus_master(&self) -> bool {
        self.obeys == Obeys::Registers
            || self.bytes.get(at::COMMAND).is_some_and(|command| command & BUS_MASTER != 0)
    }

    /// As after power-on.
    pub(super) fn reset(&mut self) {
        self.put(at::COMMAND, &[0, 0]);
    }
}

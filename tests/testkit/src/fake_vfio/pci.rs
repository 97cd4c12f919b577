#![allow(clippy::indexing_slicing, reason = "every offset is one of this file's, inside 256 bytes")]
//! The fake's PCI configuration space: a command register, and a list of two capabilities, MSI and
//! PCI Express.

/// Where the command register is.
pub(super) const COMMAND: usize = 0x04;
const BUS_MASTER: u16 = 1 << 2;
const MSI_AT: u8 = 0x50;
const EXPRESS_AT: u8 = 0x70;
const DEVICE_CONTROL: usize = EXPRESS_AT as usize + 8;
const ENABLE_NO_SNOOP: u16 = 1 << 11;

/// The kind of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has no PCI Express capability.
    Conventional,
    /// It has one, and may ask not to be snooped, as after power-on.
    Express,
    /// The same, and the bit cannot be cleared.
    ExpressStubborn,
    /// Its list of capabilities has a loop.
    Looping,
}

/// The function.
#[derive(Debug)]
pub(super) struct Pci {
    bytes: [u8; 256],
    kind: Kind,
    /// Bits of the command register that do not stay.
    command_mask: u16,
}

impl Pci {
    pub(super) fn new(kind: Kind, command_mask: u16) -> Self {
        let mut this = Self { bytes: [0; 256], kind, command_mask };
        this.set(0x06, 1 << 4);
        this.bytes[0x34] = MSI_AT;
        this.bytes[MSI_AT as usize] = 0x05;
        this.bytes[MSI_AT as usize + 1] = match kind {
            Kind::Conventional => 0,
            Kind::Looping => MSI_AT,
            Kind::Express | Kind::ExpressStubborn => EXPRESS_AT,
        };
        this.bytes[EXPRESS_AT as usize] = 0x10;
        this.set(DEVICE_CONTROL, ENABLE_NO_SNOOP | 0x20);
        this
    }

    pub(super) fn masters(&self) -> bool {
        self.read(COMMAND) & BUS_MASTER != 0
    }

    pub(super) fn stop(&mut self) {
        let command = self.read(COMMAND);
        self.set(COMMAND, command & !BUS_MASTER);
    }

    pub(super) fn read(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    pub(super) fn read_bytes(&self, at: usize, bytes: &mut [u8]) -> Result<(), i32> {
        bytes.copy_from_slice(self.bytes.get(at..at + bytes.len()).ok_or(libc::EIO)?);
        Ok(())
    }

    pub(super) fn write_bytes(&mut self, at: usize, bytes: &[u8]) -> Result<(), i32> {
        let (low, high) = match *bytes {
            [low, high] => (low, high),
            [low] => (low, self.bytes[at + 1]),
            _ => return Err(libc::EINVAL),
        };
        let value = u16::from_le_bytes([low, high]);
        match at {
            COMMAND => self.set(COMMAND, value & self.command_mask),
            DEVICE_CONTROL if self.kind == Kind::ExpressStubborn => {}
            _ => self.set(at, value),
        }
        Ok(())
    }

    fn set(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
}

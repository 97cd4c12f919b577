//! Devices that Linux gives to user space: uio and PCI.

mod bus_master;
mod config;
mod pci;
mod pci_bus;
mod registers;
mod uio;
mod uio_irq;

pub(in crate::linux) use self::registers::Extent;
pub use self::{
    bus_master::BusMaster, pci::PciFunction, registers::Registers, uio::Uio, uio_irq::UioIrq,
};

//! Devices that Linux gives to user space: uio and PCI.

mod bus_master;
mod config;
mod pci;
mod pci_bus;
mod registers;
mod uio;
mod uio_irq;

pub use self::bus_master::BusMaster;
pub use self::pci::PciFunction;
pub(in crate::linux) use self::registers::Extent;
pub use self::registers::Registers;
pub use self::uio::Uio;
pub use self::uio_irq::UioIrq;

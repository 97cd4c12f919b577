//! A PC with an FPGA card.

pub use crate::PC;
use contigo::{Bus, Port};

/// A PCI Express slot of an x86-64 PC: 64 address bits. Every write and read snoops, as the
/// architecture demands unless a master sets No Snoop (PCI Express Base Specification, "No Snoop
/// Attribute"; Intel SDM 3A, "Memory Cache Control").
///
/// Bus address = physical address only where no IOMMU translates for the card: with one, use memory
/// that the kernel mapped for the device (VFIO). The window is all of the address space: which
/// physical addresses are memory is the firmware's choice.
pub const PCIE: Port = Port {
    name: "pc-pcie",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 64,
    window: (0, u64::MAX),
    coherent: true,
};

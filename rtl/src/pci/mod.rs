//! Any [`Model`](contigo::sim::Model) as a PCI function of an emulated machine, with a real kernel
//! above it: QEMU's `vfio-user-pci`, whose other end this is.
//!
//! ```text
//!   the guest's driver ─► QEMU ── a socket ──► server.rs: register accesses, maps, interrupts
//!                                                 ├─ config.rs: configuration space, reset
//!                                                 └─ function.rs: the model ◄── a thread that lets its time pass
//!                                                       ├─ clock.rs: real time, in slices
//!                                                       ├─ msi.rs: the interrupt
//!                                                       └─ guest.rs: memory, by the maps of the guest's IOMMU
//! ```
//!
//! The registers are BAR 0, and every access of the guest is a message. Memory is the guest's own:
//! QEMU hands its file over, and the model reaches what is mapped for it and nothing else. An
//! access to anything else is the model's own [`BusError`](contigo::sim::BusError).
//!
//! [`MODELS`] has the models by name, and the program `contigo-pci` serves one of them.
//!
//! # Traps, and how this meets them
//! - **Memory that QEMU does not share is silently another one** (`share=off`). Nothing here can
//!   tell: compare bytes. Memory without a file ends the program at its first use.
//! - QEMU takes an error for a success, because `vfio_user` 0.1.7 answers it with number 0. So a
//!   state that must not go on ends the program, and QEMU with it.
//! - There is no INTx. A server cannot lower that line, and a guest that is quick finds it high
//!   with no interrupt pending.
//! - The interrupt's line is looked at after each register access and each slice of time. **A line
//!   that falls and rises again inside one sends no message.** So a driver that has cleared its
//!   interrupt reads the status once more, as it does for any interrupt of an edge.
//! - A panic of a model ends the program: the guest would wait for ever.
//! - A write by this process is not seen by an emulator that has compiled the page: no DMA into
//!   code.
//!
//! # References
//! QEMU, `docs/interop/vfio-user.rst` and `hw/vfio-user/`; PCI Local Bus Specification 3.0, 6.1
//! (configuration space), 6.8 (MSI and MSI-X); PCI-SIG, "Advanced Capabilities for Conventional
//! PCI" (reset of a function). Linux `drivers/pci/pci.c`, `pcie_af_flr`.

mod clock;
mod config;
mod description;
mod error;
mod function;
mod guest;
mod models;
mod msi;
mod server;

pub use self::description::{Description, Fault, Faults, Obeys, Vectors};
pub use self::error::PciError;
pub use self::guest::Counts;
pub use self::models::{MODELS, Report, Row, row};
pub use self::server::{Fatal, Served, serve};

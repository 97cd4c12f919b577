//! The function's interrupt: one vector, by an eventfd of QEMU's.

use super::description::Vectors;
use std::fs::File;
use std::io::Write;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_MSI_IRQ_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX,
};

/// The vector.
#[derive(Debug)]
pub(super) struct Msi {
    index: u32,
    event: Option<File>,
    high: bool,
    sent: u64,
}

impl Vectors {
    /// VFIO's number of it.
    pub(super) const fn index(self) -> u32 {
        match self {
            Self::Msi => VFIO_PCI_MSI_IRQ_INDEX,
            Self::MsiX => VFIO_PCI_MSIX_IRQ_INDEX,
        }
    }
}

impl Msi {
    pub(super) const fn new(vectors: Vectors) -> Self {
        Self { index: vectors.index(), event: None, high: false, sent: 0 }
    }

    /// QEMU says where it listens, or that it no longer does.
    pub(super) fn set(&mut self, index: u32, flags: u32, start: u32, count: u32, files: Vec<File>) {
        let ours = index == self.index && flags & VFIO_IRQ_SET_ACTION_TRIGGER != 0;
        if !ours {
            return;
        }
        if count == 0 {
            self.event = None;
        } else if start == 0 && flags & VFIO_IRQ_SET_DATA_EVENTFD != 0 {
            self.event = files.into_iter().next();
        }
    }

    /// The model's line is so. A message is sent when it rises.
    pub(super) fn line(&mut self, high: bool) {
        if high
            && !self.high
            && let Some(event) = &mut self.event
        {
            // An eventfd refuses a write only where nearly 2^64 of them were not read.
            self.sent += u64::from(event.write_all(&1_u64.to_ne_bytes()).is_ok());
        }
        self.high = high;
    }

    /// Messages that were sent.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }
}

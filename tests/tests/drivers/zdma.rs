//! ZDMA's driver on its model and on a device that only takes notes: copies, registers, errors,
//! recovery.

mod failures;
mod lifetimes;
mod queue;
mod registers;

use contigo::{
    CpuBuf, Queue,
    drivers::zdma::Zdma,
    sim::{SimWindow, zdma::ZdmaModel},
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);

type ZdmaQueue = Queue<Zdma<SimWindow<ZdmaModel>>>;

/// How a channel is given its transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Simple,
    /// With so many bytes for descriptors.
    Linked(usize),
}

const MODES: [Mode; 3] = [Mode::Simple, Mode::Linked(4096), Mode::Linked(128)];

impl Mode {
    /// The driver of `device` in this mode, its descriptors from `take`.
    fn open(
        self,
        device: SimWindow<ZdmaModel>,
        take: impl FnOnce(usize) -> CpuBuf,
    ) -> Zdma<SimWindow<ZdmaModel>> {
        match self {
            Self::Simple => device.simple().unwrap(),
            Self::Linked(len_bytes) => device.linked(take(len_bytes)).unwrap(),
        }
    }
}

/// Buffers of a region, by their size.
macro_rules! alloc {
    ($region:expr) => {
        |len_bytes| $region.alloc(len_bytes, contigo::Align::LINE).unwrap()
    };
}
use alloc;

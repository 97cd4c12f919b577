//! ZDMA's driver on its model and on a device that only takes notes: copies, registers, errors,
//! recovery.
#![allow(unsafe_code, reason = "devices and memory of the test's own")]

mod failures;
mod hole;
mod lifetimes;
mod queue;
mod registers;

use crate::prelude::*;
use crate::regs::zdma as regs;
use contigo::drivers::zdma::Zdma;
use contigo::sim::zdma::ZdmaModel;

const LEN: usize = 8192;

/// How a channel is given its transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Simple,
    /// With so many bytes for descriptors.
    Linked(usize),
}

impl Mode {
    /// The driver of `device` in this mode, its descriptors from `region`.
    fn open(self, device: &SimDevice<ZdmaModel>, region: &Region) -> Zdma<SimWindow<ZdmaModel>> {
        let window = device.window().unwrap();
        match self {
            Self::Simple => window.simple().unwrap(),
            Self::Linked(len_bytes) => {
                window.linked(region.alloc(len_bytes, Align::LINE).unwrap()).unwrap()
            }
        }
    }

    /// With its queue.
    fn queue(
        self,
        device: &SimDevice<ZdmaModel>,
        region: &Region,
    ) -> Queue<Zdma<SimWindow<ZdmaModel>>> {
        Queue::new(self.open(device, region), 8).unwrap()
    }
}

/// A copy that is right.
fn works<D: Driver>(queue: &mut Queue<D>, pool: &Pool) {
    let operands = [filled(pool, 0x5A).to_device(..), filled(pool, 0).from_device(..)];
    let [_, to] = queue.run(operands, &[], LIMIT).unwrap().buffers;
    assert_eq!(to.view::<u8>().unwrap(), [0x5A; LEN]);
}

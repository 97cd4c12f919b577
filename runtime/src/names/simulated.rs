#![allow(unsafe_code, reason = "registers of a device, and a model that is another one in every method")]
//! The devices of a simulated board that have names.

use super::{DeviceName, files::Files};
use crate::{
    drivers::{
        pl330::{Pl330Model, Pl330Spec},
        zdma::ZdmaModel,
    },
    mem::Port,
    sim::{Model, SimBoard, SimBus, SimDevice},
    types::Error,
    types::lock,
};
use spin::{Mutex, MutexGuard};

/// The seed of a board, where none is said.
const SEED: u64 = 1;

/// Every model, and `board` for a board with memory alone.
const NAMES: [&str; 3] = ["board", "pl330", "zdma"];

/// Gives `each` the name of every model.
pub(super) fn models(_: Files<'_>, each: &mut dyn FnMut(&str)) {
    NAMES.into_iter().for_each(each);
}

/// The model of an opened board.
#[allow(clippy::large_enum_variant, reason = "it is part of an opening, and there is no heap")]
pub(super) enum Models {
    None,
    Pl330(Mutex<Pl330Model>),
    Zdma(Mutex<ZdmaModel>),
}

/// The board and the model that `name` says.
pub(super) fn open(name: &DeviceName) -> Result<(SimBoard, Models), Error> {
    let models = match name.argument() {
        "board" => Models::None,
        "pl330" => Models::Pl330(Mutex::new(Pl330Model::new(Pl330Spec::default()))),
        "zdma" => Models::Zdma(Mutex::new(ZdmaModel::new())),
        _ => return Err(Error::NotFound { what: "model of a simulated device", among: 3 }),
    };
    Ok((SimBoard::new(name.seed().unwrap_or(SEED)), models))
}

/// A model that its opening lends to one driver.
pub(super) struct Lent<'o, M>(MutexGuard<'o, M>);

// SAFETY: every method is the model's own.
unsafe impl<M: Model> Model for Lent<'_, M> {
    const WINDOW_BYTES: usize = M::WINDOW_BYTES;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.0.advance(bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.0.read32(offset, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.0.write32(offset, value, bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.0.irq_at_ns()
    }
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// A device of a simulated board, which nobody else has.
pub(super) enum Simulated<'o> {
    Pl330(SimDevice<'o, Lent<'o, Pl330Model>>),
    Zdma(SimDevice<'o, Lent<'o, ZdmaModel>>),
}

/// Does the same with whatever it is.
macro_rules! with {
    ($device:expr, |$each:ident| $act:expr) => {
        match $device {
            Simulated::Pl330($each) => $act,
            Simulated::Zdma($each) => $act,
        }
    };
}

impl<'o> Simulated<'o> {
    /// The device, as after power-on, behind `port`.
    pub(super) fn new(board: &'o SimBoard, models: &'o Models, port: Port) -> Result<Self, Error> {
        match models {
            Models::None => Err(Error::NotFound { what: "device of a board with memory alone", among: 0 }),
            Models::Pl330(model) => Ok(Self::Pl330(SimDevice::with_model(board, port, lend(model)?))),
            Models::Zdma(model) => Ok(Self::Zdma(SimDevice::with_model(board, port, lend(model)?))),
        }
    }

    pub(super) const fn len_bytes(&self) -> usize {
        match self {
            Self::Pl330(_) => Pl330Model::WINDOW_BYTES,
            Self::Zdma(_) => ZdmaModel::WINDOW_BYTES,
        }
    }

    pub(super) fn read32(&self, offset: usize) -> u32 {
        with!(self, |device| device.read32(offset))
    }

    /// # Safety
    /// As [`Mmio::write32`](crate::Mmio::write32).
    pub(super) unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise; the opening lends the model to one driver.
        with!(self, |device| unsafe { device.write32(offset, value) });
    }

    pub(super) fn now_us(&self) -> u64 {
        with!(self, |device| device.now_us())
    }

    pub(super) fn wait(&self, timeout_us: u32) -> Result<(), Error> {
        with!(self, |device| device.wait(timeout_us))
    }
}

fn lend<M: Model>(model: &Mutex<M>) -> Result<Lent<'_, M>, Error> {
    let mut lent = Lent(lock::acquire(model)?);
    lent.reset();
    Ok(lent)
}

#![allow(unsafe_code, reason = "registers of a device, and a model that is another one in every method")]
//! The devices of a simulated board that have names: those of the registry that have a model.

use super::{DeviceName, files::Files, registry};
use crate::{
    mem::Port,
    sim::{AnyModel, Model, SimBoard, SimBus, SimDevice},
    types::Error,
    types::lock,
};
use spin::{Mutex, MutexGuard};

/// The seed of a board, where none is said.
const SEED: u64 = 1;

/// A board with memory alone.
const BOARD: &str = "board";

/// Gives `each` the name of every model.
pub(super) fn models(_: Files<'_>, each: &mut dyn FnMut(&str)) {
    each(BOARD);
    registry::each_row(|row| {
        if row.model.is_some() {
            each(row.name);
        }
    });
}

/// The model of an opened board; `None`: it has memory alone.
pub(super) type Models = Option<Mutex<AnyModel>>;

/// The board and the model that `name` says.
pub(super) fn open(name: &DeviceName) -> Result<(SimBoard, Models), Error> {
    let model = match name.argument() {
        BOARD => None,
        driver => {
            let mut among = 1;
            registry::each_row(|row| among += u32::from(row.model.is_some()));
            let none = Error::NotFound { what: "model of a simulated device", among };
            let make = registry::row(driver).ok().and_then(|row| row.model).ok_or(none)?;
            Some(Mutex::new(make()))
        }
    };
    Ok((SimBoard::new(name.seed().unwrap_or(SEED)), model))
}

/// A model that its opening lends to one driver.
pub(super) struct Lent<'o>(MutexGuard<'o, AnyModel>);

// SAFETY: every method is the model's own.
unsafe impl Model for Lent<'_> {
    const WINDOW_BYTES: usize = AnyModel::WINDOW_BYTES;

    fn window_bytes(&self) -> usize {
        self.0.window_bytes()
    }
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
pub(super) type Simulated<'o> = SimDevice<'o, Lent<'o>>;

/// The device, as after power-on, behind `port`.
pub(super) fn attach<'o>(board: &'o SimBoard, models: &'o Models, port: Port) -> Result<Simulated<'o>, Error> {
    let model = models.as_ref().ok_or(Error::NotFound { what: "device of a board with memory alone", among: 0 })?;
    let mut lent = Lent(lock::acquire(model)?);
    lent.reset();
    Ok(SimDevice::with_model(board, port, lent))
}

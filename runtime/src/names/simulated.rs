#![allow(unsafe_code, reason = "registers of a device, and a model that is another one in every method")]
//! The devices of a simulated board that have names. Those of the registry have a model; another
//! table has those that stand for more than a core, as a camera does.

use super::{DeviceName, DriverRow, files::Files, registry};
#[cfg(feature = "describe")]
use crate::drivers;
use crate::{
    drivers::SCENES,
    job::Settings,
    mem::Port,
    sim::{AnyModel, Model, SimBoard, SimBus, SimDevice},
    types::Error,
    types::lock,
    types::near::Among,
};
use spin::Mutex;

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
    SCENES.iter().for_each(|(name, _)| each(name));
}

/// The board of an opening.
#[allow(clippy::large_enum_variant, reason = "a program opens a handful of boards")]
pub(super) enum Board {
    /// Its own.
    Own(SimBoard),
    /// The program's, which has more on it.
    Shared(&'static SimBoard),
}

impl Board {
    pub(super) const fn get(&self) -> &SimBoard {
        match self {
            Self::Own(board) => board,
            Self::Shared(board) => board,
        }
    }
}

/// The model of an opened board; `None`: it has memory alone.
pub(super) type Models = Option<Mutex<AnyModel>>;

/// The board and the model that `name` says.
pub(super) fn open(name: &DeviceName) -> Result<(Board, Models), Error> {
    let models = match name.argument() {
        BOARD => None,
        driver => Some(Mutex::new(model(driver)?)),
    };
    Ok((Board::Own(SimBoard::new(name.seed().unwrap_or(SEED))), models))
}

/// The model that stands for what `driver` drives.
pub(super) fn model(driver: &str) -> Result<AnyModel, Error> {
    if let Some((_, scene)) = SCENES.iter().find(|(name, _)| *name == driver) {
        return Ok(scene());
    }
    let none = || Error::NotFound { what: "simulated device", among: Among::nearest(driver, |each| models(Files { root: "" }, each)) };
    Ok(registry::row(driver).ok().and_then(|row| row.model).ok_or_else(none)?())
}

/// A model that its opening lends to one driver, and whose reset line the opening keeps.
pub(super) struct LentModel<'o> {
    model: &'o Mutex<AnyModel>,
    window_bytes: usize,
    /// A write got lost: it answers nothing more before the next driver has it.
    gone: bool,
}

impl LentModel<'_> {
    fn with<R>(&mut self, act: impl FnOnce(&mut AnyModel) -> R) -> Option<R> {
        match lock::acquire(self.model) {
            Ok(mut model) if !self.gone => Some(act(&mut model)),
            _ => None,
        }
    }
}

// SAFETY: every method is the model's own, or does nothing.
unsafe impl Model for LentModel<'_> {
    const WINDOW_BYTES: usize = AnyModel::WINDOW_BYTES;

    fn window_bytes(&self) -> usize {
        self.window_bytes
    }
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.with(|model| model.advance(bus));
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.with(|model| model.read32(offset, bus)).unwrap_or(u32::MAX)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        // The next write might start a job with an old pointer.
        self.gone |= self.with(|model| model.write32(offset, value, bus)).is_none();
    }
    fn irq_at_ns(&self) -> Option<u64> {
        lock::acquire(self.model).ok()?.irq_at_ns()
    }
    fn reset(&mut self) {
        self.with(Model::reset);
    }
}

/// A device of a simulated board, which nobody else has.
pub(super) type Simulated<'o> = SimDevice<'o, LentModel<'o>>;

/// The device, as after power-on, behind `port`.
pub(super) fn attach<'o>(board: &'o Board, models: &'o Models, port: Port) -> Result<Simulated<'o>, Error> {
    reset(models)?;
    lent(board, models, port)
}

/// Refuses settings and a map that are not what the model is built with, before it is touched.
pub(super) fn fits(models: &Models, row: &DriverRow, settings: Settings<'_>, map: Option<&[u8]>) -> Result<(), Error> {
    let Some(model) = models else { return Ok(()) };
    let model = lock::acquire(model)?;
    let fit = |what: &'static str, nth, value: u64| match model.fits(what, nth) {
        Some((min, max)) if !(min..=max).contains(&value) => Err(Error::OtherModel { what, value, min, max }),
        _ => Ok(()),
    };
    for &name in row.settings.unwrap_or_default() {
        // One that is no number is the driver's to refuse.
        if let Ok(Some(value)) = settings.number(name, 0, u64::MAX) {
            fit(name, 0, value)?;
        }
    }
    #[cfg(feature = "describe")]
    if let Some(map) = map.filter(|_| row.name == drivers::ap_ctrl::row::NAME)
        && let Ok(Ok(map)) = drivers::ap_ctrl::describe::any(map, "").map(|described| described.build())
    {
        map.layout().try_for_each(|(what, nth, value)| fit(what, nth, value))?;
    }
    #[cfg(not(feature = "describe"))]
    let _ = map;
    Ok(())
}

/// The device as it is.
pub(super) fn lent<'o>(board: &'o Board, models: &'o Models, port: Port) -> Result<Simulated<'o>, Error> {
    let model = models.as_ref().ok_or(NO_DEVICE)?;
    let window_bytes = lock::acquire(model)?.window_bytes();
    Ok(SimDevice::with_model(board.get(), port, LentModel { model, window_bytes, gone: false }))
}

/// Pulls the reset line.
pub(super) fn reset(models: &Models) -> Result<(), Error> {
    lock::acquire(models.as_ref().ok_or(NO_DEVICE)?)?.reset();
    Ok(())
}

const NO_DEVICE: Error = Error::Unsupported { what: "this simulated board has memory alone", fix: "open a device on it, as sim:zdma" };

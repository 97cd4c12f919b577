//! The devices of a simulated board that have names. Those of the registry have a model; another
//! table has those that stand for more than a core, as a camera does.

use super::{DeviceName, DriverRow, files::Files, registry};
#[cfg(feature = "describe")]
use crate::drivers;
use crate::{
    drivers::SCENES,
    job::Settings,
    mem::Port,
    sim::{AnyModel, Faults, SimBoard, SimConfig, SimDevice},
    types::{Error, near::Among},
};

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

/// The model of an opened board; `None`: it has memory alone.
pub(super) type Models = Option<AnyModel>;

/// The board and the model that `name` says.
pub(super) fn open(name: &DeviceName) -> Result<(SimBoard, Models), Error> {
    let models = match name.argument() {
        BOARD => None,
        driver => Some(model(driver)?),
    };
    let config = SimConfig { seed: name.seed().unwrap_or(SEED), faults: Faults::NONE };
    Ok((SimBoard::try_with(config)?, models))
}

/// The model that stands for what `driver` drives.
pub(super) fn model(driver: &str) -> Result<AnyModel, Error> {
    if let Some((_, scene)) = SCENES.iter().find(|(name, _)| *name == driver) {
        return Ok(scene());
    }
    let none = || Error::NotFound { what: "simulated device", among: Among::nearest(driver, |each| models(Files { root: "" }, each)) };
    Ok(registry::row(driver).ok().and_then(|row| row.model).ok_or_else(none)?())
}

/// A device of a simulated board, which no other driver has.
pub(super) type Simulated = SimDevice<AnyModel>;

/// The device, as after power-on, behind `port`.
pub(super) fn attach(board: &SimBoard, models: &Models, port: Port) -> Result<Simulated, Error> {
    reset(models)?;
    lent(board, models, port)
}

/// Refuses settings and a map that are not what the model is built with, before it is touched.
pub(super) fn fits(models: &Models, row: &DriverRow, settings: Settings<'_>, map: Option<&[u8]>) -> Result<(), Error> {
    let Some(model) = models else { return Ok(()) };
    let model = model.lock()?;
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
    if let Some(map) = map.filter(|_| row.name == drivers::ap_ctrl::registry::NAME)
        && let Ok(Ok(map)) = drivers::ap_ctrl::describe::any(map, "").map(|described| described.build())
    {
        map.layout().try_for_each(|(what, nth, value)| fit(what, nth, value))?;
    }
    #[cfg(not(feature = "describe"))]
    let _ = map;
    Ok(())
}

/// The device as it is.
pub(super) fn lent(board: &SimBoard, models: &Models, port: Port) -> Result<Simulated, Error> {
    SimDevice::try_with_model(board, port, models.as_ref().ok_or(NO_DEVICE)?.lend())
}

/// Pulls the reset line.
pub(super) fn reset(models: &Models) -> Result<(), Error> {
    models.as_ref().ok_or(NO_DEVICE)?.lock()?.reset();
    Ok(())
}

const NO_DEVICE: Error = Error::Unsupported { what: "this simulated board has memory alone", fix: "open a device on it, as sim:zdma" };

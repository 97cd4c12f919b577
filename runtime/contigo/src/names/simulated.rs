//! The device of a simulated board, by the name of its model.

use super::device_name::DeviceName;
use contigo_core::job::Settings;
use contigo_core::mem::Port;
use contigo_core::types::Error;
use contigo_design::kernel;
use contigo_sim::{AnyModel, Faults, SimBoard, SimDevice, SimWindow, each_name, named};

/// The seed of a board whose name has none.
const SEED: u64 = 1;

/// A board with only memory.
const BOARD: &str = "board";

/// Calls `each` with the name of every model.
pub(super) fn models(each: &mut dyn FnMut(&str)) {
    each(BOARD);
    each_name(each);
}

/// The model of an open board; `None`: it has only memory.
pub(super) type Models = Option<AnyModel>;

/// Opens the board and the model that `name` names.
pub(super) fn open(name: &DeviceName) -> Result<(SimBoard, Models), Error> {
    let models = match name.argument() {
        BOARD => None,
        model => Some(named(model)?),
    };
    Ok((SimBoard::try_with(name.seed().unwrap_or(SEED), Faults::NONE)?, models))
}

/// A device of a simulated board, which no other driver has.
pub(super) type Simulated = SimWindow<AnyModel>;

/// The device, as after power-on, behind `port`.
pub(super) fn attach(board: &SimBoard, models: &Models, port: Port) -> Result<Simulated, Error> {
    reset(models)?;
    lent(board, models, port)
}

/// Refuses settings and a map that do not fit the model's core, before it is touched.
pub(super) fn fits(
    models: &Models,
    driver: &str,
    known: &[&'static str],
    settings: Settings<'_>,
    map: Option<&[u8]>,
) -> Result<(), Error> {
    let Some(model) = models else { return Ok(()) };
    let fit = |what: &'static str, nth, value: u64| match model.limits(what, nth)? {
        Some((min, max)) if !(min..=max).contains(&value) => {
            Err(Error::OtherModel { what, value, min, max })
        }
        _ => Ok(()),
    };
    for &name in known {
        // The driver refuses a value that is not a number.
        if let Ok(Some(value)) = settings.number(name, 0, u64::MAX) {
            fit(name, 0, value)?;
        }
    }
    if let Some(map) = map.filter(|_| driver == "ap_ctrl")
        && let Ok(Ok(map)) = kernel::any(map, "").map(|described| described.build())
    {
        map.layout().try_for_each(|(what, nth, value)| fit(what, nth, value))?;
    }
    Ok(())
}

/// The device, without a reset.
pub(super) fn lent(board: &SimBoard, models: &Models, port: Port) -> Result<Simulated, Error> {
    SimDevice::try_with_model(board, port, models.clone().ok_or(NO_DEVICE)?)?.window()
}

/// Pulls the reset line.
pub(super) fn reset(models: &Models) -> Result<(), Error> {
    models.as_ref().ok_or(NO_DEVICE)?.pull_reset()
}

const NO_DEVICE: Error = Error::Unsupported {
    what: "this simulated board has memory alone",
    fix: "open a device on it, as sim:zdma",
};

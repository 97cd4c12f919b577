#![allow(
    unsafe_code,
    reason = "how a device is wired, and who drives it, is the C program's promise"
)]
//! Devices that were opened by their names, and the registers of each.

use super::{SIMS, gpu, port_of};
use crate::fault::Fault;
use crate::handles::CONTIGO_MAX_DEVICES;
use contigo::names::{AnyDevice, Attach, DeviceName, OpenDevice};
use contigo::sim::{AnyModel, SimBoard};
use contigo_objects::{Kind, Lease, Table};
use core::ops::Deref;

const DEVICE_COUNT: usize = CONTIGO_MAX_DEVICES as usize;

/// Devices. Each serves its registers, its engine and its memory: they count.
pub(crate) static DEVICES: Table<Opened, { Kind::Device as u8 }, DEVICE_COUNT> = Table::new();
/// The registers of those that a program drives itself.
pub(crate) static REGISTERS: Table<Attached, { Kind::Registers as u8 }, DEVICE_COUNT> =
    Table::new();

/// A device's registers and its interrupt. The fields are dropped in this order.
pub(crate) struct Attached {
    pub(crate) device: AnyDevice,
    _held: Lease<Opened>,
}

/// A device, and the board of the program's that it is on. The device has a handle of its own; a
/// board with devices is not closed all the same.
pub(crate) struct Opened {
    pub(crate) device: OpenDevice,
    _sim: Option<Lease<SimBoard>>,
}

impl Opened {
    /// One that is on no board of the program's.
    pub(crate) const fn alone(device: OpenDevice) -> Self {
        Self { device, _sim: None }
    }
}

impl Deref for Opened {
    type Target = OpenDevice;
    fn deref(&self) -> &OpenDevice {
        &self.device
    }
}

/// Puts the model of `driver`'s device on a simulated board.
pub(crate) fn on_board(sim: u64, driver: &str) -> Result<u64, Fault> {
    let claimed = DEVICES.claim()?;
    let sim = SIMS.lease(sim)?;
    let device = OpenDevice::on_board(&sim, driver)?;
    Ok(claimed.put(Opened { device, _sim: Some(sim) }))
}

/// Puts the program's own model on `board`; `sim`: the board is the program's, too.
pub(crate) fn simulated(
    board: &SimBoard,
    sim: Option<Lease<SimBoard>>,
    name: &str,
    model: AnyModel,
) -> Result<u64, Fault> {
    let claimed = DEVICES.claim()?;
    let device = OpenDevice::of_model(board, name, model)?;
    Ok(claimed.put(Opened { device, _sim: sim }))
}

/// Opens the device that `name` names.
pub(crate) fn open(name: DeviceName) -> Result<u64, Fault> {
    // First: a full table opens no device.
    let claimed = DEVICES.claim()?;
    gpu::bring()?;
    let device = name.open().map_err(|error| Fault::Device { name, error })?;
    Ok(claimed.put(Opened::alone(device)))
}

impl Attached {
    /// The registers of a device behind `port`; 0: the kernel says how it reaches memory.
    ///
    /// # Safety
    /// As `OpenDevice::attach_wired`.
    pub(crate) unsafe fn open(device: u64, port: u64, how: Attach) -> Result<u64, Fault> {
        let claimed = REGISTERS.claim()?;
        let held = DEVICES.lease(device)?;
        let device = match port {
            0 => held.attach(how)?,
            // SAFETY: the caller's promise.
            port => unsafe { held.attach_wired(port_of(port)?, how)? },
        };
        Ok(claimed.put(Self { device, _held: held }))
    }
}

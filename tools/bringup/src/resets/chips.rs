//! The GPIO lines of this machine, by the kernel's character devices.

use super::{Active, Place, ResetError, ResetLine};
use crate::{machine::Machine, plain};
use embedded_hal::digital::PinState;
use linux_embedded_hal::{
    CdevPin,
    gpio_cdev::{self, Chip, LineRequestFlags},
};
use std::fmt;

/// A line of a GPIO chip, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioLine {
    /// The chip's file in `/dev`: `gpiochip0`.
    pub chip: String,
    /// The chip's label: `zynqmp_gpio`.
    pub label: String,
    /// The line's number on its chip.
    pub offset: u32,
    /// Its name in the device tree.
    pub name: Option<String>,
    /// Who has it: a program's word for itself, or a driver's. Empty: its user gave no name.
    pub consumer: Option<String>,
    /// The device tree says that it is active low.
    pub active_low: bool,
}

impl fmt::Display for GpioLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chip, self.offset)
    }
}

impl GpioLine {
    /// The one line of `lines` that `place` means, if it is free.
    ///
    /// # Errors
    /// [`ResetError::NoSuchLine`], [`ResetError::Ambiguous`], [`ResetError::InUse`].
    pub fn choose<'a>(lines: &'a [Self], place: &Place) -> Result<&'a Self, ResetError> {
        let meant = |line: &&Self| match place {
            Place::Offset { chip, offset } => {
                line.offset == *offset && (line.chip == *chip || line.label == *chip)
            }
            Place::Name(name) => line.name.as_ref() == Some(name),
            Place::Guard(_) => false,
        };
        let found: Vec<_> = lines.iter().filter(meant).collect();
        match found.as_slice() {
            [] => Err(ResetError::NoSuchLine { place: place.clone(), among: lines.len() }),
            [line] => line.free().map(|()| *line),
            several => Err(ResetError::Ambiguous {
                place: place.clone(),
                there: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn free(&self) -> Result<(), ResetError> {
        match &self.consumer {
            None => Ok(()),
            Some(consumer) => {
                Err(ResetError::InUse { line: self.to_string(), consumer: consumer.clone() })
            }
        }
    }
}

/// The name under which others see a line of ours.
const CONSUMER: &str = "contigo reset";

/// The most letters of another user's word: the kernel keeps 31 (`GPIO_MAX_NAME_SIZE`).
const CONSUMER_MAX: usize = 31;

/// The most lines of one chip that are looked at; ZynqMP's has 174, and an FPGA's core 64.
const LINES_MAX: u32 = 1024;

/// Each line of each chip, and who has it. It asks for no line, and changes none.
///
/// # Errors
/// [`ResetError::Chip`]: a chip's file cannot be opened or read.
pub fn lines(machine: &Machine) -> Result<Vec<GpioLine>, ResetError> {
    let mut all = Vec::new();
    for chip in machine.list("dev").into_iter().filter(|name| name.starts_with("gpiochip")) {
        let told = |error| ResetError::Chip { chip: chip.clone(), error };
        let mut device = opened(machine, &chip).map_err(told)?;
        let label = device.label().to_owned();
        for offset in 0..device.num_lines().min(LINES_MAX) {
            let info = device.get_line(offset).and_then(|line| line.info()).map_err(told)?;
            let name = info.name().map(str::to_owned);
            // `is_used` of that crate is also true of a free line that was an output once.
            let consumer = info.is_kernel().then(|| word(info.consumer()));
            let active_low = info.is_active_low();
            all.push(GpioLine {
                chip: chip.clone(),
                label: label.clone(),
                offset,
                name,
                consumer,
                active_low,
            });
        }
    }
    Ok(all)
}

/// The line at `place`, as an output that is released. The kernel gives it to no other user until
/// it is dropped. Which level it has after that is the chip's driver's choice; most leave it.
///
/// # Errors
/// Those of [`lines`] and of [`GpioLine::choose`]; [`ResetError::InUse`] also where another user
/// took it meanwhile; [`ResetError::NotAnOutput`]: the chip refuses.
pub fn open(
    machine: &Machine,
    place: &Place,
    active: Active,
) -> Result<ResetLine<CdevPin>, ResetError> {
    let all = lines(machine)?;
    let line = GpioLine::choose(&all, place)?;
    let told = |error| ResetError::Chip { chip: line.chip.clone(), error };
    let wanted = opened(machine, &line.chip)
        .and_then(|mut chip| chip.get_line(line.offset))
        .map_err(told)?;
    // Levels are as on the wire here: the kernel turns none round.
    let released = u8::from(active.released() == PinState::High);
    let handle =
        wanted.request(LineRequestFlags::OUTPUT, released, CONSUMER).map_err(
            |error| match wanted.info() {
                Ok(info) if info.is_kernel() => {
                    ResetError::InUse { line: line.to_string(), consumer: word(info.consumer()) }
                }
                _ => ResetError::NotAnOutput { line: line.to_string(), error },
            },
        )?;
    Ok(ResetLine::new(CdevPin::new(handle).map_err(told)?, active))
}

/// A user's word for itself: any program may choose it.
fn word(consumer: Option<&str>) -> String {
    plain(consumer.unwrap_or_default(), CONSUMER_MAX)
}

fn opened(machine: &Machine, chip: &str) -> Result<Chip, gpio_cdev::Error> {
    let node = machine.files().device(&format!("dev/{chip}"))?;
    #[allow(clippy::disallowed_methods, reason = "a chip of this machine, which its files allow")]
    Chip::new(node)
}

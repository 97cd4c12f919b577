//! The GPIO lines of this machine, through the kernel's character devices.

use super::{Active, Place, ResetError, ResetLine};
use crate::machine::Machine;
use crate::plain;
use embedded_hal::digital::PinState;
use linux_embedded_hal::CdevPin;
use linux_embedded_hal::gpio_cdev::{self, Chip, LineRequestFlags};
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
    /// The line's name in the device tree.
    pub name: Option<String>,
    /// Its user: the name that a program or a driver gave. Empty: the user gave no name.
    pub consumer: Option<String>,
    /// Whether the device tree declares it active low.
    pub active_low: bool,
}

impl fmt::Display for GpioLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chip, self.offset)
    }
}

impl GpioLine {
    /// Finds the one line of `lines` that `place` names, and checks that it is free.
    ///
    /// # Errors
    /// [`ResetError::NoSuchLine`], [`ResetError::Ambiguous`], [`ResetError::InUse`].
    pub fn choose<'a>(lines: &'a [Self], place: &Place) -> Result<&'a Self, ResetError> {
        let meant = |line: &&Self| match place {
            Place::Offset { chip, offset } => {
                line.offset == *offset && (line.chip == *chip || line.label == *chip)
            }
            Place::Name(name) => line.name.as_ref() == Some(name),
            Place::Contigo(_) => false,
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

/// The name by which others see a line that this program uses.
const CONSUMER: &str = "contigo reset";

/// The longest name of another user, in letters: the kernel keeps 31 (`GPIO_MAX_NAME_SIZE`).
const CONSUMER_MAX: usize = 31;

/// The most lines of one chip that are read; ZynqMP's has 174, and an FPGA's core 64.
const LINES_MAX: u32 = 1024;

/// All lines of all chips, with their users. It requests no line, and changes none.
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
            // `is_used` of that crate is also true for a free line that was once an output.
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

/// Opens the line at `place` as a released output. The kernel gives the line to no other user until
/// it is dropped. After that the chip's driver chooses its level; most drivers leave it.
///
/// # Errors
/// Those of [`lines`] and of [`GpioLine::choose`]; [`ResetError::InUse`], also if another user took
/// the line meanwhile; [`ResetError::NotAnOutput`]: the chip refuses.
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
    // Levels are those of the wire here: the kernel inverts none.
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

/// A user's name for itself, which any program may choose.
fn word(consumer: Option<&str>) -> String {
    plain(consumer.unwrap_or_default(), CONSUMER_MAX)
}

fn opened(machine: &Machine, chip: &str) -> Result<Chip, gpio_cdev::Error> {
    let node = machine.files().device(&format!("dev/{chip}"))?;
    #[allow(clippy::disallowed_methods, reason = "a chip of this machine, which its files allow")]
    Chip::new(node)
}

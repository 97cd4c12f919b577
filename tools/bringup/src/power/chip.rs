//! A monitor that is read through its bus.

use super::{Model, Monitor};
use embedded_hal::i2c::I2c;
use ina226::INA226;
use ina233_rs::Ina233;
use std::fmt;

/// TI's number (SBOS547A, table 7-22).
const TI: u16 = 0x5449;
/// The configuration's mode "shunt and bus, continuous" (SBOS547A, table 7-9).
const CONTINUOUS: u16 = 7;

/// The weight of a bit: 1.25 mV of the bus, 2.5 uV of the shunt (SBOS547A, 7.5). An INA260's
/// current has 1.25 mA a bit, which is 2.5 uV at its 2 mOhm, and the same registers. An INA233 has
/// the same weights behind PMBus's commands (SBOS790A, 6.5.3; Linux,
/// `drivers/hwmon/pmbus/ina233.c`).
const BUS_UV: i64 = 1_250;
const SHUNT_NV: i64 = 2_500;

/// A monitor on any bus of embedded-hal's. It is read, and never written: its averages and its
/// calibration stay as they were set.
///
/// The chip remembers the register that is read next, so one program at a time may read it.
pub struct Chip<I2C> {
    driver: Driver<I2C>,
    monitor: Monitor,
}

enum Driver<I2C> {
    Registers(INA226<I2C>),
    PmBus(Ina233<I2C>),
}

/// A word of PMBus, from its driver's signed one.
const fn word(raw: i16) -> u16 {
    raw.cast_unsigned()
}

/// The reason why a monitor has no reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChipError<E> {
    /// The bus: no chip answers, or a driver of the kernel has it.
    Bus(E),
    /// It is another chip.
    Other {
        /// The maker's number.
        maker: u16,
        /// The die's number.
        die: u16,
    },
    /// Its driver refuses a number, which no read does.
    Driver,
    /// It does not measure all the time.
    Resting {
        /// The mode in its configuration.
        mode: u16,
    },
}

impl<E: fmt::Display> fmt::Display for ChipError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bus(error) => write!(f, "{error}"),
            Self::Other { maker, die } => {
                write!(f, "another chip answers: maker {maker:#06x}, die {die:#06x}")
            }
            Self::Driver => f.write_str("its driver refuses a number: report it"),
            Self::Resting { mode } => write!(
                f,
                "it rests: its configuration has mode {mode}, and {CONTINUOUS} measures all the time"
            ),
        }
    }
}

impl<E> ChipError<E> {
    fn of(error: ina233_rs::Error<E>) -> Self {
        match error {
            ina233_rs::Error::I2C(error) => Self::Bus(error),
            ina233_rs::Error::InvalidInputData => Self::Driver,
        }
    }
}

/// The bits of a shunt's voltage in volts, of which its driver made a `f32`: 16 of its 24 bits.
#[allow(clippy::cast_possible_truncation, reason = "it was 16 bits times 2.5 uV")]
fn bits(volts: f32) -> i64 {
    (f64::from(volts) * 1e9 / 2_500.0).round() as i64
}

impl<I2C: I2c> Chip<I2C> {
    /// Takes the bus, and looks whether it is this chip, and measures.
    ///
    /// # Errors
    /// [`ChipError::Bus`], [`ChipError::Other`], [`ChipError::Resting`].
    pub fn open(bus: I2C, monitor: &Monitor) -> Result<Self, ChipError<I2C::Error>> {
        let (driver, maker, die, mode) = match monitor.model {
            Model::Ina226 | Model::Ina260 => {
                let mut driver = INA226::new(bus, monitor.addr);
                let maker = driver.manufacturer_id().map_err(ChipError::Bus)?;
                let die = driver.die_id().map_err(ChipError::Bus)?;
                let mode = driver.configuration_raw().map_err(ChipError::Bus)?;
                (Driver::Registers(driver), maker, die, mode)
            }
            Model::Ina233 => {
                // The resistor is this program's: the driver would reckon in floating point.
                let mut driver = Ina233::new(bus, monitor.addr, 1.0);
                let maker = word(driver.read_ti_mfr_id().map_err(ChipError::of)?);
                let die = word(driver.read_ti_mfr_model().map_err(ChipError::of)?);
                let mode = word(driver.read_mfr_adc_config().map_err(ChipError::of)?);
                // Two letters, of which the data sheet does not say which one comes first.
                let maker = if maker.swap_bytes() == TI { TI } else { maker };
                (Driver::PmBus(driver), maker, die, mode)
            }
        };
        if maker != TI || !monitor.model.is(die) {
            return Err(ChipError::Other { maker, die });
        }
        let mode = mode & CONTINUOUS;
        if mode == CONTINUOUS {
            Ok(Self { driver, monitor: monitor.clone() })
        } else {
            Err(ChipError::Resting { mode })
        }
    }

    /// The power now, in microwatts: the product of the chip's last voltage and current.
    ///
    /// # Errors
    /// [`ChipError::Bus`].
    pub fn microwatts(&mut self) -> Result<i64, ChipError<I2C::Error>> {
        let (bus, shunt) = match &mut self.driver {
            Driver::Registers(driver) => {
                let bus = i64::from(driver.bus_voltage_raw().map_err(ChipError::Bus)?);
                (bus, i64::from(driver.shunt_voltage_raw().map_err(ChipError::Bus)?))
            }
            Driver::PmBus(driver) => {
                // READ_VOUT is READ_VIN's number, without its driver's floating point.
                let bus = i64::from(word(driver.read_vout().map_err(ChipError::of)?));
                (bus, bits(driver.read_mfr_read_vshunt().map_err(ChipError::of)?))
            }
        };
        let (bus, shunt) = (bus * BUS_UV, shunt * SHUNT_NV);
        // Nanovolts by micro-ohms are milliamperes, times microvolts are nanowatts: at most 2^53.
        Ok(bus * shunt / i64::from(self.monitor.shunt_uohm) / 1000)
    }
}

impl<I2C> fmt::Debug for Chip<I2C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chip").field("monitor", &self.monitor).finish_non_exhaustive()
    }
}

impl Model {
    /// Every chip that is known here.
    pub const ALL: [Self; 3] = [Self::Ina226, Self::Ina233, Self::Ina260];
}

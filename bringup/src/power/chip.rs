//! A monitor that is read through its bus.

use super::{Model, Monitor};
use embedded_hal::i2c::I2c;
use ina226::INA226;
use std::fmt;

/// TI's number (SBOS547A, table 7-22).
const TI: u16 = 0x5449;
/// The configuration's mode "shunt and bus, continuous" (SBOS547A, table 7-9).
const CONTINUOUS: u16 = 7;

/// The weight of a bit: 1.25 mV of the bus, 2.5 uV of the shunt (SBOS547A, 7.5). An INA260's
/// current has 1.25 mA a bit, which is 2.5 uV at its 2 mOhm, and the same registers.
const BUS_UV: i64 = 1_250;
const SHUNT_NV: i64 = 2_500;

/// A monitor on any bus of embedded-hal's. It is read, and never written: its averages and its
/// calibration are whoever's they were.
///
/// The chip remembers the register that is read next, so one program at a time may read it.
pub struct Chip<I2C> {
    driver: INA226<I2C>,
    monitor: Monitor,
}

/// The reason why a monitor has no reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChipError<E> {
    /// The bus: nobody answers, or a driver of the kernel has the chip.
    Bus(E),
    /// It is another chip.
    Other {
        /// The maker's number.
        maker: u16,
        /// The die's number.
        die: u16,
    },
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
            Self::Other { maker, die } => write!(f, "another chip answers: maker {maker:#06x}, die {die:#06x}"),
            Self::Resting { mode } => write!(f, "it rests: its configuration has mode {mode}, and {CONTINUOUS} measures all the time"),
        }
    }
}

impl<I2C: I2c> Chip<I2C> {
    /// Takes the bus, and looks whether it is this chip, and measures.
    ///
    /// # Errors
    /// [`ChipError::Bus`], [`ChipError::Other`], [`ChipError::Resting`].
    pub fn open(bus: I2C, monitor: &Monitor) -> Result<Self, ChipError<I2C::Error>> {
        let mut driver = INA226::new(bus, monitor.addr);
        let maker = driver.manufacturer_id().map_err(ChipError::Bus)?;
        let die = driver.die_id().map_err(ChipError::Bus)?;
        if maker != TI || die >> 4 != monitor.model.die() {
            return Err(ChipError::Other { maker, die });
        }
        let mode = driver.configuration_raw().map_err(ChipError::Bus)? & CONTINUOUS;
        if mode == CONTINUOUS { Ok(Self { driver, monitor: monitor.clone() }) } else { Err(ChipError::Resting { mode }) }
    }

    /// The power now, in microwatts: the product of the chip's last voltage and current.
    ///
    /// # Errors
    /// The bus's.
    pub fn microwatts(&mut self) -> Result<i64, I2C::Error> {
        let bus = i64::from(self.driver.bus_voltage_raw()?) * BUS_UV;
        let shunt = i64::from(self.driver.shunt_voltage_raw()?) * SHUNT_NV;
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
    pub const ALL: [Self; 2] = [Self::Ina226, Self::Ina260];
}

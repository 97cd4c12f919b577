//! A monitor without a kernel driver, by its place on an I2C bus, and its readings there.

use embedded_hal::i2c::I2c;
use ina226::INA226;
use ina233_rs::Ina233;
use std::fmt;
use std::str::FromStr;

/// A monitor on an I2C bus: `ina260@1:0x40`, `ina226@1:0x41,shunt_uohm=2000`.
///
/// If the kernel has a driver for it, prefer that: it knows the shunt from the device tree, and
/// lets other programs read as well. Through the bus, only one program at a time reads a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// The kind of chip.
    pub model: Model,
    /// The number of `/dev/i2c-N`.
    pub bus: u8,
    /// Its 7-bit address.
    pub addr: u8,
    /// The resistor in the rail, in micro-ohms. An INA260 has its own, of 2 mOhm (SBOS656C, 7.1).
    pub shunt_uohm: u32,
}

/// A chip that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// INA226, with a shunt on the board.
    Ina226,
    /// INA233, which is like INA226, behind PMBus.
    Ina233,
    /// INA260, with a shunt in the chip.
    Ina260,
}

impl Model {
    /// Whether `die` is this chip's number, of any revision (SBOS547A, table 7-23; SBOS656C, table
    /// 7-15). An INA233 has "33" in letters (SBOS790A, `TI_MFR_MODEL`).
    pub(super) const fn is(self, die: u16) -> bool {
        match self {
            Self::Ina226 => die >> 4 == 0x226,
            Self::Ina233 => die == 0x3333,
            Self::Ina260 => die >> 4 == 0x227,
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ina226 => "ina226",
            Self::Ina233 => "ina233",
            Self::Ina260 => "ina260",
        })
    }
}

impl fmt::Display for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{:#04x}", self.model, self.bus, self.addr)
    }
}

/// The resistor in an INA260.
const INA260_UOHM: u32 = 2_000;
/// 7-bit addresses that no chip has (I2C specification, UM10204, table 4).
const RESERVED: [std::ops::RangeInclusive<u8>; 2] = [0..=0x07, 0x78..=0xff];

impl FromStr for Monitor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (model, rest) = text.split_once('@')?;
            let (bus, rest) = rest.split_once(':')?;
            let (addr, shunt) =
                rest.split_once(',').map_or((rest, None), |(addr, shunt)| (addr, Some(shunt)));
            let given = |shunt: &str| {
                shunt.strip_prefix("shunt_uohm=")?.parse().ok().filter(|&uohm| uohm > 0)
            };
            let (model, shunt_uohm) = match (model, shunt) {
                ("ina260", None) => (Model::Ina260, INA260_UOHM),
                ("ina226", Some(shunt)) => (Model::Ina226, given(shunt)?),
                ("ina233", Some(shunt)) => (Model::Ina233, given(shunt)?),
                _ => return None,
            };
            let addr = u8::from_str_radix(addr.strip_prefix("0x")?, 16).ok()?;
            let known = !RESERVED.iter().any(|range| range.contains(&addr));
            known.then_some(Self { model, bus: bus.parse().ok()?, addr, shunt_uohm })
        };
        parsed().ok_or_else(|| {
            format!(
                "{text:?} is no monitor: write ina260@BUS:ADDR (ina260@1:0x40), or \
                 ina226@1:0x40,shunt_uohm=2000 (ina233 the same)"
            )
        })
    }
}

/// TI's number (SBOS547A, table 7-22).
const TI: u16 = 0x5449;
/// The configuration's mode "shunt and bus, continuous" (SBOS547A, table 7-9).
const CONTINUOUS: u16 = 7;

/// The weight of a bit: 1.25 mV for the bus, 2.5 uV for the shunt (SBOS547A, 7.5). An INA260's
/// current has 1.25 mA a bit in the same register, which is 2.5 uV at its 2 mOhm. An INA233 has the
/// same weights behind PMBus's commands (SBOS790A, 6.5.3; Linux, `drivers/hwmon/pmbus/ina233.c`).
const BUS_UV: i64 = 1_250;
const SHUNT_NV: i64 = 2_500;

/// A monitor on any bus of embedded-hal's. It is only read: its averages and its calibration stay
/// as they were set.
///
/// The chip stores the number of the next register, so only one program at a time may read it.
pub struct Chip<I2C> {
    driver: Driver<I2C>,
    monitor: Monitor,
}

enum Driver<I2C> {
    Registers(INA226<I2C>),
    PmBus(Ina233<I2C>),
}

/// The word of PMBus, from the driver's signed value.
const fn word(raw: i16) -> u16 {
    raw.cast_unsigned()
}

/// The reason why a monitor has no reading.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum ChipError<E> {
    #[error("{0}")]
    Bus(E),
    #[error("another chip answers: maker {maker:#06x}, die {die:#06x}")]
    Other { maker: u16, die: u16 },
    #[error("its driver refuses a number: report it")]
    Driver,
    #[error("it rests: its configuration has mode {mode}, and {CONTINUOUS} measures all the time")]
    Resting { mode: u16 },
}

impl<E> ChipError<E> {
    fn of(error: ina233_rs::Error<E>) -> Self {
        match error {
            ina233_rs::Error::I2C(error) => Self::Bus(error),
            ina233_rs::Error::InvalidInputData => Self::Driver,
        }
    }
}

/// A shunt's voltage in volts, as the 16 bits from which its driver made the `f32` of 24 bits.
#[allow(clippy::cast_possible_truncation, reason = "it was 16 bits times 2.5 uV")]
fn bits(volts: f32) -> i64 {
    (f64::from(volts) * 1e9 / 2_500.0).round() as i64
}

impl<I2C: I2c> Chip<I2C> {
    /// Takes the bus, and checks that it is this chip, and that it measures.
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
                // This program divides by the resistor: the driver would use floating point.
                let mut driver = Ina233::new(bus, monitor.addr, 1.0);
                let maker = word(driver.read_ti_mfr_id().map_err(ChipError::of)?);
                let die = word(driver.read_ti_mfr_model().map_err(ChipError::of)?);
                let mode = word(driver.read_mfr_adc_config().map_err(ChipError::of)?);
                // Two letters. The data sheet does not define which one comes first.
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

    /// The current power in microwatts: the product of the chip's last voltage and current.
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
                // READ_VOUT returns READ_VIN's number, without its driver's floating point.
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

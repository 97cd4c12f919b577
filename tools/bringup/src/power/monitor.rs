//! A monitor that the kernel has no driver for, by its place on an I2C bus.

use super::PowerError;
use std::{fmt, str::FromStr};

/// A monitor on an I2C bus: `ina260@1:0x40`, `ina226@1:0x41,shunt_uohm=2000`.
///
/// Where the kernel has a driver for it, that is the better way: it knows the shunt from the device
/// tree, and other programs may read beside. Through the bus one program at a time reads a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Which chip.
    pub model: Model,
    /// The number of `/dev/i2c-N`.
    pub bus: u8,
    /// Its address of 7 bits.
    pub addr: u8,
    /// The resistor in the rail, in micro-ohms. An INA260 has its own, of 2 mOhm (SBOS656C, 7.1).
    pub shunt_uohm: u32,
}

/// A chip that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// INA226, with a shunt on the board.
    Ina226,
    /// INA233, the same behind PMBus.
    Ina233,
    /// INA260, with a shunt in the chip.
    Ina260,
}

impl Model {
    /// Whether this is its die's number, of any revision (SBOS547A, table 7-23; SBOS656C,
    /// table 7-15). An INA233 says "33" in letters (SBOS790A, `TI_MFR_MODEL`).
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
/// Addresses of 7 bits that are no chip's (I2C specification, UM10204, table 4).
const RESERVED: [std::ops::RangeInclusive<u8>; 2] = [0..=0x07, 0x78..=0xff];

impl FromStr for Monitor {
    type Err = PowerError;

    fn from_str(text: &str) -> Result<Self, PowerError> {
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
        parsed().ok_or_else(|| PowerError::NotAMonitor(text.to_owned()))
    }
}

//! The clocks that a processor gives its fabric, and the control that sets one.

use crate::bitstream::Family;
use crate::fpga::{FpgaError, User, listed, users};
use crate::machine::Machine;
use std::path::PathBuf;
use std::{fmt, io};

/// The largest difference of equal rates, in percent: dividers are whole numbers, so a design for
/// 100 MHz gets 99 999 001 Hz.
pub(super) const TOLERANCE: u64 = 1;

/// A processor gives its fabric four clocks (UG585, UG1085).
const CLOCKS: u8 = 4;

/// The number of the first of these clocks at its controller (Linux, `drivers/clk/zynq/clkc.c` and
/// `include/dt-bindings/clock/xlnx-zynqmp-clk.h`).
const FIRST: [(u32, Family); 2] = [(15, Family::Zynq7000), (71, Family::ZynqMp)];

/// One of a processor's clocks for the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fabric(u8);

impl Fabric {
    /// FCLK `number` of Zynq-7000, PL `number` of ZynqMP, user clock `number` of Cyclone V; 0 to 3.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number < CLOCKS { Some(Self(number)) } else { None }
    }

    /// The clock of this name: `fclk0`, `pl0`, `pl0_ref`, `h2f_user0_clk`. Cyclone V has three of
    /// the last form; no driver sets one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let zynqmp =
            || name.strip_prefix("pl").map(|rest| rest.strip_suffix("_ref").unwrap_or(rest));
        let cyclone = || name.strip_prefix("h2f_user")?.strip_suffix("_clk");
        let digit = name.strip_prefix("fclk").or_else(zynqmp).or_else(cyclone)?;
        Self::new(digit.parse().ok()?)
    }

    /// The family whose clock controller has this clock at `number`.
    pub(super) fn family(self, number: u32) -> Option<Family> {
        FIRST
            .into_iter()
            .find_map(|(first, family)| (first + u32::from(self.0) == number).then_some(family))
    }

    /// The clock at `number` of this family's controller.
    pub(super) fn of_number(family: Family, number: u32) -> Option<Self> {
        let (first, _) = FIRST.into_iter().find(|&(_, of)| of == family)?;
        Self::new(u8::try_from(number.checked_sub(first)?).ok()?)
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock {} of the fabric", self.0)
    }
}

/// Whether `hz` is the rate `wanted`, as near as dividers come.
pub(super) const fn is_near(hz: u64, wanted: u64) -> bool {
    hz.abs_diff(wanted) <= wanted / 100 * TOLERANCE
}

const DEVICES: &str = "sys/bus/platform/devices";

/// The driver in AMD's kernels for one clock of the fabric.
const COMPATIBLE: &str = "xlnx,fclk";

/// The class of I. Kawazome's driver, which Debian images for Zynq have beside u-dma-buf
/// (ikwzm/fclkcfg, Readme.md). It controls the first clock of its node.
const FCLKCFG: &str = "sys/class/fclkcfg";

/// A kernel file that sets one clock of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The clock.
    pub fabric: Fabric,
    family: Family,
    file: String,
}

impl Control {
    /// Finds the control of `fabric`: the device `xlnx,fclk`, or one of fclkcfg's, whose node has
    /// that clock.
    ///
    /// # Errors
    /// [`ClockError::NoControl`]: this kernel or its tree has none, like mainline Linux.
    pub fn find(machine: &Machine, fabric: Fabric) -> Result<Self, ClockError> {
        let vendors = machine.list(DEVICES).into_iter().map(|device| {
            let node = format!("{DEVICES}/{device}/of_node");
            let is = machine
                .text(format!("{node}/compatible"))
                .is_some_and(|text| text.split('\0').any(|word| word == COMPATIBLE));
            (is, node, format!("{DEVICES}/{device}/set_rate"))
        });
        let others = machine.list(FCLKCFG).into_iter().map(|name| {
            (true, format!("{FCLKCFG}/{name}/device/of_node"), format!("{FCLKCFG}/{name}/rate"))
        });
        let found = vendors.chain(others).find_map(|(is, node, file)| {
            let family =
                number(machine, &node).filter(|_| is).and_then(|number| fabric.family(number))?;
            machine.has(&file).then_some(Self { fabric, family, file })
        });
        found.ok_or(ClockError::NoControl(fabric))
    }

    /// The current rate, in Hz.
    ///
    /// # Errors
    /// [`ClockError::Unreadable`].
    pub fn hz(&self, machine: &Machine) -> Result<u64, ClockError> {
        let text = machine.text(&self.file).unwrap_or_default();
        text.parse()
            .map_err(|_| ClockError::Unreadable { path: format!("/{}", self.file).into(), text })
    }

    /// Sets the rate, and returns the rate that the clock then has.
    ///
    /// # Errors
    /// [`ClockError::InUse`]: a program or a driver has a node of the fabric, whose core would miss
    /// a cycle. [`ClockError::Refused`]: the kernel's own error. [`ClockError::Rate`]: no divider
    /// gives a near rate; the old rate was set again. [`ClockError::NotSetBack`]: that failed, and
    /// the clock now has another rate.
    pub fn set(&self, machine: &Machine, hz: u64) -> Result<u64, ClockError> {
        let users = users::of(machine, Some(self.family)).map_err(Box::new)?;
        if !users.is_empty() {
            return Err(ClockError::InUse(users));
        }
        let before = self.hz(machine)?;
        self.write(machine, hz)?;
        let failed = match self.hz(machine) {
            Ok(after) if is_near(after, hz) => return Ok(after),
            Ok(nearest) => ClockError::Rate { fabric: self.fabric, wanted: hz, nearest },
            Err(error) => error,
        };
        let error = self.write(machine, before).err();
        match self.hz(machine).ok() {
            Some(has) if is_near(has, before) => Err(failed),
            has_hz => Err(ClockError::NotSetBack {
                fabric: self.fabric,
                was_hz: before,
                has_hz,
                error: error.map(Box::new),
            }),
        }
    }

    fn write(&self, machine: &Machine, hz: u64) -> Result<(), ClockError> {
        let told =
            |error| ClockError::Refused { path: format!("/{}", self.file).into(), hz, error };
        machine.write(&self.file, hz.to_string().as_bytes()).map_err(told)
    }
}

/// The number of a node's clock at its controller: the second cell of `clocks`.
fn number(machine: &Machine, node: &str) -> Option<u32> {
    let cells = machine.bytes(format!("{node}/clocks"))?;
    cells.get(4..8)?.try_into().ok().map(u32::from_be_bytes)
}

/// The reason why a clock was not read or set. All but [`Self::NotSetBack`] leave it as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum ClockError {
    #[error("{path}{}", hidden(.error))]
    Hidden {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error(
        "the kernel's clk_summary has a form that is not known here: report it with its first lines"
    )]
    NotASummary,
    #[error(
        "this kernel has no way to set {0}: it needs AMD's driver and a node xlnx,fclk, or \
         fclkcfg. Without it the boot code sets it, or assigned-clock-rates in a core's node"
    )]
    NoControl(Fabric),
    #[error("{0}")]
    CannotSee(#[from] Box<FpgaError>),
    #[error("the fabric is in use, and its cores would miss a cycle:{} end them and try \
             again", listed(.0))]
    InUse(Vec<User>),
    #[error("{path} is {text:?}, and no rate")]
    Unreadable { path: PathBuf, text: String },
    #[error("{path} does not take {hz} Hz: {error}; run this as root")]
    Refused {
        path: PathBuf,
        hz: u64,
        #[source]
        error: io::Error,
    },
    #[error(
        "{fabric} has no {wanted} Hz; the nearest is {nearest} Hz, and it is as before: ask for a \
         rate that its PLL divides to"
    )]
    Rate { fabric: Fabric, wanted: u64, nearest: u64 },
    #[error("{fabric} had {was_hz} Hz, has {} now, and was not set back: start no job, and set it \
             again, or restart the board{}", rate(*.has_hz), because(.error.as_deref()))]
    NotSetBack {
        fabric: Fabric,
        was_hz: u64,
        has_hz: Option<u64>,
        #[source]
        error: Option<Box<ClockError>>,
    },
}

/// The end of a sentence that begins with the file.
fn hidden(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        " is not there: mount -t debugfs debug /sys/kernel/debug (the kernel needs CONFIG_DEBUG_FS \
         and CONFIG_COMMON_CLK)"
            .to_owned()
    } else {
        format!(": {error}; run this as root")
    }
}

fn rate(hz: Option<u64>) -> String {
    hz.map_or_else(|| "a rate that cannot be read".to_owned(), |hz| format!("{hz} Hz"))
}

fn because(error: Option<&ClockError>) -> String {
    error.map_or_else(String::new, |error| format!(" ({error})"))
}

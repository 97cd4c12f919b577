//! The way to set a clock of the fabric.

use super::{ClockError, Fabric, fabric::is_near};
use crate::{bitstream::Family, fpga::users, machine::Machine};

const DEVICES: &str = "sys/bus/platform/devices";

/// The driver of AMD's kernels for one clock of the fabric.
const COMPATIBLE: &str = "xlnx,fclk";

/// The class of I. Kawazome's driver, which Debian images for Zynq have beside u-dma-buf
/// (ikwzm/fclkcfg, Readme.md). Its clock is the first of its node's.
const FCLKCFG: &str = "sys/class/fclkcfg";

/// A file of the kernel that sets one clock of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The clock.
    pub fabric: Fabric,
    family: Family,
    file: String,
}

impl Control {
    /// The control of `fabric`: the device `xlnx,fclk`, or one of fclkcfg's, whose node has that
    /// clock.
    ///
    /// # Errors
    /// [`ClockError::NoControl`]: this kernel or its tree has none, as with mainline Linux.
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

    /// The rate now, in Hz.
    ///
    /// # Errors
    /// [`ClockError::Unreadable`].
    pub fn hz(&self, machine: &Machine) -> Result<u64, ClockError> {
        let text = machine.text(&self.file).unwrap_or_default();
        text.parse()
            .map_err(|_| ClockError::Unreadable { path: format!("/{}", self.file).into(), text })
    }

    /// Sets the rate, and reads which one it became.
    ///
    /// # Errors
    /// [`ClockError::InUse`]: a program or a driver has a node of the fabric, whose core would miss
    /// a cycle. [`ClockError::Refused`]: the kernel's own. [`ClockError::Rate`]: dividers give no
    /// rate that near; it was set back. [`ClockError::NotSetBack`]: that failed, and the clock has
    /// another rate now.
    pub fn set(&self, machine: &Machine, hz: u64) -> Result<u64, ClockError> {
        let users = users::of(machine, Some(self.family))
            .map_err(|error| ClockError::CannotSee(Box::new(error)))?;
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

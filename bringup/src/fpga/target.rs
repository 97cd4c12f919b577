//! Which device this machine is.

use super::{FpgaError, Manager};
use crate::{
    bitstream::{Bitstream, Family, Part},
    machine::Machine,
};

/// The device of a machine, as far as it can be known without touching it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its family. `None`: nothing tells.
    pub family: Option<Family>,
    /// The device. `None`: only its family is known.
    pub part: Option<&'static Part>,
    /// Who says so.
    pub from: String,
}

impl Target {
    /// From a board's name, which somebody gave; from the processor's own number; else from the
    /// manager and the device tree, which tell the family.
    pub(super) fn find(machine: &Machine, manager: &Manager, board: Option<&str>) -> Result<Self, FpgaError> {
        if let Some(name) = board {
            let known = contigo_boards::ALL.iter().find(|board| board.name == name);
            let known = known.ok_or_else(|| FpgaError::NoSuchBoard(name.to_owned()))?;
            let chip = known.soc.rsplit(' ').next().unwrap_or_default();
            let part = Part::named(chip);
            let family = part.map(|part| part.family).or_else(|| Family::of_name(chip));
            return Ok(Self { family, part, from: format!("--board {name}") });
        }
        // Linux, arch/arm/mach-zynq/common.c: soc_id is the device code of PSS_IDCODE.
        let folder = "sys/devices/soc0";
        if machine.text(format!("{folder}/family")).as_deref() == Some("Xilinx Zynq") {
            let said = machine.text(format!("{folder}/soc_id")).unwrap_or_default();
            let code = u32::from_str_radix(said.trim_start_matches("0x"), 16).ok();
            if let Some(part) = code.and_then(Part::of_zynq) {
                return Ok(Self { family: Some(part.family), part: Some(part), from: format!("/{folder}/soc_id") });
            }
        }
        if let Some(family) = manager.family() {
            return Ok(Self { family: Some(family), part: None, from: manager.name.clone() });
        }
        let family = family_of(machine);
        Ok(Self { family, part: None, from: if family.is_some() { "the device tree" } else { "nothing" }.to_owned() })
    }

    /// Compares a bitstream with this device, by every number that both sides have.
    pub(super) fn check(&self, bitstream: &Bitstream) -> Result<(), FpgaError> {
        let other = |file: String| FpgaError::OtherDevice { file, here: self.to_string() };
        if let (Some(theirs), Some(ours)) = (bitstream.family(), self.family)
            && theirs != ours
        {
            let name = bitstream.device().map(|part| part.name);
            return Err(other(name.map_or_else(|| theirs.to_string(), |name| format!("{name} ({theirs})"))));
        }
        let Some(part) = self.part else { return Ok(()) };
        // The number first: the device itself compares it.
        if let (Some(theirs), Some(ours)) = (bitstream.idcode, part.idcode)
            && theirs & 0x0fff_ffff != ours
        {
            let name = Part::of_idcode(theirs).map_or("another device", |part| part.name);
            return Err(other(format!("{name} (IDCODE {theirs:#010x})")));
        }
        if let Some(theirs) = bitstream.device().filter(|theirs| *theirs != part) {
            return Err(other(theirs.name.to_owned()));
        }
        match part.full_bytes {
            Some(most) if bitstream.frame_bytes > most => Err(FpgaError::TooLarge { bytes: bitstream.frame_bytes, most, part: part.name }),
            _ => Ok(()),
        }
    }
}

/// The family of a machine, by its device tree.
pub(crate) fn family_of(machine: &Machine) -> Option<Family> {
    let root = machine.text("sys/firmware/devicetree/base/compatible").unwrap_or_default();
    let families = [
        (&contigo_boards::zynq7000::SOC, Family::Zynq7000),
        (&contigo_boards::zynqmp::SOC, Family::ZynqMp),
        (&contigo_boards::cyclone_v::SOC, Family::CycloneV),
    ];
    let soc = contigo_boards::by_compatible(root.as_bytes());
    families.iter().find(|(known, _)| soc == Some(*known)).map(|&(_, family)| family)
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.part, self.family) {
            (Some(part), _) => write!(f, "{}", part.name)?,
            (None, Some(family)) => write!(f, "a {family}")?,
            (None, None) => f.write_str("a device that nothing names")?,
        }
        write!(f, " (by {})", self.from)
    }
}

//! The device of this machine.

use super::{FpgaError, Manager};
use crate::bitstream::{Bitstream, Family, Part};
use crate::known::{Known, family_of};
use crate::machine::Machine;

/// The device of a machine, as far as it can be known without touching it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its family. `None`: not known.
    pub family: Option<Family>,
    /// The device. `None`: only the family is known.
    pub part: Option<&'static Part>,
    /// The source of both.
    pub from: String,
}

impl Target {
    /// Finds the device: by the board that the caller named, unless the processor or the manager
    /// contradicts it. Without a board, by the processor's own number, or by the board that the
    /// device tree names. Otherwise the manager and the tree give the family.
    pub(super) fn find(
        machine: &Machine,
        manager: &Manager,
        board: Option<&str>,
    ) -> Result<Self, FpgaError> {
        let processor = Self::processor(machine);
        let driver = manager.family().map(|family| Self {
            family: Some(family),
            part: None,
            from: manager.name.clone(),
        });
        if let Some(name) = board {
            let known = contigo_boards::ALL.iter().find(|board| board.name == name);
            let known = known.ok_or_else(|| FpgaError::NoSuchBoard(name.to_owned()))?;
            let given = Self::of_board(known, format!("--board {name}"));
            return match [processor, driver]
                .into_iter()
                .flatten()
                .find(|here| given.contradicts(here))
            {
                Some(here) => {
                    Err(FpgaError::OtherBoard { given: given.to_string(), here: here.to_string() })
                }
                None => Ok(given),
            };
        }
        // A tree is ignored if its board's family is not that of the kernel's driver.
        let named = Known::named(machine).map(|board| {
            Self::of_board(board, format!("the device tree, which names {}", board.name))
        });
        let named = named.filter(|named| {
            named.part.is_some() && !driver.as_ref().is_some_and(|driver| named.contradicts(driver))
        });
        let found = processor.or(named).or(driver);
        Ok(found.unwrap_or_else(|| {
            let family = family_of(machine);
            Self {
                family,
                part: None,
                from: if family.is_some() { "the device tree" } else { "nothing" }.to_owned(),
            }
        }))
    }

    fn of_board(board: &contigo_boards::Board, from: String) -> Self {
        let chip = board.soc.rsplit(' ').next().unwrap_or_default();
        let part = Part::named(chip);
        Self { family: part.map(|part| part.family).or_else(|| Family::of_name(chip)), part, from }
    }

    /// The device, by a Zynq-7000's own number. Linux, arch/arm/mach-zynq/common.c: soc_id is the
    /// device code of PSS_IDCODE.
    fn processor(machine: &Machine) -> Option<Self> {
        let folder = "sys/devices/soc0";
        if machine.text(format!("{folder}/family")).as_deref() != Some("Xilinx Zynq") {
            return None;
        }
        let said = machine.text(format!("{folder}/soc_id"))?;
        let part =
            u32::from_str_radix(said.trim_start_matches("0x"), 16).ok().and_then(Part::of_zynq)?;
        Some(Self {
            family: Some(part.family),
            part: Some(part),
            from: format!("/{folder}/soc_id"),
        })
    }

    /// Whether both name a family, or both a device, but not the same one.
    fn contradicts(&self, other: &Self) -> bool {
        let families = self.family.zip(other.family).is_some_and(|(ours, theirs)| ours != theirs);
        families || self.part.zip(other.part).is_some_and(|(ours, theirs)| ours != theirs)
    }

    /// Compares a bitstream with this device, by every number that both have.
    pub(super) fn check(&self, bitstream: &Bitstream) -> Result<(), FpgaError> {
        let other = |file: String| FpgaError::OtherDevice { file, here: self.to_string() };
        if let (Some(theirs), Some(ours)) = (bitstream.family(), self.family)
            && theirs != ours
        {
            let name = bitstream.device().map(|part| part.name);
            return Err(other(
                name.map_or_else(|| theirs.to_string(), |name| format!("{name} ({theirs})")),
            ));
        }
        let Some(part) = self.part else { return Ok(()) };
        // The number first, because the device itself compares it.
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
            Some(most) if bitstream.frame_bytes > most => {
                Err(FpgaError::TooLarge { bytes: bitstream.frame_bytes, most, part: part.name })
            }
            _ => Ok(()),
        }
    }
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

//! The known board that a machine is, and its SoC family, by the root of its device tree.

use crate::bitstream::Family;
use crate::machine::Machine;
use contigo_boards::{ALL, Board, Soc};

const TREE: &str = "sys/firmware/devicetree/base";

/// How sure the board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// The root of the tree has the board's name, in `compatible` or in `model`.
    ByName,
    /// The tree names the SoC. These boards have it, but other boards may have it, too.
    BySoc,
    /// The tree names no board or SoC that is known here.
    No,
}

/// The boards that a machine may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// How sure the board is.
    pub sure: Sure,
    /// One board by name, or all boards with the SoC.
    pub boards: Vec<&'static Board>,
}

impl Known {
    /// Finds the board by the root of a device tree: by the contents of `compatible` and `model`.
    #[must_use]
    pub fn of(compatible: &[u8], model: &[u8], soc: Option<&Soc>) -> Self {
        // The maker's entry for this exact board. Names overlap: an Orin Nano is a Jetson Orin.
        let entries = || compatible.split(|&byte| byte == 0);
        let own = |board: &&Board| {
            entries().any(|entry| board.compatible.iter().any(|one| one.as_bytes() == entry))
        };
        if let Some(board) = ALL.iter().find(own) {
            return Self { sure: Sure::ByName, boards: vec![board] };
        }
        let says = [compatible, model].map(|bytes| easy(&String::from_utf8_lossy(bytes)));
        let by_text = ALL.iter().filter(|board| board.compatible.is_empty());
        let named = by_text
            .into_iter()
            .find(|board| says.iter().any(|text| text.contains(&format!("-{}-", board.name))));
        if let Some(board) = named {
            return Self { sure: Sure::ByName, boards: vec![board] };
        }
        // The text continues with the chip: `Cyclone V 5CSEBA6` for the SoC `Cyclone V SoC`.
        let has = |board: &&Board| {
            soc.is_some_and(|soc| board.soc.starts_with(soc.name.trim_end_matches(" SoC")))
        };
        let boards: Vec<_> = ALL.iter().filter(has).collect();
        Self { sure: if boards.is_empty() { Sure::No } else { Sure::BySoc }, boards }
    }

    /// The board that a machine's tree names.
    pub(crate) fn named(machine: &Machine) -> Option<&'static Board> {
        let root = |name: &str| machine.bytes(format!("{TREE}/{name}")).unwrap_or_default();
        let (compatible, model) = (root("compatible"), root("model"));
        let known = Self::of(&compatible, &model, contigo_boards::by_compatible(&compatible));
        known.boards.first().copied().filter(|_| known.sure == Sure::ByName)
    }

    /// The names of these boards' ports, each once: boards with one SoC have the same ports, or
    /// some of them. `contigo_boards::port` finds a port by its name.
    #[must_use]
    pub fn ports(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for port in self.boards.iter().flat_map(|board| board.ports) {
            if !names.contains(&port.name) {
                names.push(port.name);
            }
        }
        names
    }
}

/// A text in the form of the boards' names: `Zynq PYNQ-Z2` is `-zynq-pynq-z2-`.
fn easy(text: &str) -> String {
    let letters = text.chars().map(|letter| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }
    });
    format!("-{}-", letters.collect::<String>())
}

/// The family of a machine, by its device tree.
pub(crate) fn family_of(machine: &Machine) -> Option<Family> {
    let root = machine.text(format!("{TREE}/compatible")).unwrap_or_default();
    let families = [
        (&contigo_boards::zynq7000::SOC, Family::Zynq7000),
        (&contigo_boards::zynqmp::SOC, Family::ZynqMp),
        (&contigo_boards::cyclone_v::SOC, Family::CycloneV),
    ];
    let soc = contigo_boards::by_compatible(root.as_bytes());
    families.iter().find(|(known, _)| soc == Some(*known)).map(|&(_, family)| family)
}

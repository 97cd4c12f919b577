//! The systems on chip of these boards, and the DMA engines that each has before any bitstream is
//! loaded.

use crate::SOCS;
use contigo::Port;

/// A system on chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soc {
    /// The name of its family.
    pub name: &'static str,
    /// The entry of the device tree's root `compatible` that every board with it has.
    pub compatible: &'static str,
    /// Its DMA engines that a driver here knows, in the order in which a self-test tries them.
    pub engines: &'static [DmaEngine],
}

/// One DMA engine, or one channel of one: a node of the device tree with registers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaEngine {
    /// Which driver it takes.
    pub kind: DmaKind,
    /// The physical address of its registers, by which its node is known, whatever the node is
    /// called.
    pub registers: u64,
    /// How its master reaches memory.
    pub port: Port,
}

/// Which driver a DMA engine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaKind {
    /// Arm's PL330.
    Pl330,
    /// One channel of ZynqMP's general-purpose DMA.
    Zdma,
}

impl DmaKind {
    /// Its driver's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pl330 => "pl330",
            Self::Zdma => "zdma",
        }
    }
}

/// The system on chip whose `compatible` is among those of a device tree's root
/// (`/proc/device-tree/compatible`, between NULs).
#[must_use]
pub fn by_compatible(root: &[u8]) -> Option<&'static Soc> {
    SOCS.iter()
        .find(|soc| root.split(|&byte| byte == 0).any(|entry| entry == soc.compatible.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_known_by_any_of_its_names() {
        let found = by_compatible(b"xlnx,zynq-zc702\0xlnx,zynq-7000\0");
        assert_eq!(found.map(|soc| soc.name), Some("Zynq-7000"));
        assert_eq!(
            by_compatible(b"nvidia,p3450-0000\0nvidia,tegra210\0").map(|soc| soc.name),
            Some("Tegra X1")
        );
        assert_eq!(
            by_compatible(b"xlnx,zynqmp-zcu102-rev1.0\0xlnx,zynqmp\0").map(|soc| soc.name),
            Some("Zynq UltraScale+")
        );
        for none in [b"" as &[u8], b"linux,dummy-virt\0", b"xlnx,zynq-7000s\0", b"my,xlnx,zynqmp\0"]
        {
            assert_eq!(by_compatible(none), None);
        }
    }

    #[test]
    fn no_two_engines_of_a_soc_have_one_address() {
        for soc in SOCS {
            for (index, engine) in soc.engines.iter().enumerate() {
                assert!(
                    soc.engines
                        .iter()
                        .skip(index + 1)
                        .all(|other| other.registers != engine.registers),
                    "{}",
                    soc.name
                );
            }
        }
    }
}

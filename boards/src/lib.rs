//! The boards that Contigo knows: for each, which bus masters can reach memory, where, and whether
//! they see the CPU's caches.
//!
//! A board is a constant, and adding one of your own is one more. Those here are made from a folder
//! each (`boards/README.md`). The addresses come from the manuals that each constant names. A port
//! says what the *silicon* reaches, so a board with less memory than that never hands out the rest.
//!
//! ```
//! use contigo::{DevAddr, Error, PhysAddr, types::BaseAddr};
//! use contigo_boards::{cyclone_v, zynq7000};
//!
//! // The same byte has another address through each port.
//! let frame = BaseAddr::Phys(PhysAddr(0x0200_0000));
//! assert_eq!(zynq7000::HP0.dev_addr(frame, 4096)?, DevAddr(0x0200_0000));
//! assert_eq!(cyclone_v::ACP.dev_addr(frame, 4096)?, DevAddr(0x8200_0000));
//!
//! // What a port does not reach is refused, with the numbers.
//! let high = BaseAddr::Phys(PhysAddr(0x8_0000_0000));
//! assert!(matches!(zynq7000::HP0.dev_addr(high, 4096), Err(Error::Unreachable { .. })));
//! # Ok::<(), Error>(())
//! ```
#![no_std]

mod generated;

use contigo::Port;
pub use generated::*;

/// One board, as far as this runtime needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// A short name, for command lines: lower case and dashes.
    pub name: &'static str,
    /// Its maker's name for it, and how much memory it has.
    pub title: &'static str,
    /// The system on chip.
    pub soc: &'static str,
    /// Every way to memory that an accelerator in its fabric can have; none where none is known.
    pub ports: &'static [Port],
    /// The manual that the ports were read from.
    pub manual: &'static str,
    /// The entries of a device tree's root `compatible` that no other board has; none where the
    /// tree's name for the board is this one's.
    pub compatible: &'static [&'static str],
    /// Its ways to memory that are no ports, with their sources; empty where there is none.
    pub facts: &'static str,
    /// The rate of the crystal that the processor makes its clocks from, in Hz, where it is known.
    /// The board's `README.md` has its source.
    pub crystal_hz: Option<u64>,
}

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

/// Every port that has a name here: of the boards' fabrics, and of the DMA engines of their SoCs. A
/// port that several boards have comes several times.
pub fn ports() -> impl Iterator<Item = &'static Port> {
    let engines = SOCS.iter().flat_map(|soc| soc.engines).map(|engine| &engine.port);
    ALL.iter().flat_map(|board| board.ports).chain(engines)
}

/// The port that is called `name`.
///
/// ```
/// use contigo_boards::{port, zynq7000};
/// assert_eq!((port("zynq-hp0"), port("zynq-hp9")), (Some(zynq7000::HP0), None));
/// ```
#[must_use]
pub fn port(name: &str) -> Option<Port> {
    ports().find(|port| port.name == name).copied()
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn window_is_nonempty_and_fits_addr_lines() {
        for port in ports() {
            let (first, last) = port.window;
            assert!(first < last, "{}", port.name);
            assert!((1..=64).contains(&port.addr_bits), "{}", port.name);
            assert!(
                last <= u64::MAX >> (64 - port.addr_bits),
                "{}: {last:#x} does not fit {} bits",
                port.name,
                port.addr_bits
            );
        }
    }

    #[test]
    fn window_begins_at_or_above_offset() {
        for port in ports() {
            assert!(
                port.offset <= port.window.0,
                "{}: the window begins below physical address 0",
                port.name
            );
        }
    }

    #[test]
    fn names_are_unique_and_easy_to_type() {
        let easy =
            |name: &str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let boards: BTreeSet<_> = ALL.iter().map(|board| board.name).collect();
        assert_eq!(boards.len(), ALL.len());
        assert!(boards.into_iter().all(easy));
        for board in ALL {
            let names: BTreeSet<_> = board.ports.iter().map(|port| port.name).collect();
            assert_eq!(names.len(), board.ports.len(), "{}", board.name);
            assert!(names.into_iter().all(easy), "{}", board.name);
        }
    }

    #[test]
    fn a_port_name_means_the_same_port_everywhere() {
        for one in ports() {
            assert!(
                ports().filter(|other| other.name == one.name).all(|other| other == one),
                "{}",
                one.name
            );
        }
    }

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

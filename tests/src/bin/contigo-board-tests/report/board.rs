//! Which board this is, by its device tree.

use contigo_bringup::{board, machine::Machine};
use serde::Serialize;

/// A board, as its tree names it.
#[derive(Debug, Serialize)]
pub(super) struct Board {
    /// The folder in `boards/`, where the tree has its name.
    name: Option<&'static str>,
    /// Those that it may be: of the same SoC, where the tree has no board's name.
    may_be: Vec<&'static str>,
    model: Option<String>,
    compatible: Vec<String>,
    soc: Option<&'static str>,
}

impl Board {
    pub(super) fn of(machine: &Machine) -> Self {
        let board = board::Board::of(machine);
        let names: Vec<_> = board.known.boards.iter().map(|board| board.name).collect();
        let by_name = board.known.sure == board::Sure::ByName;
        let compatible =
            machine.bytes("sys/firmware/devicetree/base/compatible").unwrap_or_default();
        let compatible = String::from_utf8_lossy(&compatible);
        Self {
            name: names.first().copied().filter(|_| by_name),
            may_be: if by_name { Vec::new() } else { names },
            model: board.model,
            compatible: compatible
                .split('\0')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
            soc: board.soc.map(|soc| soc.name),
        }
    }
}

//! Which processor a board has.

use contigo_cross::{
    failure::Result,
    targets::{self, AARCH64, ARMV7, Target},
};

/// The boards, by the names that `contigo boards` has for them, and the families that their images are made for.
const BOARDS: [(&str, &Target); 8] = [
    ("pynq-z2", &ARMV7),
    ("zynq", &ARMV7),
    ("de10-nano", &ARMV7),
    ("kv260", &AARCH64),
    ("kria", &AARCH64),
    ("zcu102", &AARCH64),
    ("zynqmp", &AARCH64),
    ("jetson", &AARCH64),
];

/// The processor of the board `name`, which may also be a processor itself; else the error that lists the boards.
pub(crate) fn target(name: &str) -> Result<&'static Target> {
    let board = BOARDS.into_iter().find(|(board, _)| *board == name).map(|(_, target)| target);
    board.or_else(|| Target::named(name).ok()).ok_or_else(|| {
        let boards = BOARDS.map(|(board, _)| board).join(", ");
        let triples = targets::ALL.map(|target| target.triple).join(", ");
        anyhow::anyhow!("no board \"{name}\"; there are {boards}; or name a processor: {triples}")
    })
}

/// The boards that have this processor.
pub(crate) fn of(target: &Target) -> Vec<&'static str> {
    BOARDS.into_iter().filter(|(_, of)| *of == target).map(|(board, _)| board).collect()
}

#[cfg(test)]
mod tests {
    use super::target;

    /// Boards that are not built for on another machine.
    const NOT_CROSS: [&str; 2] = ["sim", "pc"];

    #[test]
    fn every_board_that_contigo_knows_has_a_processor() {
        for board in contigo_boards::ALL.iter().filter(|board| !NOT_CROSS.contains(&board.name)) {
            assert!(target(board.name).is_ok(), "{}", board.name);
        }
    }

    #[test]
    fn a_cortex_a9_is_no_arm64() -> contigo_cross::failure::Result<()> {
        for (board, debian) in [("pynq-z2", "armhf"), ("de10-nano", "armhf"), ("kv260", "arm64"), ("jetson", "arm64")] {
            assert_eq!(target(board)?.debian, debian, "{board}");
        }
        assert_eq!(target("aarch64-unknown-linux-gnu")?.debian, "arm64");
        Ok(())
    }
}

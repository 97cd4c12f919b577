//! Which processor a board has.

mod table;

use contigo_cross::failure::Result;
use contigo_cross::targets::{self, Target};
use table::BOARDS;

/// The processor of the board `name`, which may also be a processor itself; else the error that
/// lists the boards.
pub(crate) fn target(name: &str) -> Result<&'static Target> {
    let board = BOARDS.iter().find(|(board, _)| *board == name).map(|(_, target)| *target);
    board.or_else(|| Target::named(name).ok()).ok_or_else(|| {
        let boards = BOARDS.iter().map(|(board, _)| *board).collect::<Vec<_>>().join(", ");
        let triples = targets::PACKAGED.map(|target| target.triple).join(", ");
        anyhow::anyhow!("no board \"{name}\"; there are {boards}; or name a processor: {triples}")
    })
}

/// The boards that have this processor.
pub(crate) fn of(target: &Target) -> Vec<&'static str> {
    BOARDS.iter().filter(|(_, of)| *of == target).map(|(board, _)| *board).collect()
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_cortex_a9_is_no_arm64() -> contigo_cross::failure::Result<()> {
        for (board, debian) in
            [("pynq-z2", "armhf"), ("de10-nano", "armhf"), ("kv260", "arm64"), ("jetson", "arm64")]
        {
            assert_eq!(target(board)?.debian, debian, "{board}");
        }
        assert_eq!(target("aarch64-unknown-linux-gnu")?.debian, "arm64");
        Ok(())
    }
}

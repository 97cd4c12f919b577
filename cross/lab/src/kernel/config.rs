//! A kernel's configuration: fragments over allnoconfig, and the check that the kernel took every
//! one of them.

use crate::board::Board;
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

const FRAGMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernel");

/// The fragments of a board, one after the other: common, the architecture's, its own, its
/// variant's.
pub(crate) fn fragments(board: &Board) -> Result<String> {
    let shared = Path::new(FRAGMENTS);
    let architecture = shared.join(format!("{}.config", board.cpu().linux()));
    // An image has none of the options that debug a kernel.
    let own = if board.about.image.is_some() {
        Some(shared.join("image.config"))
    } else {
        board.file("kernel.config")
    };
    let files = [Some(shared.join("common.config")), Some(architecture), own];
    let mut all = String::new();
    for file in files.into_iter().flatten() {
        all += &fs::read_to_string(&file)
            .with_context(|| format!("board {}: cannot read {}", board.name, file.display()))?;
    }
    let set = |option: &String| {
        let yes = if option.contains('=') { "" } else { "=y" };
        format!("CONFIG_{option}{yes}\n")
    };
    all.extend(board.about.kernel.options.iter().map(set));
    Ok(all)
}

/// Refuses a configuration in which something that the fragments ask for is not set: Kconfig drops
/// what it cannot have, and says nothing.
pub(crate) fn check(board: &Board, fragments: &str, config: &str) -> Result<()> {
    let got: HashSet<&str> = config.lines().map(str::trim).collect();
    let asked = fragments
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("CONFIG_") && !line.ends_with("=n"));
    let mut dropped: Vec<&str> = asked.filter(|line| !got.contains(line)).collect();
    dropped.sort_unstable();
    dropped.dedup();
    if dropped.is_empty() {
        return Ok(());
    }
    bail!(
        "board {}: this kernel does not take {}; see what each depends on with `make menuconfig`",
        board.name,
        dropped.join(", ")
    );
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn board(name: &str) -> Board {
        let boards = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"));
        Board::named(boards, &[name.to_owned()]).unwrap().pop().unwrap()
    }

    #[test]
    fn what_the_kernel_drops_is_named() {
        let zynq = board("zynq-6.12");
        let asked = "# a comment\nCONFIG_UIO=y\nCONFIG_CMA_SIZE_MBYTES=32\nCONFIG_NOPE=n\n";
        assert!(check(&zynq, asked, "CONFIG_UIO=y\nCONFIG_CMA_SIZE_MBYTES=32\n").is_ok());
        let got = "# CONFIG_UIO is not set\nCONFIG_CMA_SIZE_MBYTES=16\n";
        let refused = check(&zynq, asked, got).unwrap_err().to_string();
        for (option, is_named) in
            [("CONFIG_UIO=y", true), ("CONFIG_CMA_SIZE_MBYTES=32", true), ("NOPE", false)]
        {
            assert_eq!(refused.contains(option), is_named, "{option}: {refused}");
        }
    }

    /// The common options, the architecture's, the board's and the variant's, and no others. A
    /// module stays one.
    #[test]
    fn board_gets_its_own_fragments() {
        for (name, option, has) in [
            ("zynq-6.12", "CONFIG_DMABUF_HEAPS_CMA=y", true),
            ("zynq-6.12", "CONFIG_ARCH_ZYNQ=y", true),
            ("zynq-6.12", "CONFIG_ARCH_ZYNQMP=y", false),
            ("zynq-6.1", "CONFIG_UIO_PDRV_GENIRQ=y", true),
            ("zynq-6.12", "CONFIG_UIO_PDRV_GENIRQ=y", false),
            ("zynqmp", "CONFIG_UIO_PDRV_GENIRQ=y", false),
            ("virt-debug", "CONFIG_KASAN=y", true),
            ("virt-image", "CONFIG_KASAN=y", false),
            ("zynq-6.1", "CONFIG_I2C_STUB=m", true),
        ] {
            let all = fragments(&board(name)).unwrap();
            assert_eq!(all.lines().any(|line| line == option), has, "{name}: {option}");
        }
    }
}

//! A kernel's configuration: fragments over allnoconfig, and the check that the kernel took every
//! one of them.

use crate::board::Board;
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use std::{collections::HashSet, fs, path::Path};

/// The fragments for all boards and for each architecture.
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
        if option.contains('=') {
            format!("CONFIG_{option}\n")
        } else {
            format!("CONFIG_{option}=y\n")
        }
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

    fn board() -> Board {
        named("zynq-6.12")
    }

    fn named(name: &str) -> Board {
        let boards = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"));
        Board::named(boards, &[name.to_owned()]).unwrap().pop().unwrap()
    }

    #[test]
    fn what_the_kernel_drops_is_named() {
        let asked = "# a comment\nCONFIG_UIO=y\nCONFIG_CMA_SIZE_MBYTES=32\nCONFIG_NOPE=n\n";
        assert!(check(&board(), asked, "CONFIG_UIO=y\nCONFIG_CMA_SIZE_MBYTES=32\n").is_ok());
        let refused =
            check(&board(), asked, "# CONFIG_UIO is not set\nCONFIG_CMA_SIZE_MBYTES=16\n")
                .unwrap_err()
                .to_string();
        assert!(
            refused.contains("CONFIG_UIO=y") && refused.contains("CONFIG_CMA_SIZE_MBYTES=32"),
            "{refused}"
        );
        assert!(!refused.contains("NOPE"), "{refused}");
    }

    #[test]
    fn board_gets_common_and_own_arch_fragment() {
        let all = fragments(&board()).unwrap();
        assert!(
            all.contains("CONFIG_DMABUF_HEAPS_CMA=y")
                && all.contains("CONFIG_ARCH_ZYNQ=y")
                && !all.contains("CONFIG_ARCH_ZYNQMP=y")
        );
    }

    #[test]
    fn a_variants_options_are_its_own() {
        let uio = |name: &str| {
            fragments(&named(name)).unwrap().lines().any(|line| line == "CONFIG_UIO_PDRV_GENIRQ=y")
        };
        assert!(uio("zynq-6.1") && !uio("zynq-6.12") && !uio("zynqmp"));
        let debugs = |name: &str| fragments(&named(name)).unwrap().contains("CONFIG_KASAN=y");
        assert!(debugs("virt-debug") && !debugs("virt-image"));
        // A module stays one.
        assert!(
            fragments(&named("zynq-6.1")).unwrap().lines().any(|line| line == "CONFIG_I2C_STUB=m")
        );
    }
}

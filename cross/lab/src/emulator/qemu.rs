//! QEMU's command line, and the device tree that it gets. The line is one that Debian 12's QEMU 7.2
//! and 10.0 both take; a board with a model has a newer one.

use super::function::{self, Function};
use crate::board::Board;
use crate::kernel::{Kernel, Source};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::Result;
use std::path::{Path, PathBuf};

/// Who is at the board's serial console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Console {
    /// The lab, which reads a file.
    Log,
    /// A person at this terminal.
    Terminal,
    /// Another program, which gives QEMU its next serial port and its monitor.
    Another,
}

/// The emulator for this board, ready to be started. `function` is the model and its socket, where
/// the board has one.
pub(crate) fn command(
    board: &Board,
    kernel: &Kernel,
    initramfs: &Path,
    tree: Option<&Path>,
    function: Option<(&Function, &Path)>,
    console: Console,
) -> Result<Tool> {
    let about = &board.about;
    // -no-reboot with panic=-1: a panic ends QEMU. The exit status comes from the guest's last
    // program, by semihosting.
    let line = format!("console={} panic=-1 quiet {}", about.console, about.command_line);
    let what = format!("running {}", board.name);
    let (qemu, machine) = match function {
        None => (Tool::new(board.cpu().qemu(), what)?, about.qemu.machine.clone()),
        Some((function, socket)) => (
            function.qemu(what).args(function::arguments(&about.memory, socket)?),
            format!("{},memory-backend={}", about.qemu.machine, function::MEMORY),
        ),
    };
    let mut qemu = qemu
        .args(["-machine", &machine, "-m", &about.memory])
        .args(&about.qemu.arguments)
        .args(["-display", "none", "-no-reboot"])
        .args(["-semihosting-config", "enable=on,target=native,userspace=on"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", line.trim_end()]);
    if let Some(tree) = tree {
        qemu = qemu.arg("-dtb").arg(tree);
    }
    // With mon:stdio Ctrl-A X ends QEMU, and Ctrl-C goes to the guest.
    Ok(match console {
        Console::Log => qemu.args(["-monitor", "none", "-serial", "stdio"]),
        Console::Terminal => qemu.args(["-serial", "mon:stdio"]),
        Console::Another => qemu,
    })
}

/// Compiles the board's tree, which may include the trees of the kernel's own source, into
/// `folder`; `None` where the board has none because QEMU makes one.
pub(crate) fn device_tree(
    cache: &CacheDir,
    board: &Board,
    kernel: &Kernel,
    folder: &Path,
) -> Result<Option<PathBuf>> {
    let Some(source) = board.file(&board.about.tree) else { return Ok(None) };
    let log = cache.log(&format!("dts-{}", board.name))?;
    let (plain, blob) = (folder.join("board.dts"), folder.join("board.dtb"));
    let mut cpp = Tool::new("cpp", format!("reading {}'s device tree", board.name))?;
    cpp = cpp.args(["-nostdinc", "-undef", "-P", "-x", "assembler-with-cpp"]);
    if let Some(linux) = &kernel.source {
        for include in Source::tree_folders(linux, board.cpu().linux()) {
            cpp = cpp.arg("-I").arg(include);
        }
    }
    cpp.arg(&source).arg("-o").arg(&plain).writes(folder).run(&log)?;
    // Without its warnings (-q): they are about the kernel's trees, not about ours.
    let mut dtc = Tool::new("dtc", format!("compiling {}'s device tree", board.name))?
        .args(["-q", "-I", "dts", "-O", "dtb"]);
    if board.about.image.is_some() {
        // An overlay will be applied.
        dtc = dtc.arg("-@");
    }
    dtc.arg("-o").arg(&blob).arg(&plain).writes(folder).run(&log)?;
    Ok(Some(blob))
}

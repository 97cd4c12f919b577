//! QEMU's command line. It is one that Debian 12's QEMU 7.2 and 10.0 both take; a board with a
//! model has a newer one.

use super::function::{self, Function};
use crate::{board::Board, kernel::Kernel};
use contigo_cross::{command::Tool, failure::Result};
use std::path::Path;

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
        .args([
            "-display",
            "none",
            "-no-reboot",
            "-semihosting-config",
            "enable=on,target=native,userspace=on",
        ])
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

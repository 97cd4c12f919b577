//! Daemons that manage the fabric: Canonical's fpgad and AMD's dfx-mgrd.
//!
//! # References
//! fpgad, `cli/README.md`: `load bitstream FILE`, `remove bitstream`. dfx-mgr, `README.md`: its
//! daemon loads packages of `/lib/firmware/xilinx`, since 2025.2 also a file ("Lightweight use
//! cases"), and since 2026.1 it unloads by name. `example/sys/linux/dfx-mgr-client.c` has its
//! client's messages.

use super::{FpgaError, Manager, Way};
use crate::machine::Machine;
use std::io::ErrorKind;
use std::path::Path;

/// The name of the loaded file. It is always the same, because dfx-mgr unloads by it; a lock
/// separates two loads.
pub(super) const NAME: &str = "contigo-fpga.bin";
/// The paths of fpgad's client: in its snap, from a package, and as Cargo builds it.
const CLIENTS: [&str; 3] = ["snap/bin/fpgad", "usr/bin/fpgad", "usr/bin/fpgad_cli"];
/// dfx-mgr's client.
const DFX: &str = "usr/bin/dfx-mgr-client";
/// The client's message for a successful load. Older clients always end with status 0.
const DFX_LOADED: &str = "Loaded with slot_handle";
/// The client's message for an option that it does not have.
const DFX_OLD: &str = "not recognized";

pub(super) fn find(machine: &Machine) -> Option<Way> {
    let runs = |name: &str| {
        let process = |entry: &String| entry.bytes().all(|byte| byte.is_ascii_digit());
        machine
            .list("proc")
            .iter()
            .filter(|entry| process(entry))
            .any(|id| machine.text(format!("proc/{id}/comm")).as_deref() == Some(name))
    };
    if runs("dfx-mgrd") {
        return Some(Way::DfxMgr);
    }
    let client = CLIENTS.into_iter().find(|client| machine.has(client))?;
    runs("fpgad").then(|| Way::Fpgad { client: client.to_owned() })
}

/// Makes fpgad load the file at `path`, which is a path in the machine.
pub(super) fn load(
    machine: &Machine,
    client: &str,
    manager: &Manager,
    path: &Path,
) -> Result<(), FpgaError> {
    ask(machine, client, manager, &["load", "bitstream", &path.to_string_lossy()])
}

/// Makes dfx-mgr load the file at `path`, for the whole fabric or for a part of it.
pub(super) fn dfx_load(
    machine: &Machine,
    manager: &Manager,
    path: &Path,
    partial: bool,
) -> Result<(), FpgaError> {
    let kind = if partial { "Partial" } else { "Full" };
    if !partial {
        // dfx-mgr takes no second whole design. If it has none of ours, the unload fails, and only
        // the load's own result counts.
        let _ = dfx_unload(machine, manager);
    }
    dfx_ask(machine, manager, &["-b", &path.to_string_lossy(), "-f", kind], DFX_LOADED)
}

pub(super) fn dfx_unload(machine: &Machine, manager: &Manager) -> Result<(), FpgaError> {
    dfx_ask(machine, manager, &["-unloadByName", NAME], "(Ok)")
}

/// Runs dfx-mgr's client. Its output must contain the words `done`.
fn dfx_ask(
    machine: &Machine,
    manager: &Manager,
    arguments: &[&str],
    done: &str,
) -> Result<(), FpgaError> {
    let (words, error) = match machine.run(DFX, arguments) {
        Ok(ran) if ran.output.contains(done) => return Ok(()),
        Ok(ran) if ran.output.contains(DFX_OLD) => {
            return Err(FpgaError::Owned { daemon: "dfx-mgrd" });
        }
        Ok(ran) => (ran.output, None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(FpgaError::Owned { daemon: "dfx-mgrd" });
        }
        Err(error) => (String::new(), Some(error)),
    };
    Err(FpgaError::Failed { way: Way::DfxMgr, state: manager.state(machine), words, error })
}

pub(super) fn unload(machine: &Machine, client: &str, manager: &Manager) -> Result<(), FpgaError> {
    ask(machine, client, manager, &["remove", "bitstream"])
}

fn ask(
    machine: &Machine,
    client: &str,
    manager: &Manager,
    command: &[&str],
) -> Result<(), FpgaError> {
    let arguments = [&["--device", manager.id.as_str()], command].concat();
    let (words, error) = match machine.run(client, &arguments) {
        Ok(ran) if ran.success => return Ok(()),
        Ok(ran) => (ran.output, None),
        Err(error) => (String::new(), Some(error)),
    };
    let way = Way::Fpgad { client: client.to_owned() };
    Err(FpgaError::Failed { way, state: manager.state(machine), words, error })
}

//! Daemons that have the fabric: Canonical's fpgad and AMD's dfx-mgrd.
//!
//! # References
//! fpgad, `cli/README.md`: `load bitstream FILE`, `remove bitstream`. dfx-mgr, `README.md`: its
//! daemon loads packages of `/lib/firmware/xilinx` into slots, each with an overlay of its own.

use super::{FpgaError, Manager, Way};
use crate::machine::Machine;
use std::path::Path;

/// Where fpgad's client is: its snap, then as a package installs it, then as Cargo builds it.
const CLIENTS: [&str; 3] = ["snap/bin/fpgad", "usr/bin/fpgad", "usr/bin/fpgad_cli"];

/// The daemon that runs on a machine.
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

/// Lets fpgad load the file at `path`, which the machine calls so.
pub(super) fn load(machine: &Machine, client: &str, manager: &Manager, path: &Path) -> Result<(), FpgaError> {
    ask(machine, client, manager, &["load", "bitstream", &path.to_string_lossy()])
}

/// Lets fpgad take away what it loaded.
pub(super) fn unload(machine: &Machine, client: &str, manager: &Manager) -> Result<(), FpgaError> {
    ask(machine, client, manager, &["remove", "bitstream"])
}

fn ask(machine: &Machine, client: &str, manager: &Manager, command: &[&str]) -> Result<(), FpgaError> {
    let arguments = [&["--device", manager.id.as_str()], command].concat();
    let (words, error) = match machine.run(client, &arguments) {
        Ok(ran) if ran.success => return Ok(()),
        Ok(ran) => (ran.output, None),
        Err(error) => (String::new(), Some(error)),
    };
    let way = Way::Fpgad { client: client.to_owned() };
    Err(FpgaError::Failed { way, state: manager.state(machine), words, error })
}

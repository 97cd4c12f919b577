//! The manager's own files, `flags` and `firmware`, which AMD's kernels have.

use super::{FpgaError, Manager, State, Way};
use crate::machine::Machine;

/// `FPGA_MGR_PARTIAL_RECONFIG` (Linux, `include/linux/fpga/fpga-mgr.h`).
const PARTIAL: u32 = 1;
/// `EBUSY` (Linux, `asm-generic/errno-base.h`): the manager is in use.
const EBUSY: i32 = 16;

/// Lets the kernel load the file `name` of its folder. It comes back when the fabric runs, or when
/// one of the driver's steps failed, each of which has its limit in the kernel.
pub(super) fn load(
    machine: &Machine,
    manager: &Manager,
    name: &str,
    partial: bool,
) -> Result<(), FpgaError> {
    let flags = Flags::set(machine, manager, partial)?;
    let path = manager.file("firmware");
    let told = machine.write(&path, name.as_bytes());
    drop(flags);
    let Err(error) = told else { return Ok(()) };
    let state = manager.state(machine);
    if error.raw_os_error() == Some(EBUSY)
        && !matches!(state, State::WriteInitError | State::WriteError | State::WriteCompleteError)
    {
        return Err(FpgaError::Busy(state));
    }
    if matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::NotFound)
        && state != State::FirmwareRequestError
    {
        return Err(FpgaError::Told { path: format!("/{path}").into(), error });
    }
    let words = machine.text(manager.file("status")).unwrap_or_default().replace('\n', ", ");
    Err(FpgaError::Failed { way: Way::Sysfs, state, words, error: Some(error) })
}

/// The manager's flags for one load. Dropping it puts the old ones back: the next program must not
/// load a whole bitstream as a partial one.
struct Flags<'a> {
    machine: &'a Machine,
    path: String,
    before: Option<String>,
}

impl<'a> Flags<'a> {
    fn set(machine: &'a Machine, manager: &Manager, partial: bool) -> Result<Self, FpgaError> {
        let path = manager.file("flags");
        let before = machine.text(&path);
        let wanted = if partial { PARTIAL } else { 0 };
        if before.is_none() && !partial {
            return Ok(Self { machine, path, before });
        }
        match machine.write(&path, format!("{wanted:x}").as_bytes()) {
            Ok(()) => Ok(Self { machine, path, before }),
            Err(error) => Err(FpgaError::Told { path: format!("/{path}").into(), error }),
        }
    }
}

impl Drop for Flags<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The same file took other flags just now.
            let _ = self.machine.write(&self.path, before.as_bytes());
        }
    }
}

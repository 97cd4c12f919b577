//! The kernel's FPGA manager in sysfs, and the files `flags` and `firmware`, which only AMD's
//! kernels have.

use super::{FpgaError, State, Way};
use crate::bitstream::{ByteOrder, Family};
use crate::machine::Machine;

const CLASS: &str = "sys/class/fpga_manager";

/// An FPGA manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its folder in `/sys/class/fpga_manager`: `fpga0`.
    pub id: String,
    /// Its driver's name for it: `Xilinx Zynq FPGA Manager`.
    pub name: String,
}

impl Manager {
    /// Finds the machine's manager, or the one named `wanted`.
    pub(super) fn find(machine: &Machine, wanted: Option<&str>) -> Result<Self, FpgaError> {
        let mut there = machine.list(CLASS);
        there.retain(|id| machine.has(format!("{CLASS}/{id}/state")));
        let id = match (wanted, there.as_slice()) {
            (_, []) => return Err(FpgaError::NoManager),
            (Some(name), _) if !there.iter().any(|id| id == name) => {
                return Err(FpgaError::NoSuchManager { name: name.to_owned(), there });
            }
            (Some(name), _) => name.to_owned(),
            (None, [only]) => only.clone(),
            (None, _) => return Err(FpgaError::SeveralManagers(there)),
        };
        let name = machine.text(format!("{CLASS}/{id}/name")).unwrap_or_default();
        Ok(Self { id, name })
    }

    /// The path of one of its files.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{CLASS}/{}/{name}", self.id)
    }

    pub(super) fn state(&self, machine: &Machine) -> State {
        State::of(machine.text(self.file("state")).as_deref())
    }

    /// The family of its driver. `None`: the driver is for another one.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        let drivers = [
            ("Xilinx Zynq FPGA Manager", Family::Zynq7000),
            ("Xilinx ZynqMP FPGA Manager", Family::ZynqMp),
            ("Altera SOCFPGA FPGA Manager", Family::CycloneV),
        ];
        drivers.iter().find(|(name, _)| *name == self.name).map(|&(_, family)| family)
    }

    /// The byte order that it takes. `zynq-fpga.c` compares the sync word with 66 55 99 AA, and the
    /// firmware behind `zynqmp-fpga.c` takes the same order.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        match self.family() {
            Some(Family::CycloneV) => ByteOrder::BitFile,
            _ => ByteOrder::Swapped,
        }
    }

    /// The first bytes of a whole bitstream, in which it searches for the sync word. `None`: it
    /// does not search.
    pub(super) fn header_bytes(&self) -> Option<usize> {
        // zynq-fpga.c, initial_header_size.
        (self.family() == Some(Family::Zynq7000)).then_some(128)
    }
}

/// `FPGA_MGR_PARTIAL_RECONFIG` (Linux, `include/linux/fpga/fpga-mgr.h`).
const PARTIAL: u32 = 1;
/// `EBUSY` (Linux, `asm-generic/errno-base.h`): the manager is in use.
const EBUSY: i32 = 16;

/// Makes the kernel load the file `name` of its folder. This returns when the fabric runs, or when
/// one of the driver's steps failed; the kernel limits each step's time.
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

/// The manager's flags for one load. Dropping this restores the old ones: the next program must not
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
            // A failure is unlikely, as the same file just took other flags.
            let _ = self.machine.write(&self.path, before.as_bytes());
        }
    }
}

//! A device that the kernel module resets.

use super::{Place, ResetError};
use crate::machine::Machine;
use crate::plain;
use crate::plain::COMM_MAX;
use nix::errno::Errno;

const CLASS: &str = "sys/class/contigo";

/// A device that the kernel module has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContigoDevice {
    /// The kernel's name: `40000000.copy`.
    pub device: String,
    /// Programs that have it open, by name and process. Without privilege, only the user's own.
    pub users: Vec<String>,
}

impl ContigoDevice {
    /// All contigo devices of a machine, with their users.
    #[must_use]
    pub fn all(machine: &Machine) -> Vec<Self> {
        machine
            .list(CLASS)
            .into_iter()
            .map(|device| Self { users: users(machine, &device), device })
            .collect()
    }

    /// Finds the device `name`: by the kernel's name, by address, or by its node with or without
    /// the address.
    ///
    /// # Errors
    /// [`ResetError::NoSuchLine`], [`ResetError::Ambiguous`].
    pub fn find(machine: &Machine, name: &str) -> Result<Self, ResetError> {
        let all = Self::all(machine);
        let among = all.len();
        let place = || Place::Contigo(name.to_owned());
        if let Some(exact) = all.iter().find(|contigo_device| contigo_device.device == name) {
            return Ok(exact.clone());
        }
        let mut found: Vec<_> =
            all.into_iter().filter(|contigo_device| contigo_device.is(name)).collect();
        match found.len() {
            0 => Err(ResetError::NoSuchLine { place: place(), among }),
            1 => found.pop().ok_or_else(|| ResetError::NoSuchLine { place: place(), among }),
            _ => Err(ResetError::Ambiguous {
                place: place(),
                there: found.into_iter().map(|contigo_device| contigo_device.device).collect(),
            }),
        }
    }

    fn is(&self, name: &str) -> bool {
        self.device.split_once('.').is_some_and(|(addr, word)| match name.split_once('@') {
            Some((node, at)) => (node, at) == (word, addr),
            None => name == addr || name == word,
        })
    }

    /// Resets it by the lines of its node's `resets`. The module takes the device from its program,
    /// and holds the lines until a program opens it, so this reset has no width.
    ///
    /// # Errors
    /// [`ResetError::InUse`]: a program has it, and `take` is false. [`ResetError::NoResets`]: its
    /// node has none. [`ResetError::DevNode`]: the kernel's own error.
    pub fn reset(&self, machine: &Machine, take: bool) -> Result<(), ResetError> {
        self.free(take)?;
        machine.write(format!("{CLASS}/{}/reset", self.device), b"1").map_err(|error| {
            if error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) {
                ResetError::NoResets { device: self.device.clone() }
            } else {
                ResetError::DevNode { device: self.device.clone(), error }
            }
        })
    }

    /// Checks that no program has it, or that [`reset`](Self::reset) may take it.
    ///
    /// # Errors
    /// [`ResetError::InUse`].
    pub fn free(&self, take: bool) -> Result<(), ResetError> {
        if take || self.users.is_empty() {
            return Ok(());
        }
        Err(ResetError::InUse {
            line: format!("contigo:{}", self.device),
            consumer: self.users.join(", "),
        })
    }
}

/// The programs that have a contigo device's file open.
fn users(machine: &Machine, device: &str) -> Vec<String> {
    let node = format!("/dev/contigo/{device}");
    let processes =
        machine.list("proc").into_iter().filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    let open = |id: &String| {
        let folder = format!("proc/{id}/fd");
        machine.list(&folder).iter().any(|fd| {
            machine.link(format!("{folder}/{fd}")).is_some_and(|to| to.as_os_str() == node.as_str())
        })
    };
    let name = |id: String| {
        format!(
            "{} (process {id})",
            plain(&machine.text(format!("proc/{id}/comm")).unwrap_or_default(), COMM_MAX)
        )
    };
    processes.filter(open).map(name).collect()
}

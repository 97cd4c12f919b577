//! The kernel's FPGA manager, as sysfs shows it.

use super::FpgaError;
use crate::{
    bitstream::{ByteOrder, Family},
    machine::Machine,
};
use std::fmt;

const CLASS: &str = "sys/class/fpga_manager";

/// An FPGA manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its folder in `/sys/class/fpga_manager`: `fpga0`.
    pub id: String,
    /// Its driver's name for it: `Xilinx Zynq FPGA Manager`.
    pub name: String,
}

/// Where a manager is with a bitstream. Linux, `drivers/fpga/fpga-mgr.c`, `state_str`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The driver does not tell: as a rule nothing is loaded.
    Unknown,
    /// The fabric has no power.
    PowerOff,
    /// It is powering up.
    PowerUp,
    /// It is in reset, and empty.
    Reset,
    /// The kernel looks for the file.
    FirmwareRequest,
    /// It did not find it.
    FirmwareRequestError,
    /// The fabric is being emptied.
    WriteInit,
    /// That failed.
    WriteInitError,
    /// The bitstream is being written.
    Write,
    /// That failed.
    WriteError,
    /// The fabric is starting up.
    WriteComplete,
    /// It did not start.
    WriteCompleteError,
    /// A bitstream runs.
    Operating,
    /// The file cannot be read, or has a word that no kernel writes.
    Unreadable,
}

/// Every state, and the kernel's words for it.
const STATES: [(State, &str); 14] = [
    (State::Unknown, "unknown"),
    (State::PowerOff, "power off"),
    (State::PowerUp, "power up"),
    (State::Reset, "reset"),
    (State::FirmwareRequest, "firmware request"),
    (State::FirmwareRequestError, "firmware request error"),
    (State::WriteInit, "write init"),
    (State::WriteInitError, "write init error"),
    (State::Write, "write"),
    (State::WriteError, "write error"),
    (State::WriteComplete, "write complete"),
    (State::WriteCompleteError, "write complete error"),
    (State::Operating, "operating"),
    (State::Unreadable, "unreadable"),
];

impl State {
    fn of(text: Option<&str>) -> Self {
        let known = text.and_then(|text| STATES.iter().find(|(_, words)| *words == text));
        known.map_or(Self::Unreadable, |&(state, _)| state)
    }

    /// Whether the manager is on its way between two states of rest.
    #[must_use]
    pub const fn busy(self) -> bool {
        matches!(
            self,
            Self::PowerUp
                | Self::FirmwareRequest
                | Self::WriteInit
                | Self::Write
                | Self::WriteComplete
        )
    }

    /// Which step failed, what is left in the fabric, and what to do.
    #[must_use]
    pub const fn cure(self) -> &'static str {
        match self {
            Self::Unknown | Self::Unreadable => {
                "dmesg has the driver's reason; load a bitstream again before a core is touched"
            }
            Self::PowerOff => "the fabric has no power: switch the board's supply for it on",
            Self::PowerUp => "the fabric is powering up: try again",
            Self::Reset => "the fabric is in reset and empty: load again",
            Self::FirmwareRequest => "the kernel waits for the file: try again in a minute",
            Self::FirmwareRequestError => {
                "the kernel did not find the file, and the fabric is as before: see that no program changes \
                 /sys/module/firmware_class/parameters/path or cleans /lib/firmware meanwhile"
            }
            Self::WriteInit => "the manager still empties the fabric: try again",
            Self::WriteInitError => {
                "the manager did not get the fabric ready: on Cyclone V look at the switches MSEL, elsewhere at dmesg; load again"
            }
            Self::Write => "the bitstream is still being written: try again",
            Self::WriteError => {
                "the transfer broke off, and the fabric is empty: dmesg has the driver's reason; load again"
            }
            Self::WriteComplete => "the fabric still starts: try again",
            Self::WriteCompleteError => {
                "the fabric took all, did not start, and is empty: the file is for another device or is damaged; build it for this \
                 device and load again"
            }
            Self::Operating => "the fabric runs, with what was loaded before",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            STATES
                .iter()
                .find(|(state, _)| state == self)
                .map_or("unreadable", |&(_, words)| words),
        )
    }
}

impl Manager {
    /// The machine's manager, or the one that is called `wanted`.
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

    /// One of its files.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{CLASS}/{}/{name}", self.id)
    }

    /// Its state now.
    pub(super) fn state(&self, machine: &Machine) -> State {
        State::of(machine.text(self.file("state")).as_deref())
    }

    /// The family that its driver is for. `None`: for another one.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        let drivers = [
            ("Xilinx Zynq FPGA Manager", Family::Zynq7000),
            ("Xilinx ZynqMP FPGA Manager", Family::ZynqMp),
            ("Altera SOCFPGA FPGA Manager", Family::CycloneV),
        ];
        drivers.iter().find(|(name, _)| *name == self.name).map(|&(_, family)| family)
    }

    /// The order of bytes that it takes. `zynq-fpga.c` compares the sync word with 66 55 99 AA, and
    /// the firmware behind `zynqmp-fpga.c` takes the same.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        match self.family() {
            Some(Family::CycloneV) => ByteOrder::BitFile,
            _ => ByteOrder::Swapped,
        }
    }

    /// The bytes at the beginning in which it looks for the sync word, of a whole bitstream.
    /// `None`: it does not look.
    pub(super) fn header_bytes(&self) -> Option<usize> {
        // zynq-fpga.c, initial_header_size.
        (self.family() == Some(Family::Zynq7000)).then_some(128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_the_kernel_writes_it() {
        for (state, words) in STATES {
            assert_eq!((State::of(Some(words)), state.to_string().as_str()), (state, words));
            assert!(!state.cure().is_empty());
        }
        assert_eq!(
            (State::of(None), State::of(Some("nonsense"))),
            (State::Unreadable, State::Unreadable)
        );
    }
}

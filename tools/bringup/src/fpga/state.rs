//! The state of a fabric in the kernel: of its manager, and of its bridges.

use crate::machine::Machine;
use std::fmt;

/// The progress of a manager with a bitstream. Linux, `drivers/fpga/fpga-mgr.c`, `state_str`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The driver does not tell the state: usually nothing is loaded.
    Unknown,
    /// The fabric has no power.
    PowerOff,
    /// It is powering up.
    PowerUp,
    /// It is in reset, and empty.
    Reset,
    /// The kernel searches for the file.
    FirmwareRequest,
    /// The kernel did not find it.
    FirmwareRequestError,
    /// The fabric is being emptied.
    WriteInit,
    /// Emptying it failed.
    WriteInitError,
    /// The bitstream is being written.
    Write,
    /// Writing it failed.
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

/// Every state, with the kernel's words for it.
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
    pub(super) fn of(text: Option<&str>) -> Self {
        let known = text.and_then(|text| STATES.iter().find(|(_, words)| *words == text));
        known.map_or(Self::Unreadable, |&(state, _)| state)
    }

    /// Whether the manager is between two states of rest.
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

    /// The failed step, the contents of the fabric after it, and the cure.
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
                "the kernel did not find the file, and the fabric is as before: see that no \
                 program changes /sys/module/firmware_class/parameters/path or cleans \
                 /lib/firmware meanwhile"
            }
            Self::WriteInit => "the manager still empties the fabric: try again",
            Self::WriteInitError => {
                "the manager did not get the fabric ready: on Cyclone V look at the switches MSEL, \
                 elsewhere at dmesg; load again"
            }
            Self::Write => "the bitstream is still being written: try again",
            Self::WriteError => {
                "the transfer broke off, and the fabric is empty: dmesg has the driver's reason; \
                 load again"
            }
            Self::WriteComplete => "the fabric still starts: try again",
            Self::WriteCompleteError => {
                "the fabric took all, did not start, and is empty: the file is for another device \
                 or is damaged; build it for this device and load again"
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

/// A bridge. The kernel closes and opens the bridges of a region; sysfs only shows them.
///
/// # References
/// Linux, `Documentation/ABI/testing/sysfs-class-fpga-bridge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its driver's name for it: `lwhps2fpga`.
    pub name: String,
    /// Whether it is open. An access through a closed bridge hangs the processor.
    pub open: Option<bool>,
}

impl Bridge {
    pub(crate) fn all(machine: &Machine) -> Vec<Self> {
        let folder = "sys/class/fpga_bridge";
        let bridge = |id: String| Self {
            open: machine.text(format!("{folder}/{id}/state")).and_then(|state| {
                match state.as_str() {
                    "enabled" => Some(true),
                    "disabled" => Some(false),
                    _ => None,
                }
            }),
            name: machine.text(format!("{folder}/{id}/name")).unwrap_or(id),
        };
        machine.list(folder).into_iter().map(bridge).collect()
    }
}

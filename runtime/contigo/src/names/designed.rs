//! A design's cores by name: which driver, with which settings, on which device. And whether the
//! fabric that they are in is loaded.

use super::device_name::DeviceName;
use super::files::{Files, LINE_MAX_BYTES, text};
use super::registry::{DriverRow, each_row};
use contigo_design::{Core, DesignError, DesignRule, parameter_number};
use core::fmt::{self, Write as _};

/// A node of a device tree has a name of 31 bytes at most (Devicetree Specification, 2.2.1).
const NODE_MAX_BYTES: usize = 31;

/// The most bytes of a driver's settings from a design.
const SETTINGS_MAX_BYTES: usize = 256;

/// Limits of the settings that parameters of the block design give, by the ends of their names:
/// those of the cores' manuals (PG020, PG021, PG034, PG288), over all of them.
const RANGES: &[(&str, u64, u64)] = &[
    ("length_bits", 8, 26),
    ("address_bits", 32, 64),
    ("data_bits", 32, 1024),
    ("dre", 0, 1),
    ("lite", 0, 1),
    ("frame_stores", 1, 32),
    ("micro_dma", 0, 1),
    ("status_stream", 0, 1),
    ("status_length", 0, 1),
];

/// A driver's settings, as text: `length_bits=23,dre=0`.
pub(crate) type SettingsText = heapless::String<SETTINGS_MAX_BYTES>;

/// The driver for `core`: by its kind, or `ap_ctrl` for a kernel of Vitis HLS that a register
/// starts. `None`: no driver is for it, and it is driven by its registers.
#[must_use]
pub fn driver_of(core: &Core<'_, '_>) -> Option<&'static DriverRow> {
    let hls = core.is_hls() && core.protocol().is_some();
    let mut found = None;
    each_row(|row| {
        if found.is_none() && (row.ip.contains(&core.ip()) || (hls && row.name == "ap_ctrl")) {
            found = Some(row);
        }
    });
    found
}

/// The settings of the driver of `core`, from the parameters of the block design. Empty where the
/// design says nothing about them.
///
/// # Errors
/// [`DesignRule::TooMany`]: they are longer than 256 bytes. [`DesignRule::NotANumber`],
/// [`DesignRule::OutOfRange`], [`DesignRule::Width`]: no core is built like that.
pub fn settings_of(core: &Core<'_, '_>) -> Result<SettingsText, DesignError> {
    let mut settings = SettingsText::new();
    let Some(row) = driver_of(core) else { return Ok(settings) };
    for (at, (parameter, setting)) in row.parameters.iter().enumerate() {
        // Vivado writes some parameters twice, under two names.
        let said = row.parameters.iter().take(at).any(|(before, known)| {
            known == setting && core.parameter(before).and_then(parameter_number).is_some()
        });
        let Some(value) = checked(core, parameter, setting)?.filter(|_| !said) else { continue };
        let comma = if settings.is_empty() { "" } else { "," };
        let most = SETTINGS_MAX_BYTES as u64;
        let rule = DesignRule::TooMany { what: "bytes of settings", most };
        write!(settings, "{comma}{setting}={value}").map_err(|_| core.broken(rule))?;
    }
    Ok(settings)
}

/// The parameter as a number in the range of `setting`. `None`: the design does not have it.
fn checked(
    core: &Core<'_, '_>,
    parameter: &'static str,
    setting: &str,
) -> Result<Option<u64>, DesignError> {
    let text = core.parameter(parameter).filter(|text| !text.trim_ascii().is_empty());
    let Some(text) = text else { return Ok(None) };
    let value =
        parameter_number(text).ok_or_else(|| core.broken(DesignRule::NotANumber(parameter)))?;
    let wrong = |rule| Err(DesignError { found: value, ..core.broken(rule) });
    match RANGES.iter().find(|(end, ..)| setting.ends_with(end)) {
        Some(&(_, least, most)) if !(least..=most).contains(&value) => {
            wrong(DesignRule::OutOfRange { parameter, least, most })
        }
        Some(("data_bits", ..)) if !value.is_power_of_two() => wrong(DesignRule::Width),
        _ => Ok(Some(value)),
    }
}

/// The node name of `core` in a device tree: its own name, cut to 31 bytes. With the address after
/// it, it is still unique.
#[must_use]
pub fn node_of(core: &Core<'_, '_>) -> heapless::String<NODE_MAX_BYTES> {
    // A node's name begins with a letter.
    let letters = core.name().chars().skip_while(|letter| !letter.is_ascii_alphabetic());
    letters
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        .take(NODE_MAX_BYTES)
        .collect()
}

/// The device name of `core` if its node is the one of `contigo overlay --dtso`:
/// `contigo:axi_dma_0@40400000`.
///
/// # Errors
/// [`DesignError`]: the processor sees no registers of it.
pub fn device_of(core: &Core<'_, '_>) -> Result<DeviceName, DesignError> {
    let windows = core.windows()?;
    let none = || core.broken(DesignRule::NoRegisters);
    let first = windows.first().ok_or_else(none)?;
    let mut name = heapless::String::<64>::new();
    write!(name, "contigo:{}@{:x}", node_of(core), first.address).map_err(|_| none())?;
    name.parse().map_err(|_| none())
}

/// The state of the fabric, as the kernel's FPGA manager reports it. It does not report which
/// bitstream is loaded.
///
/// # References
/// Linux `Documentation/ABI/testing/sysfs-class-fpga-manager`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fabric {
    /// A bitstream is loaded: `operating`.
    Operating,
    /// No bitstream is: the state. An access to a core's registers would hang the processor.
    NotLoaded(heapless::String<32>),
    /// This machine has no FPGA manager, or it cannot be read.
    Unknown,
}

impl Fabric {
    /// The state on this machine.
    #[must_use]
    pub fn here() -> Self {
        Self::below("")
    }

    /// The same with `root` before `/sys`.
    #[must_use]
    pub fn below(root: &str) -> Self {
        let files = Files { root };
        let (mut managers, mut state) = (0, Self::Unknown);
        files.each("sys/class/fpga_manager", &mut |name| {
            let mut buffer = [0; LINE_MAX_BYTES];
            let folder = files.folder(&["sys/class/fpga_manager", name]);
            let Some(said) = folder.as_ref().and_then(|folder| text(folder, c"state", &mut buffer))
            else {
                return;
            };
            managers += 1;
            if said == "operating" {
                state = Self::Operating;
            } else if state != Self::Operating {
                state = Self::NotLoaded(said.chars().take(32).filter(char::is_ascii).collect());
            }
        });
        // With several fabrics, nothing shows which one the design is for.
        if managers > 1 && state != Self::Operating { Self::Unknown } else { state }
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operating => {
                f.write_str("a bitstream is loaded; the kernel does not say which one")
            }
            Self::NotLoaded(state) => {
                write!(f, "no bitstream is loaded: the FPGA manager's state is \"{state}\"")
            }
            Self::Unknown => f.write_str("unknown: this machine has no FPGA manager that says it"),
        }
    }
}

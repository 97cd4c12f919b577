//! The parts that every driver is opened with.

use crate::mem::CpuBuf;
use crate::types::{Error, Result};
use core::fmt;

/// The parts that a driver of the registry is opened with. They are the same for every driver, so
/// that C and Python open each by its name. The texts are read while the driver is opened, and not
/// kept.
#[derive(Debug)]
pub struct Parts<'t, D> {
    /// The device, claimed to be the one of this driver.
    pub device: D,
    /// The driver's own memory, for descriptors or microcode: at least as much as its row asks for.
    pub memory: Option<CpuBuf>,
    /// Settings that no register tells.
    pub settings: Settings<'t>,
    /// The description of a kernel, as its tool wrote it: for `ap_ctrl`.
    pub map: Option<&'t [u8]>,
}

/// How the CPU and the device share a driver's own memory: its descriptors, or a PL330's microcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Descriptors {
    /// The port snoops: no call for either side.
    Snooped,
    /// The port does not snoop, and the CPU does not cache this memory: no call for either side.
    Coherent,
    /// The port does not snoop, and the CPU caches this memory: each write and read of it is a
    /// sync, which is a system call if the kernel does it.
    Synced {
        /// Why coherent memory could not be had. `None`: the settings do not ask for it, or the
        /// device has none.
        refused: Option<Error>,
    },
}

impl Descriptors {
    /// The setting of a driver with memory of its own: 1, it is coherent, or the driver is not
    /// opened; 0, it is the memory that the program gives. Without it, coherent if there is any.
    pub const SETTING: &'static str = "coherent_memory";

    /// In one word: `snooped`, `coherent` or `synced`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Snooped => "snooped",
            Self::Coherent => "coherent",
            Self::Synced { .. } => "synced",
        }
    }
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Synced { refused: Some(error) } => write!(f, ", not coherent: {error}"),
            _ => Ok(()),
        }
    }
}

/// Settings as text: `name=number`, separated by commas, each once.
///
/// ```
/// use contigo::job::Settings;
/// let settings = Settings("channel=2,event=0x3");
/// assert_eq!(settings.number("channel", 0, 7)?, Some(2));
/// assert_eq!(settings.number("width", 0, 64)?, None);
/// assert!(settings.number("event", 0, 1).is_err(), "more than it may be");
/// assert!(settings.only(&["channel"]).is_err(), "`event` is unknown");
/// assert_eq!(settings.name(2), "event");
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'a>(pub &'a str);

impl<'a> Settings<'a> {
    /// The number called `name`, from `min` to `max`; `None` if it is not there.
    ///
    /// # Errors
    /// [`Error::NotANumber`]; [`Error::Argument`]: it is out of range.
    pub fn number(&self, name: &'static str, min: u64, max: u64) -> Result<Option<u64>> {
        let Some((_, text)) = self.each().find(|(key, _)| *key == name) else { return Ok(None) };
        let value = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        match value {
            Ok(value) if (min..=max).contains(&value) => Ok(Some(value)),
            Ok(value) => Err(Error::Argument { name, value, min, max, multiple_of: 1 }),
            Err(_) => Err(Error::NotANumber { name, min, max }),
        }
    }

    /// The same as 32 bits, or `otherwise` if it is not set.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn value(&self, name: &'static str, min: u32, max: u32, otherwise: u32) -> Result<u32> {
        let value = self.number(name, min.into(), max.into())?;
        // `number` returned at most `max`, so the conversion succeeds.
        Ok(value.and_then(|value| u32::try_from(value).ok()).unwrap_or(otherwise))
    }

    /// A setting that is 0 or 1, or `otherwise` if it is not set.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn flag(&self, name: &'static str, otherwise: bool) -> Result<bool> {
        Ok(self.value(name, 0, 1, otherwise.into())? == 1)
    }

    /// Checks that every setting has one of these names.
    ///
    /// # Errors
    /// [`Error::UnknownSetting`] with the place of the first one that is unknown, from 1.
    pub fn only(&self, names: &'static [&'static str]) -> Result<()> {
        match self.each().position(|(key, _)| !names.contains(&key)) {
            None => Ok(()),
            Some(index) => Err(Error::UnknownSetting { place: index + 1, known: names }),
        }
    }

    /// The name of the setting at `place`, from 1, as [`Error::UnknownSetting`] counts; empty where
    /// there is none.
    #[must_use]
    pub fn name(&self, place: usize) -> &'a str {
        let index = place.checked_sub(1);
        index.and_then(|index| self.each().nth(index)).map_or("", |(key, _)| key)
    }

    fn each(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let settings = self.0.split(',').map(str::trim).filter(|setting| !setting.is_empty());
        settings.map(|setting| {
            setting.split_once('=').map_or((setting, ""), |(key, value)| (key.trim(), value.trim()))
        })
    }
}

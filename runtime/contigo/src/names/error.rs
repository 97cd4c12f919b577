//! The error for a text that is not a name.

use super::kinds::{DEVICES, MEMORIES, syntaxes};
use contigo_core::types::Error;
use core::fmt;

/// A text is not a name of memory or of a device: what is wrong, at which byte, and what to write
/// instead.
///
/// ```
/// use contigo::names::{MemoryName, NameRule};
/// let refused = "vfio:0000:01:00".parse::<MemoryName>().unwrap_err();
/// assert_eq!((refused.rule, refused.at), (NameRule::PciAddress, 5));
/// assert_eq!(refused.to_string(), "at byte 5: a PCI function is written as 0000:01:00.0; write vfio:DDDD:BB:DD.F");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameError {
    /// The rule that it breaks.
    pub rule: NameRule,
    /// The first byte that breaks it.
    pub at: usize,
    /// How many bytes the text has.
    pub len_bytes: usize,
    pub(super) form: Form,
}

/// The form to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A name of its kind.
    Of(&'static str),
    /// A name of memory.
    Memory,
    /// A name of a device.
    Device,
}

/// The rules for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// It begins with a known kind.
    Kind,
    /// This kind's names have an argument after the colon.
    Argument,
    /// This kind's names have nothing more here.
    NothingMore,
    /// It has at most so many bytes from here.
    Length {
        /// How many.
        max_bytes: usize,
    },
    /// A name consists of ASCII letters, digits and signs: no space, and no `/` in the name of a
    /// file, which is not `.` or `..`.
    Letter,
    /// A number of decimal digits.
    Number {
        /// The greatest value.
        max: u64,
    },
    /// The address of a PCI function, domain, bus, device and function.
    PciAddress,
    /// This kind's memory does not belong to such a device.
    Device,
}

impl core::error::Error for NameError {}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.rule {
            NameRule::Kind => write!(f, "there is no such kind"),
            NameRule::Argument => write!(f, "a part is missing"),
            NameRule::NothingMore => write!(f, "nothing more belongs here"),
            NameRule::Length { max_bytes } => write!(f, "at most {max_bytes} bytes belong here"),
            NameRule::Letter => write!(f, "a name is of ASCII, without spaces and without /"),
            NameRule::Number { max } => write!(f, "a number from 0 to {max} belongs here"),
            NameRule::PciAddress => write!(f, "a PCI function is written as 0000:01:00.0"),
            NameRule::Device => write!(f, "no such device has memory of this kind"),
        }?;
        f.write_str("; write ")?;
        match self.form {
            Form::Of(syntax) => f.write_str(syntax),
            Form::Memory => either(f, syntaxes(&MEMORIES)),
            Form::Device => either(f, syntaxes(&DEVICES)),
        }
    }
}

/// The forms, one after the other.
fn either(
    f: &mut fmt::Formatter<'_>,
    syntaxes: impl Iterator<Item = (&'static str, &'static str)>,
) -> fmt::Result {
    let mut before = "";
    for (syntax, _) in syntaxes {
        write!(f, "{before}{syntax}")?;
        before = " or ";
    }
    Ok(())
}

/// Drops the rule and the place.
///
/// ```
/// use contigo::{Error, names::MemoryName};
/// let error = "ddr:0".parse::<MemoryName>().unwrap_err();
/// assert!(matches!(error.into(), Error::BadName { len_bytes: 5, .. }));
/// ```
impl From<NameError> for Error {
    fn from(error: NameError) -> Self {
        Self::BadName { len_bytes: error.len_bytes, max_bytes: super::text::Text::MAX_BYTES }
    }
}

/// Keeps the whole text.
///
/// ```
/// let error = "ddr:0".parse::<contigo::names::MemoryName>().unwrap_err();
/// assert_eq!(std::io::Error::from(error).to_string(), error.to_string());
/// ```
#[cfg(all(feature = "std", not(target_os = "none")))]
impl From<NameError> for contigo_core::types::IoError {
    fn from(error: NameError) -> Self {
        contigo_core::types::with_text(error.into(), error)
    }
}

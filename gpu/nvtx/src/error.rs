//! Why no tool hears the events.

use std::fmt;

/// Why no tool hears the events. The program can go on without.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The variable names a file that cannot be loaded; the loader's words.
    NotLoaded(String),
    /// The library has no function `InitializeInjectionNvtx2`: it is no tool for NVTX.
    NoTool,
    /// The tool attached itself to nothing: its function answered 0.
    Refused,
    /// The program has set a listener before.
    AnotherListens,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = crate::injection::VARIABLE;
        match self {
            Self::NotLoaded(why) => {
                write!(f, "{variable}: the tool's library cannot be loaded: {why}")
            }
            Self::NoTool => write!(
                f,
                "{variable}: this library is no tool for NVTX: it lacks InitializeInjectionNvtx2"
            ),
            Self::Refused => write!(f, "{variable}: the tool did not attach"),
            Self::AnotherListens => f.write_str(
                "the runtime's events have another listener: hand them on to contigo_nvtx::Ranges",
            ),
        }
    }
}

impl std::error::Error for Error {}

//! How a program acts on an error without naming each one: its kind, its row, its errno.

/// Where the cause of an error lies, and so who can mend it.
///
/// ```
/// use contigo::{Align, Error, ErrorKind, Region, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(4096)?)?;
/// let refused = region.alloc(8192, Align::LINE).map(drop).unwrap_err();
/// assert_eq!((refused.kind(), refused.errno()), (ErrorKind::Memory, 12));
/// assert_eq!(refused.row().name, "EXHAUSTED");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program asked for something that cannot be. Correct the program.
    Request,
    /// A block, a pool or a buffer: it is too small, at the wrong place, in use, or lent.
    Memory,
    /// This memory and this port do not suit each other. Take another port, or other memory.
    Port,
    /// The device, or its driver. Find out with the device's manual and its registers.
    Device,
    /// The operating system: permissions, modules, settings, limits. Correct the machine.
    System,
}

impl ErrorKind {
    /// The kind in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Memory => "memory",
            Self::Port => "port",
            Self::Device => "device",
            Self::System => "system",
        }
    }
}

/// A line of the table of errors without its text: the same in Rust, C and Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ErrorRow {
    /// The number in C. It never changes its meaning.
    pub code: i32,
    /// The name in C, without `CONTIGO_E_`; Python's `ContigoError.code`.
    pub name: &'static str,
    /// Where the cause lies.
    pub kind: ErrorKind,
    /// The class of exceptions: `Timeout` is `contigo.TimeoutError` in Python.
    pub class: &'static str,
}

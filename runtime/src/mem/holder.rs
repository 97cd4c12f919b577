//! Who may touch a byte of a simulated board's memory: what the hand-over says of it, and
//! what was touched all the same.

use crate::mem::Port;

/// Who may touch some bytes.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// No device: the CPU has them, or their job has ended.
    Nobody,
    /// A device, to read, or to read and write.
    Device {
        /// The port that it is behind; `None`: any.
        port: Option<&'a Port>,
        /// May it write?
        writes: bool,
    },
}

/// How often simulated devices touched what was not handed over to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrongAccesses {
    /// Bytes that were not handed over, or only to be read.
    pub unowned: u64,
    /// Addresses where no memory is.
    pub stray: u64,
}

impl WrongAccesses {
    /// Those that came after `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self { unowned: self.unowned.saturating_sub(before.unowned), stray: self.stray.saturating_sub(before.stray) }
    }

    /// Were there none?
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.unowned == 0 && self.stray == 0
    }
}

//! Who may touch a byte of a simulated board's memory: what the hand-over says of it, and
//! what was touched all the same.

use crate::{mem::Port, types::Result};

/// Who may touch some bytes.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// No device: the CPU has them, or their job has ended.
    None,
    /// A device, to read, or to read and write.
    Device {
        /// The port that it is behind; `None`: any.
        port: Option<&'a Port>,
        /// May it write?
        writes: bool,
    },
}

/// How often simulated devices touched what was not handed over to them.
///
/// A queue compares the counts when a job ends well with those when the first of its jobs in flight
/// began, and fail the job where they differ
/// ([`Error::WrongAccess`](crate::Error::WrongAccess)):
///
/// - The count is of the device, and so of all its channels: a wrong access of one fails the jobs
///   in flight of all, because the board cannot tell whose it was. Where the driver passes no
///   device on ([`Driver::simulated`](crate::Driver::simulated)), it is of all devices of the
///   board.
/// - A queue takes the count anew with each job that ends well, and when it is empty. A job that
///   failed by its device's word leaves the count as it was: another job in flight may have made
///   it. So no job answers for what was touched before it began.
/// - Between two jobs nothing in flight can answer for an access. It is in `SimBoard::counts`
///   alone.
/// - Where the board could not be asked, or did not hear of a hand-over
///   ([`Error::Contended`](crate::Error::Contended)), the job fails with that.
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
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            unowned: self.unowned.saturating_sub(before.unowned),
            stray: self.stray.saturating_sub(before.stray),
        }
    }

    /// Were there none?
    #[must_use]
    pub(crate) const fn is_none(self) -> bool {
        self.unowned == 0 && self.stray == 0
    }
}

/// A simulated device, as the job layer asks for it:
/// [`Device::simulated`](crate::Device::simulated).
pub trait SimulatedDevice {
    /// No other simulated device of this process has it.
    fn number(&self) -> u32;

    /// How often it touched what was not handed over to it, except while the program allowed it.
    ///
    /// # Errors
    /// [`Error::Contended`](crate::Error::Contended): another thread has the board, or the board
    /// did not hear of a hand-over.
    fn wrong_accesses(&self) -> Result<WrongAccesses>;
}

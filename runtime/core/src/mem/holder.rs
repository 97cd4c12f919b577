//! Who may touch a byte of a simulated board's memory, as the hand-over reports it, and the
//! accesses that were made all the same.

use crate::mem::Port;
use crate::types::Result;

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

/// How often simulated devices touched memory that was not handed over to them, or could not
/// compute a job.
///
/// When a job ends well, a queue compares the counts with those from when the first of its jobs in
/// flight began, and fails the job if they differ
/// ([`Error::WrongAccess`](crate::Error::WrongAccess)):
///
/// - The count is the device's, and so covers all its channels: a wrong access by one fails the
///   jobs in flight of all, because the board cannot tell whose it was. If the driver passes no
///   device on ([`Driver::simulated`](crate::Driver::simulated)), it covers all devices of the
///   board.
/// - A queue takes the count anew with each job that ends well, and when the queue is empty. A job
///   that its device reports as failed leaves the count as it was: another job in flight may have
///   caused the accesses. So no job fails for an access from before it began.
/// - No job fails for an access between two jobs. It is in `SimBoard::counts` alone.
/// - If the board could not be asked, or did not hear of a hand-over
///   ([`Error::Contended`](crate::Error::Contended)), the job fails with that error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrongAccesses {
    /// Bytes that were not handed over, or only for reading.
    pub unowned: u64,
    /// Addresses where no memory is.
    pub stray: u64,
    /// Jobs that the function of a simulated kernel did not compute: it failed, or left its
    /// operands.
    pub uncomputed: u64,
}

impl WrongAccesses {
    /// The accesses since `before`.
    #[must_use]
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            unowned: self.unowned.saturating_sub(before.unowned),
            stray: self.stray.saturating_sub(before.stray),
            uncomputed: self.uncomputed.saturating_sub(before.uncomputed),
        }
    }

    /// Were there none?
    #[must_use]
    pub(crate) const fn is_none(self) -> bool {
        self.unowned == 0 && self.stray == 0 && self.uncomputed == 0
    }
}

/// A simulated device, as the job layer sees it: [`Device::simulated`](crate::Device::simulated).
pub trait SimulatedDevice {
    /// The device's number. No other simulated device of this process has it.
    fn number(&self) -> u32;

    /// How often it touched memory that it was not given, except while the program allowed that.
    ///
    /// # Errors
    /// [`Error::Contended`](crate::Error::Contended): another thread has the board, or the board
    /// did not hear of a hand-over.
    fn wrong_accesses(&self) -> Result<WrongAccesses>;
}

//! Who may touch a byte of a simulated board's memory: what the hand-over says of it.

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

//! Why there is no log.

use core::fmt;

/// Why [`start`](crate::start) or [`sync`](crate::sync) did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The ring's size is no power of two in [`RING_BYTES`](crate::RING_BYTES).
    RingBytes {
        /// The size that was asked for.
        given: u32,
    },
    /// The program was loaded to an address that changes the events' numbers. Kernels before 5.10
    /// do that to a position-independent program, and those before 6.10 to one that is static too.
    LoadAddress {
        /// By how much: the low 16 bits.
        off_by: u16,
    },
    /// The program has no build ID, by which its log could find its texts.
    NoBuildId,
    /// The program has a log already.
    Twice,
    /// The file or its memory is not to be had.
    File {
        /// The call that failed.
        call: &'static str,
        /// Its errno.
        errno: i32,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingBytes { given } => {
                write!(
                    f,
                    "a ring of {given} bytes: it takes a power of two from {} to {}",
                    crate::RING_BYTES.start(),
                    crate::RING_BYTES.end()
                )
            }
            Self::LoadAddress { off_by } => write!(
                f,
                "this kernel loads the program {off_by} bytes off a multiple of 64 KiB, which changes the events' numbers; build it with -C relocation-model=static"
            ),
            Self::NoBuildId => {
                f.write_str("the program has no build ID; link it with -C link-arg=-Wl,--build-id")
            }
            Self::Twice => f.write_str("the program has a log already"),
            Self::File { call, errno } => write!(f, "{call} failed with errno {errno}"),
        }
    }
}

impl core::error::Error for StartError {}

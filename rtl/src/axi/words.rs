//! A breach in words: addresses and strobes with 0x, counts in decimal.

use super::{Breach, Channel};
use std::fmt;

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aw => "AW",
            Self::W => "W",
            Self::B => "B",
            Self::Ar => "AR",
            Self::R => "R",
            Self::Stream => "its stream",
        })
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Crosses4KiB { addr, bytes } => {
                write!(f, "a burst of {bytes} bytes at {addr:#x} goes over 4 KiB (A3.4.1)")
            }
            Self::ReservedBurst { addr, burst } => {
                write!(f, "a burst at {addr:#x} is of the reserved kind {burst} (table A3-3)")
            }
            Self::SizeOverBus { addr, beat_bytes, bus_bytes } => {
                write!(
                    f,
                    "a burst at {addr:#x} has beats of {beat_bytes} bytes on a bus of {bus_bytes} \
                     (A3.4.1)"
                )
            }
            Self::BurstLength { addr, beats } => {
                write!(f, "a burst at {addr:#x} of its kind may not have {beats} beats (A3.4.1)")
            }
            Self::WrapUnaligned { addr, beat_bytes } => {
                write!(
                    f,
                    "a burst that wraps begins at {addr:#x}, within a beat of {beat_bytes} bytes \
                     (A3.4.1)"
                )
            }
            Self::LastMissing { addr, beats } => {
                write!(f, "the last of {beats} beats at {addr:#x} has no WLAST (A3.2.2)")
            }
            Self::LastEarly { addr, beats, came } => {
                write!(f, "the write at {addr:#x} has {beats} beats, and WLAST at beat {came}")
            }
            Self::StrobeOutside { addr, strobes, allowed } => {
                write!(
                    f,
                    "the beat at {addr:#x} has the strobes {strobes:#x}, and may have those of \
                     {allowed:#x} (A3.4.3)"
                )
            }
            Self::ValidDropped { channel } => {
                write!(f, "valid of {channel} fell before ready (A3.2.1)")
            }
            Self::PayloadChanged { channel } => {
                write!(f, "the payload of {channel} changed before ready (A3.2.1)")
            }
            Self::ValidInReset { channel } => {
                write!(f, "valid of {channel} is high in reset (A3.1.2)")
            }
            Self::DataWaitsForAddress { addr, cycles } => {
                write!(
                    f,
                    "the data of the write at {addr:#x} waited {cycles} cycles for its address to \
                     be taken (A3.3.1)"
                )
            }
            Self::AddressWaitsForData { cycles } => {
                write!(
                    f,
                    "a write's address waited {cycles} cycles for its data to be taken (A3.3.1)"
                )
            }
            Self::ValidWaitsForReady { channel, times } => {
                write!(
                    f,
                    "valid of {channel} came only with a ready, {times} times in a row (A3.2.1)"
                )
            }
            Self::DataMissing { addr, cycles } => {
                write!(f, "the data of the write at {addr:#x} did not come in {cycles} cycles")
            }
            Self::AddressMissing { cycles } => {
                write!(f, "data came, and its address did not in {cycles} cycles")
            }
            Self::AnswerNotTaken { channel, addr, cycles } => {
                write!(f, "the answer on {channel} for {addr:#x} was not taken in {cycles} cycles")
            }
            Self::IdleWhileOwed { reads, writes, addr } => {
                write!(
                    f,
                    "it says idle, and memory owes {reads} reads and {writes} writes, the oldest \
                     at {addr:#x}"
                )
            }
            Self::NoAnswer { offset, write, cycles } => {
                let access = if write { "write" } else { "read" };
                write!(f, "a {access} of register {offset:#x} had no answer in {cycles} cycles")
            }
            Self::Unasked { channel } => write!(f, "an answer on {channel} without a request"),
            Self::RegisterError { offset, response } => {
                write!(
                    f,
                    "register {offset:#x} answered {}",
                    if response == 2 { "SLVERR" } else { "DECERR" }
                )
            }
            Self::NoInterrupt { waited_ns } => {
                write!(
                    f,
                    "it went from busy to idle in a wait of {waited_ns} ns, with no interrupt"
                )
            }
            Self::Unknown => f.write_str("an output depends on what a register held at power-on"),
            Self::Lagged { cycles } => {
                write!(f, "it ran without end; {cycles} cycles were left out")
            }
            Self::NoSuchFault { fault } => {
                write!(f, "the fault {fault} cannot be had of a core of gates")
            }
        }
    }
}

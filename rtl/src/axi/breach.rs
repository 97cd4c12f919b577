//! The rules of AXI, and their breaches.

use std::fmt;

/// A channel on which the core speaks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A write's address.
    Aw,
    /// A write's data.
    W,
    /// A write's answer, of the core's registers.
    B,
    /// A read's address.
    Ar,
    /// A read's data, of the core's registers.
    R,
    /// A stream that the core sends.
    Stream,
}

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

/// A rule that a core broke, in words: addresses and strobes with 0x, counts in decimal. The names
/// of sections are IHI 0022's (AXI4, issue H).
#[allow(missing_docs, reason = "each text names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Breach {
    #[error("a burst of {bytes} bytes at {addr:#x} goes over 4 KiB (A3.4.1)")]
    Crosses4KiB { addr: u64, bytes: u64 },
    #[error("a burst at {addr:#x} is of the reserved kind {burst} (table A3-3)")]
    ReservedBurst { addr: u64, burst: u32 },
    #[error(
        "a burst at {addr:#x} has beats of {beat_bytes} bytes on a bus of {bus_bytes} (A3.4.1)"
    )]
    SizeOverBus { addr: u64, beat_bytes: u64, bus_bytes: usize },
    /// One that stays has more than 16 beats, or one that wraps has other than 2, 4, 8 or 16.
    #[error("a burst at {addr:#x} of its kind may not have {beats} beats (A3.4.1)")]
    BurstLength { addr: u64, beats: usize },
    #[error("a burst that wraps begins at {addr:#x}, within a beat of {beat_bytes} bytes (A3.4.1)")]
    WrapUnaligned { addr: u64, beat_bytes: u64 },
    #[error("the last of {beats} beats at {addr:#x} has no WLAST (A3.2.2)")]
    LastMissing { addr: u64, beats: usize },
    #[error("the write at {addr:#x} has {beats} beats, and WLAST at beat {came}")]
    LastEarly { addr: u64, beats: usize, came: usize },
    #[error(
        "the beat at {addr:#x} has the strobes {strobes:#x}, and may have those of {allowed:#x} \
         (A3.4.3)"
    )]
    StrobeOutside { addr: u64, strobes: u64, allowed: u64 },
    #[error("valid of {channel} fell before ready (A3.2.1)")]
    ValidDropped { channel: Channel },
    #[error("the payload of {channel} changed before ready (A3.2.1)")]
    PayloadChanged { channel: Channel },
    #[error("valid of {channel} is high in reset (A3.1.2)")]
    ValidInReset { channel: Channel },
    /// With memory that waits for the data, neither comes.
    #[error(
        "the data of the write at {addr:#x} waited {cycles} cycles for its address to be taken \
         (A3.3.1)"
    )]
    DataWaitsForAddress { addr: u64, cycles: u32 },
    /// With memory that waits for the address, neither comes.
    #[error("a write's address waited {cycles} cycles for its data to be taken (A3.3.1)")]
    AddressWaitsForData { cycles: u32 },
    /// With memory that waits for valid, neither comes.
    #[error("valid of {channel} came only with a ready, {times} times in a row (A3.2.1)")]
    ValidWaitsForReady { channel: Channel, times: u32 },
    #[error("the data of the write at {addr:#x} did not come in {cycles} cycles")]
    DataMissing { addr: u64, cycles: u32 },
    #[error("data came, and its address did not in {cycles} cycles")]
    AddressMissing { cycles: u32 },
    #[error("the answer on {channel} for {addr:#x} was not taken in {cycles} cycles")]
    AnswerNotTaken { channel: Channel, addr: u64, cycles: u32 },
    #[error(
        "it says idle, and memory owes {reads} reads and {writes} writes, the oldest at {addr:#x}"
    )]
    IdleWhileOwed { reads: usize, writes: usize, addr: u64 },
    /// A processor would wait for ever. The core answers nothing more before a reset.
    #[error(
        "a {} of register {offset:#x} had no answer in {cycles} cycles",
        if *write { "write" } else { "read" }
    )]
    NoAnswer { offset: u32, write: bool, cycles: u32 },
    /// It comes before its request, or twice.
    #[error("an answer on {channel} without a request")]
    Unasked { channel: Channel },
    /// A processor takes it for an abort.
    #[error("register {offset:#x} answered {}", if *response == 2 { "SLVERR" } else { "DECERR" })]
    RegisterError { offset: u32, response: u32 },
    #[error("it went from busy to idle in a wait of {waited_ns} ns, with no interrupt")]
    NoInterrupt { waited_ns: u64 },
    /// An X.
    #[error("an output depends on what a register held at power-on")]
    Unknown,
    /// The core is busy for ever, or has no port `idle`: its clock was moved on.
    #[error("it ran without end; {cycles} cycles were left out")]
    Lagged { cycles: u64 },
    /// A fault of [`Faults`](contigo::sim::Faults) that only a core's own registers could have:
    /// nothing strikes.
    #[error("the fault {fault} cannot be had of a core of gates")]
    NoSuchFault { fault: &'static str },
}

/// A breach, with its time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The core's clock.
    pub cycle: u64,
    /// The AXI4 master; `None`: the registers, the streams, or the core itself.
    pub master: Option<usize>,
    /// The rule.
    pub breach: Breach,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cycle {}", self.cycle)?;
        if let Some(master) = self.master {
            write!(f, ", master {master}")?;
        }
        write!(f, ": {}", self.breach)
    }
}

/// A core that breaks a rule in every burst would fill memory with it.
const MOST: usize = 64;

/// The breaches of one core, the first 64 of them.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    more: u64,
}

impl Findings {
    pub(crate) fn add(&mut self, cycle: u64, master: Option<usize>, breach: Breach) {
        if self.list.len() < MOST {
            self.list.push(Finding { cycle, master, breach });
        } else {
            self.more += 1;
        }
    }

    /// The first 64.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// How many others there were.
    #[must_use]
    pub const fn more(&self) -> u64 {
        self.more
    }
}

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

/// A rule that a core broke. The names of sections are IHI 0022's (AXI4, issue H).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breach {
    /// A burst goes over a boundary of 4 KiB (A3.4.1).
    Crosses4KiB {
        /// Its first byte.
        addr: u64,
        /// Its length.
        bytes: u64,
    },
    /// A burst is of a kind that is reserved (table A3-3).
    ReservedBurst {
        /// Its first byte.
        addr: u64,
        /// Its kind.
        burst: u32,
    },
    /// Its beats are wider than the bus (A3.4.1).
    SizeOverBus {
        /// Its first byte.
        addr: u64,
        /// The bytes of its beats.
        beat_bytes: u64,
        /// The bytes of the bus.
        bus_bytes: usize,
    },
    /// A burst that stays has more than 16 beats, or one that wraps has other than 2, 4, 8 or 16.
    BurstLength {
        /// Its first byte.
        addr: u64,
        /// Its beats.
        beats: usize,
    },
    /// A burst that wraps begins within a beat (A3.4.1).
    WrapUnaligned {
        /// Its first byte.
        addr: u64,
        /// The bytes of its beats.
        beat_bytes: u64,
    },
    /// The last beat of a write is not marked (A3.2.2).
    LastMissing {
        /// The burst's first byte.
        addr: u64,
        /// Its beats.
        beats: usize,
    },
    /// A write's data ends before its last beat.
    LastEarly {
        /// The burst's first byte.
        addr: u64,
        /// Its beats.
        beats: usize,
        /// The beats that came.
        came: usize,
    },
    /// A strobe is set for a lane that the beat does not have (A3.4.3).
    StrobeOutside {
        /// The beat's address.
        addr: u64,
        /// The strobes.
        strobes: u64,
        /// The strobes that it may have.
        allowed: u64,
    },
    /// Valid fell before ready (A3.2.1).
    ValidDropped {
        /// Where.
        channel: Channel,
    },
    /// The payload changed before ready (A3.2.1).
    PayloadChanged {
        /// Where.
        channel: Channel,
    },
    /// Valid is high while the reset line is pulled (A3.1.2).
    ValidInReset {
        /// Where.
        channel: Channel,
    },
    /// A write's data waits until its address is taken (A3.3.1): with memory that waits for the
    /// data, neither comes.
    DataWaitsForAddress {
        /// The burst's first byte.
        addr: u64,
        /// For so many cycles.
        cycles: u32,
    },
    /// A write's address waits until its data is taken (A3.3.1): with memory that waits for the
    /// address, neither comes.
    AddressWaitsForData {
        /// For so many cycles.
        cycles: u32,
    },
    /// Valid waits for ready (A3.2.1): with memory that waits for valid, neither comes.
    ValidWaitsForReady {
        /// Where.
        channel: Channel,
        /// So many times in a row it came only with a ready.
        times: u32,
    },
    /// A write's address was taken, and the data does not come.
    DataMissing {
        /// The burst's first byte.
        addr: u64,
        /// For so many cycles.
        cycles: u32,
    },
    /// Data came, and its address does not.
    AddressMissing {
        /// For so many cycles.
        cycles: u32,
    },
    /// The core does not take an answer from memory.
    AnswerNotTaken {
        /// Its channel.
        channel: Channel,
        /// The burst's first byte.
        addr: u64,
        /// For so many cycles.
        cycles: u32,
    },
    /// The core says that it is idle, and is owed answers, or still asks.
    IdleWhileOwed {
        /// Bursts of reads that are under way.
        reads: usize,
        /// Bursts of writes that are under way.
        writes: usize,
        /// The first byte of the oldest.
        addr: u64,
    },
    /// A register's access has no answer: a processor would wait for ever. The core answers nothing
    /// more before a reset.
    NoAnswer {
        /// The register.
        offset: u32,
        /// It was written.
        write: bool,
        /// After so many cycles.
        cycles: u32,
    },
    /// An answer without a request: it comes before its request, or twice.
    Unasked {
        /// Its channel.
        channel: Channel,
    },
    /// A register's access is answered with an error: a processor takes it for an abort.
    RegisterError {
        /// The register.
        offset: u32,
        /// 2: SLVERR, 3: DECERR.
        response: u32,
    },
    /// A wait has seen the core from busy to idle, and no interrupt.
    NoInterrupt {
        /// When the wait ended.
        waited_ns: u64,
    },
    /// An output depends on what a register held at power-on (an X).
    Unknown,
    /// The core ran for so long that its clock was moved on: it is busy for ever, or it has no port
    /// `idle`.
    Lagged {
        /// The cycles that it did not get.
        cycles: u64,
    },
    /// The board asks for a fault that no core of gates can have, because only its own registers
    /// could lie so; nothing strikes.
    NoSuchFault {
        /// Its name in [`Faults`](contigo::sim::Faults).
        fault: &'static str,
    },
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

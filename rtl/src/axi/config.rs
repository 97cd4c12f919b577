//! The settings of memory behind a core's master, and its counts.

use std::ops::RangeInclusive;

/// When a write changes memory. AXI promises it at the answer, and says nothing of the time before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// With its answer, which is as late as it may be.
    AtAnswer,
    /// Any time from its beats to its answer; each burst has its own.
    Random,
}

/// Memory behind a core's master.
///
/// Everything that is left to chance comes from the board's seed.
#[derive(Clone, Debug)]
pub struct SlaveConfig {
    /// Cycles from a burst's last word to its answer.
    pub read_cycles: RangeInclusive<u32>,
    /// The same for writes.
    pub write_cycles: RangeInclusive<u32>,
    /// In so many cycles of 1,000 a channel is not ready, each by itself.
    pub stalls: u16,
    /// So many bursts of each direction are under way at once, at most.
    pub outstanding: usize,
    /// Answers to different IDs change places.
    pub reorders: bool,
    /// The beats of reads with different IDs come in turns.
    pub interleaves: bool,
    /// When writes change memory.
    pub landing: Landing,
    /// It takes a write's address only after its data has come (A3.3.1 allows it).
    pub data_first: bool,
    /// It takes a write's data only after its address (A3.3.1 allows it): a crossbar that routes
    /// data by addresses. `data_first` goes before it.
    pub address_first: bool,
    /// It is ready only in a cycle after it saw valid (A3.2.1 allows it).
    pub ready_after_valid: bool,
    /// The three above come and go, too. They are drawn at a reset, and each time that the
    /// direction has nothing under way. One that is set stays.
    pub draws: bool,
    /// So many bursts of 1,000 are answered with SLVERR.
    pub errors: u16,
    /// So many bursts of 1,000 are never answered.
    pub lost: u16,
    /// After so many cycles without what the core owes, that is a breach.
    pub patience_cycles: u32,
}

impl SlaveConfig {
    /// Memory that is always ready, and answers in order after 20 cycles.
    pub const CALM: Self = Self {
        read_cycles: 20..=20,
        write_cycles: 20..=20,
        stalls: 0,
        outstanding: 8,
        reorders: false,
        interleaves: false,
        landing: Landing::AtAnswer,
        data_first: false,
        address_first: false,
        ready_after_valid: false,
        draws: false,
        errors: 0,
        lost: 0,
        patience_cycles: 10_000,
    };

    /// Memory that does all that AXI allows on the ports of the model, except for errors. Whether
    /// it waits for valid, for a write's data or for its address comes from the seed.
    pub const HOSTILE: Self = Self {
        read_cycles: 1..=60,
        write_cycles: 1..=400,
        stalls: 300,
        reorders: true,
        interleaves: true,
        landing: Landing::Random,
        draws: true,
        ..Self::CALM
    };
}

impl Default for SlaveConfig {
    /// [`CALM`](Self::CALM).
    fn default() -> Self {
        Self::CALM
    }
}

/// The counts of one master.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlaveCounts {
    /// Bursts of reads.
    pub reads: u64,
    /// Bursts of writes.
    pub writes: u64,
    /// Beats of reads.
    pub read_beats: u64,
    /// Beats of writes.
    pub write_beats: u64,
    /// Bursts whose beats are narrower than the bus.
    pub narrow: u64,
    /// Bursts that stay or wrap.
    pub not_rising: u64,
    /// Answers with an error.
    pub errors: u64,
    /// Answers that were lost.
    pub lost: u64,
    /// Bursts that were answered before an older one.
    pub overtook: u64,
    /// The most writes that were under way at once.
    pub most_writes: usize,
    /// The most reads that were under way at once.
    pub most_reads: usize,
}

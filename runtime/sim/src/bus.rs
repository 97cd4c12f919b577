//! A board as a model sees it.

use super::{
    faults::{Fate, Faults},
    state::{BoardState, BusError, Master},
};
use contigo_core::types::DevAddr;
use core::{fmt, ops::Range};
use fastrand::Rng;

/// The widest word of a bus: AXI's 1,024 bits.
const WORD_MAX_BYTES: usize = 128;

/// The board as a model sees it: memory, the clock, and chance.
pub struct SimBus<'s> {
    world: World<'s>,
    faults: &'s Faults,
}

/// The two things that a model can stand in.
enum World<'s> {
    Board { state: &'s mut BoardState, master: Master<'s> },
    Other { memory: &'s mut dyn SimMemory, rng: &'s mut Rng },
}

/// Memory that is no simulated board's, with a model behind it all the same: an emulated machine's,
/// whose kernel has the model for a device.
///
/// Addresses are the device's own: an IOMMU between it and memory is the implementor's.
pub trait SimMemory {
    /// The time, in nanoseconds since any beginning. It never runs backwards.
    fn now_ns(&self) -> u64;

    /// Reads as a device does.
    ///
    /// # Errors
    /// [`BusError`] where the device reaches no memory. Bytes before it may be read.
    fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError>;

    /// Writes as a device does.
    ///
    /// # Errors
    /// [`BusError`] where the device reaches no memory. Bytes before it may be written.
    fn write(&mut self, addr: DevAddr, from: &[u8]) -> Result<(), BusError>;
}

impl fmt::Debug for SimBus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBus").field("now_ns", &self.now_ns()).finish_non_exhaustive()
    }
}

impl<'s> SimBus<'s> {
    pub(super) const fn on_board(
        state: &'s mut BoardState,
        master: Master<'s>,
        faults: &'s Faults,
    ) -> Self {
        Self { world: World::Board { state, master }, faults }
    }

    /// A bus over `memory`, for a model that stands on no simulated board.
    pub const fn over(memory: &'s mut dyn SimMemory, rng: &'s mut Rng, faults: &'s Faults) -> Self {
        Self { world: World::Other { memory, rng }, faults }
    }
}

impl SimBus<'_> {
    /// Virtual time; over a [`SimMemory`], its time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.world {
            World::Board { state, .. } => state.now_ns,
            World::Other { memory, .. } => memory.now_ns(),
        }
    }

    /// Moves the clock forward to `at_ns`. Only [`Model::run`](super::Model::run) has time to
    /// spend; a time in the past changes nothing, and nothing moves a [`SimMemory`]'s clock.
    pub const fn run_until(&mut self, at_ns: u64) {
        if let World::Board { state, .. } = &mut self.world
            && state.now_ns < at_ns
        {
            state.now_ns = at_ns;
        }
    }

    /// One register access takes its time.
    pub(super) const fn tick(&mut self) {
        if let World::Board { state, .. } = &mut self.world {
            state.tick();
        }
    }

    /// Reads memory as this master sees it.
    ///
    /// # Errors
    /// [`BusError`] where no memory is.
    pub fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.read(*master, addr, to, false),
            World::Other { memory, .. } => memory.read(addr, to),
        }
    }

    /// Reads memory as a master does whose bus has words of `word_bytes`, a power of two up to 128:
    /// AXI's and Avalon's reads have no byte strobes. It reads the rest of the first and last word
    /// too, and drops it. Memory has to be there, and is not counted as untouched: bytes of
    /// these words are no access to what was not handed over.
    ///
    /// # Errors
    /// [`BusError`] where no memory is.
    pub fn read_words(
        &mut self,
        addr: DevAddr,
        to: &mut [u8],
        word_bytes: usize,
    ) -> Result<(), BusError> {
        if to.is_empty() {
            return Ok(());
        }
        self.read(addr, to)?;
        let word = word_bytes.clamp(1, WORD_MAX_BYTES) as u64;
        let end = addr.0.saturating_add(to.len() as u64);
        let before = addr.0 - addr.0 % word;
        self.read_beside(before, addr.0 - before)?;
        self.read_beside(end, end.checked_next_multiple_of(word).map_or(0, |next| next - end))
    }

    /// Reads one beat of a bus, for a master that does not say which of its bytes it uses, as one
    /// of gates does not. It is wrong where none of them was handed over. So a length that is too
    /// long by less than a beat is not seen here; a model knows its bytes, and has
    /// [`read_words`](Self::read_words).
    ///
    /// # Errors
    /// [`BusError`] where no memory is.
    pub fn read_beat(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.read(*master, addr, to, true),
            World::Other { memory, .. } => memory.read(addr, to),
        }
    }

    /// Reads `len` bytes of a word that has others of the operand.
    fn read_beside(&mut self, addr: u64, len: u64) -> Result<(), BusError> {
        let mut rest = [0; WORD_MAX_BYTES];
        let rest =
            usize::try_from(len).ok().and_then(|len| rest.get_mut(..len)).unwrap_or_default();
        match &mut self.world {
            _ if rest.is_empty() => Ok(()),
            World::Board { state, master } => state.read_beside(*master, DevAddr(addr), rest.len()),
            World::Other { memory, .. } => memory.read(DevAddr(addr), rest),
        }
    }

    /// Reads memory as a logic analyser at this master's port does: it is no access of the
    /// device's, and nothing is counted.
    ///
    /// # Errors
    /// [`BusError`] where no memory is.
    pub fn probe(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.probe(master.port, addr, to),
            World::Other { memory, .. } => memory.read(addr, to),
        }
    }

    /// Writes memory as this master does.
    ///
    /// # Errors
    /// [`BusError`] where no memory is.
    pub fn write(&mut self, addr: DevAddr, from: &[u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.write(*master, addr, from),
            World::Other { memory, .. } => memory.write(addr, from),
        }
    }

    /// Writes the bytes of `from` whose bit in `strobes` is set, the first byte's being bit 0: a
    /// beat of AXI with its byte strobes. Bytes past the 64th have no bit, and are not written.
    ///
    /// # Errors
    /// [`BusError`] where no memory is. Bytes before it may be written.
    pub fn write_strobed(
        &mut self,
        addr: DevAddr,
        from: &[u8],
        strobes: u64,
    ) -> Result<(), BusError> {
        runs(strobes, from.len()).try_for_each(|run| {
            let at = DevAddr(addr.0.wrapping_add(run.start as u64));
            from.get(run).map_or(Ok(()), |bytes| self.write(at, bytes))
        })
    }

    /// The board's chance.
    pub const fn rng(&mut self) -> &mut Rng {
        match &mut self.world {
            World::Board { state, .. } => &mut state.rng,
            World::Other { rng, .. } => rng,
        }
    }

    /// How often each thing goes wrong. A model strikes itself, with [`strikes`](Self::strikes):
    /// the board injects nothing into it.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        self.faults
    }

    /// True in `per_mille` cases of 1,000. The board counts them by kind
    /// ([`SimBoard::struck`](super::SimBoard::struck)).
    pub fn strikes(&mut self, per_mille: u16) -> bool {
        let struck = per_mille > 0 && self.rng().u16(..1000) < per_mille;
        if let (true, World::Board { state, .. }) = (struck, &mut self.world) {
            state.struck.by(per_mille, self.faults);
        }
        struck
    }

    /// Draws how a job ends: well, hanging, or stuck.
    pub(crate) fn fate(&mut self) -> Fate {
        if self.strikes(self.faults.stuck) {
            Fate::Stuck
        } else if self.strikes(self.faults.hang) {
            Fate::Hang
        } else {
            Fate::Good
        }
    }

    /// Draws how much later than its cause an interrupt comes: at once, or up to `late_ns`.
    /// `None`: never.
    pub(crate) fn irq_delay_ns(&mut self, late_ns: u64) -> Option<u64> {
        if self.strikes(self.faults.lost_irq) {
            None
        } else if self.strikes(self.faults.late_irq) {
            Some(self.rng().u64(..=late_ns))
        } else {
            Some(0)
        }
    }
}

/// The ranges of set bits among the first `len` of `bits`, in order.
fn runs(bits: u64, len: usize) -> impl Iterator<Item = Range<usize>> {
    let mut rest = if len < 64 { bits & ((1 << len) - 1) } else { bits };
    core::iter::from_fn(move || {
        let start = rest.trailing_zeros();
        if rest == 0 {
            return None;
        }
        let len = (rest >> start).trailing_ones();
        let done = start + len;
        rest = if done < 64 { rest >> done << done } else { 0 };
        Some(start as usize..done as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn strobes_are_runs_of_bytes() {
        let all = |bits, len| {
            runs(bits, len).map(|run| (run.start, run.end)).collect::<heapless::Vec<_, 32>>()
        };
        assert_eq!(all(0, 64), [] as [(usize, usize); 0]);
        assert_eq!(all(u64::MAX, 64), [(0, 64)]);
        assert_eq!(all(u64::MAX, 8), [(0, 8)]);
        assert_eq!(all(0b1011_0001, 8), [(0, 1), (4, 6), (7, 8)]);
        assert_eq!(all(0b1011_0001, 5), [(0, 1), (4, 5)]);
        assert_eq!(all(1 << 63, 64), [(63, 64)]);
    }
}

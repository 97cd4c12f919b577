//! A board as a model sees it.

use super::faults::{Fate, Faults};
use super::state::{BoardState, BusError, Master};
use contigo_core::types::DevAddr;
use core::fmt;
use core::ops::Range;
use fastrand::Rng;

/// The widest word of a bus: AXI's 1,024 bits.
const WORD_MAX_BYTES: usize = 128;

/// The board as a model sees it: memory, the clock, and chance.
pub struct SimBus<'s> {
    world: World<'s>,
    faults: &'s Faults,
}

/// What a model runs on: a simulated board, or other memory.
enum World<'s> {
    Board { state: &'s mut BoardState, master: Master<'s> },
    Other { memory: &'s mut dyn SimMemory, rng: &'s mut Rng },
}

/// Memory outside a simulated board that a model works on, such as an emulated machine's, whose
/// kernel drives the model as a device.
///
/// Addresses are the device's own: the implementor models any IOMMU between device and memory.
pub trait SimMemory {
    /// The time, in nanoseconds since any beginning. It never runs backwards.
    fn now_ns(&self) -> u64;

    /// Reads as a device does.
    ///
    /// # Errors
    /// [`BusError`] where the device reaches no memory. Bytes before that may have been read.
    fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError>;

    /// Writes as a device does.
    ///
    /// # Errors
    /// [`BusError`] where the device reaches no memory. Bytes before that may have been written.
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

    /// A bus over `memory`, for a model outside a simulated board.
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

    /// Moves the clock to `at_ns`. Only [`Model::run`](super::Model::run) may spend time. A time in
    /// the past changes nothing, and nothing moves a [`SimMemory`]'s clock.
    pub const fn run_until(&mut self, at_ns: u64) {
        if let World::Board { state, .. } = &mut self.world
            && state.now_ns < at_ns
        {
            state.now_ns = at_ns;
        }
    }

    /// Advances the clock by one register access.
    pub(super) const fn tick(&mut self) {
        if let World::Board { state, .. } = &mut self.world {
            state.tick();
        }
    }

    /// Reads memory as this master sees it.
    ///
    /// # Errors
    /// [`BusError`] where there is no memory.
    pub fn read(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.read(*master, addr, to, false),
            World::Other { memory, .. } => memory.read(addr, to),
        }
    }

    /// Reads memory as a master whose bus has words of `word_bytes`, a power of two up to 128:
    /// reads on AXI and Avalon have no byte strobes. The master also reads the rest of the first
    /// and last word, and drops it. That memory must exist, but reading it does not count as an
    /// access to bytes that were not handed over.
    ///
    /// # Errors
    /// [`BusError`] where there is no memory.
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

    /// Reads one beat of a bus, for a master that does not tell which of its bytes it uses, such as
    /// RTL. The access is wrong if none of them was handed over. So a length that is too long by
    /// less than a beat goes unnoticed here; a model knows its bytes, and uses
    /// [`read_words`](Self::read_words).
    ///
    /// # Errors
    /// [`BusError`] where there is no memory.
    pub fn read_beat(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.read(*master, addr, to, true),
            World::Other { memory, .. } => memory.read(addr, to),
        }
    }

    /// Reads the `len` bytes of a word that lie beside the operand's.
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

    /// Reads memory as a logic analyser at this master's port would: it is not a device's access,
    /// and nothing is counted.
    ///
    /// # Errors
    /// [`BusError`] where there is no memory.
    pub fn probe(&mut self, addr: DevAddr, to: &mut [u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.probe(master.port, addr, to),
            World::Other { memory, .. } => memory.read(addr, to),
        }
    }

    /// How many bytes from `addr` on were handed over to this master as one buffer, to be read, or
    /// to be written if `writes`. Over a [`SimMemory`], which does not record that, 0.
    #[must_use]
    pub(crate) fn handed_over_bytes(&self, addr: DevAddr, writes: bool) -> usize {
        match &self.world {
            World::Board { state, master } => state.held_bytes(*master, addr, writes),
            World::Other { .. } => 0,
        }
    }

    /// Records that the model did not compute a job: its driver's job fails
    /// ([`Error::NotComputed`](contigo_core::Error::NotComputed)). By an access that the program
    /// allows, it does not.
    pub(crate) fn did_not_compute(&mut self, by_wrong_access: bool) {
        if let World::Board { state, master } = &mut self.world {
            state.did_not_compute(*master, by_wrong_access);
        }
    }

    /// Writes memory as this master does.
    ///
    /// # Errors
    /// [`BusError`] where there is no memory.
    pub fn write(&mut self, addr: DevAddr, from: &[u8]) -> Result<(), BusError> {
        match &mut self.world {
            World::Board { state, master } => state.write(*master, addr, from),
            World::Other { memory, .. } => memory.write(addr, from),
        }
    }

    /// Writes the bytes of `from` whose bit in `strobes` is set (bit 0 is the first byte), as a
    /// beat of AXI with byte strobes. Bytes past the 64th have no bit, and are not written.
    ///
    /// # Errors
    /// [`BusError`] where there is no memory. Bytes before that may have been written.
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

    /// The board's random numbers.
    pub const fn rng(&mut self) -> &mut Rng {
        match &mut self.world {
            World::Board { state, .. } => &mut state.rng,
            World::Other { rng, .. } => rng,
        }
    }

    /// How often each thing goes wrong. A model injects its own faults, with
    /// [`strikes`](Self::strikes): the board injects none.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        self.faults
    }

    /// True in `per_mille` cases of 1,000. The board counts them by kind
    /// ([`SimCounts::struck`](super::SimCounts::struck)).
    pub fn strikes(&mut self, per_mille: u16) -> bool {
        let struck = per_mille > 0 && self.rng().u16(..1000) < per_mille;
        if let (true, World::Board { state, .. }) = (struck, &mut self.world) {
            state.counts.struck.by(per_mille, self.faults);
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

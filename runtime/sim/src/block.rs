#![allow(
    unsafe_code,
    reason = "the simulated caches move bytes between two memories by raw pointers"
)]
//! One block of simulated memory: the CPU's view, the bus's view, the cache's clean copy, and a
//! mark for each byte: which device may touch it.

use contigo_core::mem::SyncScope;
use contigo_core::types::{Align, BaseAddr, Direction};
use core::ops::Range;
use core::ptr::NonNull;
use fastrand::Rng;

/// A [`Holder`](contigo_core::mem::Holder) in one byte, for each byte of memory. 0: no device holds
/// it. Otherwise bit 0 is set, bit 1 says that the device may write, and the port's number is in
/// bits 2 to 6. Port numbers count from 1; 0 means any port. Bit 7 is the first byte's of a
/// hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub(super) u8);

impl Mark {
    pub(super) const NONE: Self = Self(0);
    const DEVICE: u8 = 1;
    const WRITES: u8 = 2;
    const FIRST: u8 = 0x80;
    /// The largest number of a port.
    const MAX_PORT: u8 = 31;

    /// A device behind port number `port`. A number that does not fit means any port.
    pub(super) fn device(port: Option<usize>, writes: bool) -> Self {
        let number = port
            .and_then(|port| u8::try_from(port + 1).ok())
            .filter(|&number| number <= Self::MAX_PORT)
            .unwrap_or(0);
        Self(Self::DEVICE | if writes { Self::WRITES } else { 0 } | number << 2)
    }

    /// Returns whether any device may write.
    pub(super) fn is_written(self) -> bool {
        self.0 & Self::WRITES != 0
    }

    /// Returns whether a device behind port number `port` may read, or write.
    pub(super) fn allows(self, port: Option<usize>, writes: bool) -> bool {
        let number = usize::from(self.0 >> 2 & Self::MAX_PORT);
        let mine = number == 0 || Some(number) == port.map(|port| port + 1);
        self.0 & Self::DEVICE != 0 && mine && (!writes || self.0 & Self::WRITES != 0)
    }
}

/// A block that the bus reaches. It holds plain pointers: the backend that made it removes it from
/// the board before it frees the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimBlock {
    pub(super) id: u32,
    pub(super) base: BaseAddr,
    pub(super) len_bytes: usize,
    /// The CPU's view: its caches, and memory behind them.
    pub(super) cpu: NonNull<u8>,
    /// The view of the bus; `None` for memory that is not simulated, which has one view only.
    pub(super) behind: Option<Behind>,
    /// The holder of each byte: one [`Mark`] per byte. `None`: no holder is recorded.
    pub(super) marks: Option<NonNull<u8>>,
}

/// The other side of a simulated block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    /// Memory as the bus sees it.
    bus: NonNull<u8>,
    /// The contents of the caches when they last agreed with memory. A line is dirty where the
    /// CPU's view differs from this.
    clean: NonNull<u8>,
    line: Align,
    scope: SyncScope,
}

// SAFETY: the pointers are dereferenced only under the board's lock, or for bytes that the caller's
// thread owns.
unsafe impl Send for SimBlock {}
// SAFETY: as for `Send`: `&SimBlock` gives no more than a copy does.
unsafe impl Sync for SimBlock {}

impl SimBlock {
    /// A block over four memories of `len_bytes` each, one after the other from `memory`: the
    /// CPU's, the bus's, the clean copy, the marks.
    ///
    /// # Safety
    /// `memory` is valid for `4 * len_bytes` bytes, initialised, and used by no other code except
    /// through the first quarter, by [`Backend`](contigo_core::Backend)'s rules, until the block is
    /// taken from the board. `len_bytes` is a multiple of `line`.
    pub(super) unsafe fn over(
        memory: NonNull<u8>,
        len_bytes: usize,
        line: Align,
        base: BaseAddr,
        scope: SyncScope,
    ) -> Self {
        // SAFETY: all three lie inside the 4 * len_bytes bytes.
        let (bus, clean, marks) = unsafe {
            (memory.add(len_bytes), memory.add(2 * len_bytes), memory.add(3 * len_bytes))
        };
        let behind = Some(Behind { bus, clean, line, scope });
        let block = Self { id: 0, base, len_bytes, cpu: memory, behind, marks: Some(marks) };
        // A fresh CMA block: the kernel zeroed it through its caches, and memory still holds what
        // was there before. Every line is dirty.
        // SAFETY: as above; no code has a view yet.
        unsafe {
            memory.write_bytes(0, len_bytes);
            bus.write_bytes(0xA5, len_bytes);
            clean.write_bytes(0xA5, len_bytes);
            marks.write_bytes(Mark::NONE.0, len_bytes);
        }
        block
    }

    /// Returns the offset in this block of the `len` bytes at bus address `addr`, for a master
    /// behind a port that adds `port_offset`.
    pub(super) fn find(&self, addr: u64, len: usize, port_offset: u64) -> Option<usize> {
        let first = match self.base {
            BaseAddr::Phys(phys) => phys.0.checked_add(port_offset)?,
            BaseAddr::Dev(dev) => dev.0,
        };
        let offset = usize::try_from(addr.checked_sub(first)?).ok()?;
        (offset <= self.len_bytes && len <= self.len_bytes - offset).then_some(offset)
    }

    /// Marks `range`, which lies inside the block. The board's lock is held.
    pub(super) fn mark(&self, range: Range<usize>, mark: Mark) {
        if let Some(marks) = self.marks
            && range.start <= range.end
            && range.end <= self.len_bytes
        {
            // SAFETY: there is a mark for each byte of the block, and the range is inside it. Only
            // the board reads and writes marks, under its lock.
            unsafe { marks.add(range.start).write_bytes(mark.0, range.len()) }
            if mark != Mark::NONE && !range.is_empty() {
                // SAFETY: as above.
                unsafe { marks.add(range.start).write(mark.0 | Mark::FIRST) }
            }
        }
    }

    /// Returns whether a device behind port number `port` may read all of `range`, or write it. The
    /// range lies inside the block (`find`).
    pub(super) fn is_held(&self, range: Range<usize>, port: Option<usize>, writes: bool) -> bool {
        let mut known = (Mark::NONE.0, false);
        // Neighbours mostly have the same mark.
        self.marks_of(range).iter().all(|&mark| {
            if mark != known.0 {
                known = (mark, Mark(mark).allows(port, writes));
            }
            known.1
        })
    }

    /// Returns whether it may read at least one byte of `range`, which is not empty.
    pub(super) fn is_partly_held(&self, range: Range<usize>, port: Option<usize>) -> bool {
        self.marks.is_none()
            || self.marks_of(range).iter().any(|&mark| Mark(mark).allows(port, false))
    }

    /// How many bytes from `at` on one hand-over gave a device behind port number `port` to read,
    /// or to write; all of the block where no holder is recorded.
    pub(super) fn held_bytes(&self, at: usize, port: Option<usize>, writes: bool) -> usize {
        let range = at.min(self.len_bytes)..self.len_bytes;
        if self.marks.is_none() {
            return range.len();
        }
        let marks = self.marks_of(range).iter().enumerate();
        let is_same = |at: usize, mark: u8| at == 0 || mark & Mark::FIRST == 0;
        marks
            .take_while(|&(at, &mark)| is_same(at, mark) && Mark(mark).allows(port, writes))
            .count()
    }

    /// The marks of `range`, which lies inside the block. Empty where no holder is recorded: then
    /// every access is allowed. The board's lock is held.
    fn marks_of(&self, range: Range<usize>) -> &[u8] {
        let Some(marks) = self.marks else { return &[] };
        // SAFETY: as in `mark`: the board's lock is held while the slice lives, and nothing is
        // written through it or beside it.
        unsafe { NonNull::slice_from_raw_parts(marks.add(range.start), range.len()).as_ref() }
    }

    /// `sync_for_device`: cleans what the device reads, throws away or cleans what it writes.
    /// Returns how many lines lost something that a device had written.
    pub(super) fn for_device(&self, range: Range<usize>, direction: Direction) -> u64 {
        let Some(behind) = self.behind else { return 0 };
        match direction {
            Direction::ToDevice => {
                let lost = self.clean_shared(behind, &range);
                self.clean(behind, self.clip(behind, range));
                return lost;
            }
            Direction::FromDevice => self.invalidate(behind, self.lines(behind, range)),
            Direction::Bidirectional => self.clean(behind, self.lines(behind, range)),
        }
        0
    }

    /// A driver publishes `words` of memory that its device may write at any time. Their lines
    /// count as dirty even if no word changed, and are written back whole: whatever the device
    /// wrote beside the words since caches and memory last agreed is lost.
    fn clean_shared(&self, behind: Behind, words: &Range<usize>) -> u64 {
        let Some(marks) = self.marks.filter(|_| !words.is_empty()) else { return 0 };
        let mut lost = 0;
        for start in self.ranged_lines(behind, words.clone()).step_by(behind.line.bytes()) {
            // SAFETY: the first of the words in this line, inside the block; marks belong to the
            // board, whose lock is held.
            if !Mark(unsafe { marks.add(start.max(words.start)).read() }).is_written() {
                continue;
            }
            let mut line_lost = false;
            for at in start..start + behind.line.bytes() {
                // SAFETY: `at` lies inside the block, so each memory has that byte. Except for the
                // CPU's view, the memories and the marks belong to the board, whose lock is held.
                // No code has a view of a byte that a device may write, and the driver that writes
                // there is the caller.
                unsafe {
                    if !Mark(marks.add(at).read()).is_written() {
                        continue;
                    }
                    let (seen, held) = (self.cpu.add(at).read(), behind.bus.add(at).read());
                    line_lost |= !words.contains(&at) && held != behind.clean.add(at).read();
                    behind.bus.add(at).write(seen);
                    behind.clean.add(at).write(seen);
                }
            }
            lost += u64::from(line_lost);
        }
        lost
    }

    /// `sync_for_cpu`: invalidates the lines that the device wrote. None of them should be dirty:
    /// `rng` decides whether a dirty line was evicted over the device's output before. Returns how
    /// many were.
    ///
    /// Evictions show here and not when the device writes, because here the caller owns the lines.
    /// A simulated device behind a port that does not snoop never touches the CPU's view.
    pub(super) fn for_cpu(&self, range: Range<usize>, direction: Direction, rng: &mut Rng) -> u64 {
        let Some(behind) = self.behind else { return 0 };
        if direction == Direction::ToDevice {
            return 0;
        }
        let lines = self.lines(behind, range);
        let mut evictions = 0;
        for start in lines.clone().step_by(behind.line.bytes()) {
            let line = start..start + behind.line.bytes();
            if self.is_dirty(behind, line.clone()) && rng.bool() {
                self.clean(behind, line);
                evictions += 1;
            }
        }
        self.invalidate(behind, lines);
        evictions
    }

    /// Reads as a master: the bus's view or, for a port that snoops, what the caches hold.
    pub(super) fn device_read(&self, offset: usize, to: &mut [u8], coherent: bool) {
        let from = match self.behind {
            Some(behind) if !coherent => behind.bus,
            _ => self.cpu,
        };
        // SAFETY: `find` put the bytes inside the block. The CPU holds no view of them: a device
        // touches only what it was handed (`Model`, `Mmio::write32`), at the addresses of its own
        // port and board (`Device`, `Bus::Sim`).
        unsafe { from.add(offset).as_ptr().copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
    }

    /// Writes as a master: behind the caches or, for a port that snoops, into every view.
    pub(super) fn device_write(&self, offset: usize, from: &[u8], coherent: bool) {
        let put = |to: NonNull<u8>| {
            // SAFETY: as in `device_read`.
            unsafe { to.add(offset).as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) }
        };
        match self.behind {
            None => put(self.cpu),
            Some(behind) if coherent => {
                [self.cpu, behind.bus, behind.clean].into_iter().for_each(put)
            }
            Some(behind) => put(behind.bus),
        }
    }

    /// Writes back dirty lines: copies the CPU's view to memory and to the clean copy. A clean line
    /// is not written, even where memory holds something newer.
    fn clean(&self, behind: Behind, range: Range<usize>) {
        let mut start = range.start;
        while start < range.end {
            let end =
                behind.line.round_down(start).saturating_add(behind.line.bytes()).min(range.end);
            if self.is_dirty(behind, start..end) {
                // SAFETY: `lines` and `clip` keep the range inside the block. No view is alive of
                // lines that a device writes. Of bytes that a device only reads, this reads only
                // those in the range, and they belong to the caller.
                unsafe {
                    let from = self.cpu.add(start).as_ptr();
                    from.copy_to_nonoverlapping(behind.bus.add(start).as_ptr(), end - start);
                    from.copy_to_nonoverlapping(behind.clean.add(start).as_ptr(), end - start);
                }
            }
            start = end;
        }
    }

    /// Invalidates: copies what memory holds to the CPU's view and the clean copy.
    fn invalidate(&self, behind: Behind, range: Range<usize>) {
        // SAFETY: as in `clean`; and only lines that a device writes are invalidated: no view of
        // them is alive.
        unsafe {
            let from = behind.bus.add(range.start).as_ptr();
            from.copy_to_nonoverlapping(self.cpu.add(range.start).as_ptr(), range.len());
            from.copy_to_nonoverlapping(behind.clean.add(range.start).as_ptr(), range.len());
        }
    }

    fn is_dirty(&self, behind: Behind, line: Range<usize>) -> bool {
        // SAFETY: as in `clean`. Both slices end with this expression.
        unsafe {
            let seen = NonNull::slice_from_raw_parts(self.cpu.add(line.start), line.len());
            let clean = NonNull::slice_from_raw_parts(behind.clean.add(line.start), line.len());
            seen.as_ref() != clean.as_ref()
        }
    }

    /// `range`, or everything where the block can only be synchronised as a whole; never outside
    /// the block.
    fn clip(&self, behind: Behind, range: Range<usize>) -> Range<usize> {
        match behind.scope {
            SyncScope::Whole => 0..self.len_bytes,
            _ => self.inside(&range),
        }
    }

    /// The part of `range` that is inside the block.
    fn inside(&self, range: &Range<usize>) -> Range<usize> {
        let start = range.start.min(self.len_bytes);
        start..range.end.min(self.len_bytes).max(start)
    }

    /// The lines that `range` touches, or all of them where the block can only be synchronised as a
    /// whole.
    fn lines(&self, behind: Behind, range: Range<usize>) -> Range<usize> {
        self.ranged_lines(behind, self.clip(behind, range))
    }

    /// The lines that `range` touches, never outside the block.
    fn ranged_lines(&self, behind: Behind, range: Range<usize>) -> Range<usize> {
        let inside = self.inside(&range);
        let end = behind.line.round_up(inside.end).unwrap_or(self.len_bytes);
        behind.line.round_down(inside.start)..end.min(self.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_allows_its_port_and_its_direction() {
        assert!(!Mark::NONE.allows(None, false));
        assert!(Mark::device(Some(3), false).allows(Some(3), false));
        assert!(!Mark::device(Some(3), false).allows(Some(3), true));
        assert!(!Mark::device(Some(3), true).allows(Some(2), false));
        assert!(!Mark::device(Some(0), true).allows(None, true));
        assert!(Mark::device(None, true).allows(Some(29), true));
        assert!(Mark::device(Some(30), true).allows(Some(30), true));
        assert!(
            Mark::device(Some(31), true).allows(Some(0), true),
            "a number that does not fit is any port"
        );
    }
}

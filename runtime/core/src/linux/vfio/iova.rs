//! Places blocks in an I/O address space: the ranges that the kernel allows, and a bounded table of
//! the blocks there. Numbers only.

use super::iommufd::IovaRange;
use crate::types::Error;
use heapless::Vec;

/// The most ranges that are remembered. Each hole between two is a reserved region of a device (the
/// doorbells of interrupts, what firmware uses): two or three on machines here.
pub(super) const MAX_RANGES: usize = 32;
/// The most blocks that can be mapped at once in one I/O address space: one for each region, and a
/// program plans a few.
pub(super) const MAX_BLOCKS: usize = 64;
pub(super) const TOO_MANY_RANGES: Error =
    Error::TooMany { what: "ranges of I/O addresses for one device", most: MAX_RANGES as u64 };
const TOO_MANY_BLOCKS: Error =
    Error::TooMany { what: "blocks mapped for one VFIO device", most: MAX_BLOCKS as u64 };
/// Nothing is placed below 64 KiB: devices and people take a small address for "none".
const FLOOR: u64 = 0x1_0000;
/// Above this no larger alignment helps: what an IOMMU maps with one entry, with pages of 4 KiB.
const LARGEST_STEP: u64 = 2 << 20;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The device reaches it, or is about to.
    Mapped,
    /// It was unmapped from the device; its owner still lives.
    Revoked,
    /// Its owner is gone, and the kernel would not unmap it: the device may reach it for ever.
    Leaked,
}

/// One block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) iova: u64,
    pub(super) len_bytes: u64,
    pub(super) state: State,
}

impl Block {
    /// The first address behind it. A block lies inside a range, whose last address is a `u64`.
    const fn next(&self) -> Option<u64> {
        self.iova.checked_add(self.len_bytes)
    }
}

/// The ranges, and the blocks in them.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The ranges that the kernel allows. It refuses the gaps between them.
    ranges: Vec<IovaRange, MAX_RANGES>,
    // INVARIANT: in the order of their addresses, no two overlap.
    blocks: Vec<Block, MAX_BLOCKS>,
}

impl Table {
    /// An empty table over `ranges`.
    ///
    /// # Errors
    /// [`Error::TooMany`] for too many ranges; [`Error::Unexpected`] for a range that ends
    /// before it begins.
    pub(super) fn new(ranges: &[IovaRange]) -> Result<Self, Error> {
        if let Some(range) = ranges.iter().find(|range| range.start > range.last) {
            return Err(Error::Unexpected { name: "a range of I/O addresses", value: range.start });
        }
        let ranges = Vec::from_slice(ranges).map_err(|_| TOO_MANY_RANGES)?;
        Ok(Self { ranges, blocks: Vec::new() })
    }

    /// The first and the last address that the kernel allows.
    pub(super) fn window(&self) -> (u64, u64) {
        let first = self.ranges.iter().map(|range| range.start).min().unwrap_or(u64::MAX);
        let last = self.ranges.iter().map(|range| range.last).max().unwrap_or(0);
        (first, last)
    }

    /// Finds the lowest free place for `len_bytes` bytes that the process has at `cpu`, and takes
    /// it. Low, because masters with few address lines reach only low addresses. The address is as
    /// far from a multiple of 2 MiB as `cpu` is, so that what is aligned for the process is aligned
    /// for the device. For a smaller block, its own size counts instead of 2 MiB.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Exhausted`].
    pub(super) fn place(
        &mut self,
        cpu: u64,
        len_bytes: usize,
        page_bytes: usize,
    ) -> Result<u64, Error> {
        let size = len_bytes as u64;
        let step = size
            .checked_next_power_of_two()
            .unwrap_or(LARGEST_STEP)
            .min(LARGEST_STEP)
            .max(page_bytes as u64);
        let place = self
            .ranges
            .iter()
            .filter_map(|range| self.place_in(range, cpu & (step - 1), size, step))
            .min();
        let capacity_bytes = self.ranges.iter().fold(0, |sum: u64, range| {
            sum.saturating_add((range.last - range.start).saturating_add(1))
        });
        let capacity_bytes = usize::try_from(capacity_bytes).unwrap_or(usize::MAX);
        let iova = place.ok_or(Error::Exhausted { need_bytes: len_bytes, capacity_bytes })?;
        let index =
            self.blocks.iter().position(|block| block.iova > iova).unwrap_or(self.blocks.len());
        let block = Block { iova, len_bytes: size, state: State::Mapped };
        self.blocks.insert(index, block).map_err(|_| TOO_MANY_BLOCKS)?;
        Ok(iova)
    }

    /// The lowest address in `range` that is `phase` past a multiple of `step`, with `size` free
    /// bytes behind it.
    fn place_in(&self, range: &IovaRange, phase: u64, size: u64, step: u64) -> Option<u64> {
        let mut iova = in_phase(range.start.max(FLOOR), phase, step)?;
        // Blocks are sorted: one that lies before this candidate also lies before every later one.
        for block in &self.blocks {
            if block.iova < iova.checked_add(size)? && iova < block.next()? {
                iova = in_phase(block.next()?, phase, step)?;
            }
        }
        let last = iova.checked_add(size)?.checked_sub(1)?;
        (last <= range.last).then_some(iova)
    }

    /// The block that begins at `iova`.
    pub(super) fn get(&mut self, iova: u64) -> Option<&mut Block> {
        self.blocks.iter_mut().find(|block| block.iova == iova)
    }

    /// Removes the block that begins at `iova`.
    pub(super) fn remove(&mut self, iova: u64) {
        self.blocks.retain(|block| block.iova != iova);
    }

    /// Every block.
    pub(super) fn blocks(&mut self) -> impl Iterator<Item = &mut Block> {
        self.blocks.iter_mut()
    }

    /// How many bytes the kernel would not unmap.
    pub(super) fn leaked_bytes(&self) -> u64 {
        self.blocks
            .iter()
            .filter(|block| block.state == State::Leaked)
            .fold(0, |sum, block| sum.saturating_add(block.len_bytes))
    }
}

/// The first number at or above `from` that is `phase` past a multiple of `step`, a power of two.
fn in_phase(from: u64, phase: u64, step: u64) -> Option<u64> {
    from.checked_add(phase.wrapping_sub(from) & (step - 1))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::{
        Error, FLOOR, IovaRange, LARGEST_STEP, MAX_BLOCKS, MAX_RANGES, State, TOO_MANY_BLOCKS,
        TOO_MANY_RANGES, Table,
    };
    use std::vec::Vec;

    /// `virt` with an SMMU: the doorbells of interrupts are the hole.
    const ARM: [IovaRange; 2] = [
        IovaRange { start: 0, last: 0x7FF_FFFF },
        IovaRange { start: 0x810_0000, last: u64::MAX >> 16 },
    ];
    const PAGE: usize = 4096;

    fn table(ranges: &[IovaRange]) -> Table {
        Table::new(ranges).unwrap()
    }

    #[test]
    fn block_goes_low_with_process_alignment() {
        let mut table = table(&ARM);
        assert_eq!(table.window(), (0, u64::MAX >> 16));
        assert_eq!(table.place(0x7F00_0000_1000, PAGE, PAGE), Ok(FLOOR));
        assert_eq!(table.place(0x7F00_0000_1000, PAGE, PAGE), Ok(FLOOR + 0x1000));
        assert_eq!(
            table.place(0x7F00_0002_3000, 1 << 20, PAGE),
            Ok(0x2_3000),
            "1 MiB, 0x23000 past a multiple of 1 MiB"
        );
        assert_eq!(
            table.place(0x7F00_0020_1000, 4 << 20, PAGE),
            Ok(0x20_1000),
            "2 MiB is the largest step"
        );
        table.remove(FLOOR);
        assert_eq!(
            table.place(0x7F00_0000_5000, PAGE, PAGE),
            Ok(FLOOR),
            "a place that came back is taken again"
        );
        // Larger than the range below the hole: behind it.
        assert_eq!(table.place(0x7F00_0000_0000, 128 << 20, PAGE), Ok(0x820_0000));
        let mut table = self::table(&[ARM[0]]);
        let too_large = table.place(0, usize::MAX >> 1, PAGE);
        assert!(
            matches!(
                too_large,
                Err(Error::Exhausted { need_bytes, .. }) if need_bytes == usize::MAX >> 1
            ),
            "{too_large:?}"
        );
    }

    #[test]
    fn the_hole_and_the_ends_are_never_crossed() {
        let hole = [
            IovaRange { start: 0x2_0000, last: 0x2_3FFF },
            IovaRange { start: 0x2_5000, last: 0x2_5FFF },
        ];
        let mut table = table(&hole);
        for expected in [
            Ok(0x2_0000),
            Ok(0x2_2000),
            Err(Error::Exhausted { need_bytes: 2 * PAGE, capacity_bytes: 0x5000 }),
        ] {
            assert_eq!(table.place(0x4000, 2 * PAGE, PAGE), expected);
        }
        assert_eq!(table.place(0x4000, PAGE, PAGE), Ok(0x2_5000));
        assert!(matches!(table.place(0x4000, PAGE, PAGE), Err(Error::Exhausted { .. })));
        // The very last address of all.
        let mut table = Table::new(&[IovaRange { start: u64::MAX - 0xFFF, last: u64::MAX }])
            .unwrap_or_default();
        assert!(
            matches!(table.place(0, PAGE, PAGE), Err(Error::Exhausted { .. })),
            "its end has no address"
        );
    }

    #[test]
    fn tables_have_a_bound() {
        let mut table = table(&ARM);
        for _ in 0..MAX_BLOCKS {
            assert!(table.place(0, PAGE, PAGE).is_ok());
        }
        assert_eq!(table.place(0, PAGE, PAGE), Err(TOO_MANY_BLOCKS));
        assert_eq!(Table::new(&[ARM[0]; MAX_RANGES + 1]).err(), Some(TOO_MANY_RANGES));
        assert!(matches!(
            Table::new(&[IovaRange { start: 2, last: 1 }]),
            Err(Error::Unexpected { value: 2, .. })
        ));
        assert_eq!(Table::new(&[]).unwrap_or_default().window(), (u64::MAX, 0));
    }

    /// Thousands of blocks come and go; a plain list is the reference.
    #[test]
    fn blocks_take_lowest_place_and_no_overlap() {
        // Knuth's generator (TAOCP 2, 3.3.4), its upper half.
        let mut state = 0x10_0A_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) % below
        };
        let mut table = table(&[
            IovaRange { start: 0, last: 0x5_FFFF },
            IovaRange { start: 0x8_0000, last: 0x9_FFFF },
        ]);
        let mut model: Vec<(u64, u64)> = Vec::new();
        for _ in 0..4000 {
            if random(2) == 0 && !model.is_empty() {
                let (iova, _) =
                    model.swap_remove(usize::try_from(random(model.len() as u64)).unwrap_or(0));
                table.remove(iova);
                continue;
            }
            let (pages, cpu) = (1 + random(9), random(1 << 30) * PAGE as u64);
            let (size, step) =
                (pages * PAGE as u64, (pages * PAGE as u64).next_power_of_two().min(LARGEST_STEP));
            let free = |iova: u64| {
                model.iter().all(|(start, len)| iova + size <= *start || start + len <= iova)
            };
            let allowed = |iova: u64| {
                (FLOOR..=0x6_0000 - size).contains(&iova)
                    || (0x8_0000..=0xA_0000 - size).contains(&iova)
            };
            let lowest = (0..0xA_0000)
                .step_by(PAGE)
                .find(|iova| allowed(*iova) && free(*iova) && iova % step == cpu % step);
            let len_bytes = usize::try_from(size).unwrap_or(0);
            match (table.place(cpu, len_bytes, PAGE), lowest) {
                (Ok(iova), Some(lowest)) if iova == lowest => model.push((iova, size)),
                (Err(Error::Exhausted { .. }), None) => {}
                (Err(Error::TooMany { .. }), _) if model.len() == MAX_BLOCKS => {}
                other => panic!("{other:x?}, {size:#x} bytes at {cpu:#x}, with {model:x?}"),
            }
        }
    }

    #[test]
    fn what_leaked_is_counted_and_stays() {
        let mut table = table(&ARM);
        let first = table.place(0, PAGE, PAGE).unwrap_or(0);
        assert!(table.get(first + 1).is_none(), "only where it begins");
        assert!(
            table
                .get(first)
                .is_some_and(
                    |block| core::mem::replace(&mut block.state, State::Leaked) == State::Mapped
                )
        );
        assert_eq!((table.leaked_bytes(), table.blocks().count()), (PAGE as u64, 1));
        assert_eq!(table.place(0, PAGE, PAGE), Ok(first + PAGE as u64));
    }
}

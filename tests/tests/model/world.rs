//! The plain model: what every byte must show, and which pieces are out.

use contigo_testkit::conformance::{Failure, Verdict};
use contigo_testkit::ensure;
use std::ops::Range;

/// Where a buffer came from, and goes back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// A pool, by its number in the model.
    Pool(usize),
    /// The region itself.
    Block,
}

/// A pool. Its memory is the region's again when its last handle is gone and every slot came back.
#[derive(Clone, Debug)]
struct Slots {
    territory: Range<usize>,
    /// It has a handle.
    open: bool,
}

/// A slot or a block that was handed out, and has not come back in all of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) home: Home,
    pub(crate) bytes: Range<usize>,
    /// Buffers that have a part of it.
    pub(crate) handles: usize,
    /// A part of it was forgotten, or a device may have it: it never comes back.
    pub(crate) leaked: bool,
}

impl Claim {
    pub(crate) const fn is_out(&self) -> bool {
        self.handles > 0 || self.leaked
    }
}

/// The model of one region.
#[derive(Debug)]
pub(crate) struct World {
    /// The bytes that their owner must see.
    bytes: Vec<u8>,
    /// `false`: a device may have written anything there, or lost what was there. The first look
    /// decides.
    known: Vec<bool>,
    pub(crate) claims: Vec<Claim>,
    pools: Vec<Slots>,
}

impl World {
    pub(crate) fn new(len_bytes: usize) -> Self {
        // The first look decides what a fresh block holds.
        Self {
            bytes: vec![0; len_bytes],
            known: vec![false; len_bytes],
            claims: Vec::new(),
            pools: Vec::new(),
        }
    }

    /// A pool was made, whose slots lie in `territory`: no block and no other pool has any of it.
    /// Returns its number.
    pub(crate) fn open(&mut self, territory: Range<usize>) -> Verdict<usize> {
        self.is_free(&territory)?;
        self.pools.push(Slots { territory, open: true });
        Ok(self.pools.len() - 1)
    }

    /// A pool's last handle is gone.
    pub(crate) fn close(&mut self, pool: usize) {
        self.pools[pool].open = false;
    }

    /// A piece was handed out: it lies in its pool or in the region, and overlaps no other piece.
    pub(crate) fn claim(&mut self, home: Home, bytes: Range<usize>) -> Verdict<usize> {
        match home {
            Home::Block => self.is_free(&bytes)?,
            Home::Pool(pool) => {
                let territory = &self.pools[pool].territory;
                ensure!(
                    territory.start <= bytes.start && bytes.end <= territory.end,
                    "{home:?} gave out {bytes:?}, outside {territory:?}"
                );
            }
        }
        let other =
            self.claims.iter().find(|other| other.is_out() && overlap(&other.bytes, &bytes));
        ensure!(other.is_none(), "{home:?} gave out {bytes:?}, which {other:?} has");
        self.claims.push(Claim { home, bytes, handles: 1, leaked: false });
        Ok(self.claims.len() - 1)
    }

    /// These bytes are the region's to give out.
    fn is_free(&self, bytes: &Range<usize>) -> Verdict {
        ensure!(bytes.end <= self.bytes.len(), "{bytes:?} were given out, of {}", self.bytes.len());
        let other = self.used().find(|other| overlap(other, bytes));
        ensure!(other.is_none(), "{bytes:?} were given out, and {other:?} are in use");
        Ok(())
    }

    /// What the region has given out: blocks, and pools.
    fn used(&self) -> impl Iterator<Item = &Range<usize>> {
        let blocks = self
            .claims
            .iter()
            .filter(|claim| claim.home == Home::Block && claim.is_out())
            .map(|claim| &claim.bytes);
        let pools = self
            .pools
            .iter()
            .enumerate()
            .filter(|(pool, slots)| slots.open || self.out(Home::Pool(*pool)) > 0);
        blocks.chain(pools.map(|(_, slots)| &slots.territory))
    }

    /// How many blocks and pools there are.
    pub(crate) fn allocations(&self) -> usize {
        self.used().count()
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.bytes.len() - self.used().map(Range::len).sum::<usize>()
    }

    pub(crate) fn leak(&mut self, claim: usize) {
        self.claims[claim].handles -= 1;
        self.claims[claim].leaked = true;
    }

    pub(crate) fn out(&self, home: Home) -> usize {
        self.claims.iter().filter(|claim| claim.home == home && claim.is_out()).count()
    }

    pub(crate) fn leaked(&self) -> bool {
        self.claims.iter().any(|claim| claim.leaked)
    }

    /// The longest run of the region's free bytes.
    pub(crate) fn longest_free_run(&self) -> usize {
        let mut used: Vec<_> = self.used().collect();
        used.sort_by_key(|bytes| bytes.start);
        let (longest, last) = used
            .iter()
            .fold((0, 0), |(longest, end), bytes| (longest.max(bytes.start - end), bytes.end));
        longest.max(self.bytes.len() - last)
    }

    /// The owner looks: what is known must be so, and what is not becomes so.
    pub(crate) fn look(&mut self, at: usize, view: &[u8]) -> Verdict {
        let range = at..at + view.len();
        if view == &self.bytes[range.clone()] {
            self.known[range].fill(true);
            return Ok(());
        }
        for ((offset, seen), (byte, known)) in (at..)
            .zip(view)
            .zip(self.bytes[range.clone()].iter_mut().zip(&self.known[range.clone()]))
        {
            if *known && seen != byte {
                let wrong = format!(
                    "byte {offset} is {seen:#04x} instead of {byte:#04x}, in a view of {range:?}"
                );
                return Err(Failure::Wrong(wrong));
            }
            *byte = *seen;
        }
        self.known[range].fill(true);
        Ok(())
    }

    /// The owner, or a device whose output is known, writes.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.known[at..at + bytes.len()].fill(true);
    }

    /// A device may have written anything, or nothing, there.
    pub(crate) fn forget(&mut self, range: Range<usize>) {
        self.known[range].fill(false);
    }

    /// The bytes, where all of them are known.
    pub(crate) fn read(&self, range: Range<usize>) -> Option<&[u8]> {
        self.known[range.clone()].iter().all(|known| *known).then(|| &self.bytes[range])
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

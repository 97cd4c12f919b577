//! Steps on buffers that the CPU owns: take, write, show, split, drop, forget; and on pools.

use crate::machine::{
    ALLOCATIONS, Held, Machine, REGION_BYTES, SLOT_BYTES, Slots, place, random_range,
};
use crate::world::Home;
use contigo::{Align, CpuBuf, Error};
use contigo_testkit::conformance::Verdict;
use contigo_testkit::conformance::rig::random_bytes;
use contigo_testkit::ensure;
use std::ops::Range;
use std::{iter, mem};

impl Machine {
    pub(crate) fn take(&mut self) -> Verdict {
        if self.rng.bool() {
            return self.take_slot();
        }
        let most = if self.rng.bool() { 3 * SLOT_BYTES / 2 } else { 300 };
        // Now and then exactly the longest run there is: no piece of it may have been lost.
        let longest = self.world.longest_free_run();
        let len_bytes = match self.rng.u8(..16) {
            0 if longest > 0 => longest,
            1 => self.rng.usize(..=REGION_BYTES),
            _ => self.rng.usize(1..=most),
        };
        let align = if self.rng.bool() { self.line } else { Align::new(32 << self.rng.u32(..5))? };
        let taken = self.region.alloc(len_bytes, align);
        self.note(|| format!("allocate {len_bytes}, {align:?}: {taken:?}"));
        let buf = match taken {
            Ok(buf) => buf,
            Err(Error::Argument { value: 0, .. }) if len_bytes == 0 => return Ok(()),
            Err(error) => return self.no_room(error, len_bytes, align),
        };
        self.carves += 1;
        let (got, expected) = (buf.len_bytes(), len_bytes.next_multiple_of(self.line.bytes()));
        ensure!(got > 0 && got == expected, "{got} bytes for {len_bytes}, not {expected}");
        let addr = self.base + buf.offset_bytes() as u64;
        ensure!(align.divides(addr), "a block at {addr:#x}, alignment {align:?}");
        self.hold(Home::Block, buf)
    }

    fn take_slot(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.pools.len()) else { return Ok(()) };
        let Slots { ref pool, number, count } = self.pools[index];
        let taken = pool.take();
        self.note(|| format!("take from pool {number}: {taken:?}"));
        let full = self.world.out(Home::Pool(number)) == count;
        match taken {
            Ok(buf) => {
                let right = !full && buf.len_bytes() == SLOT_BYTES;
                ensure!(right, "pool {number} gave out {buf:?}, full: {full}");
                self.hold(Home::Pool(number), buf)
            }
            Err(error) => {
                self.tally("no slots");
                let right = full && error == Error::NoSlots { slots: count };
                ensure!(right, "pool {number} says {error}, full: {full}");
                Ok(())
            }
        }
    }

    /// A refusal to give out anything is right where the table is full, or no run is long enough
    /// for sure.
    fn no_room(&mut self, error: Error, need_bytes: usize, align: Align) -> Verdict {
        if self.world.allocations() == ALLOCATIONS {
            self.tally("no more blocks");
            let what = "allocations of a region, by its limit `allocations`";
            let full = Error::TooMany { what, most: ALLOCATIONS as u64 };
            ensure!(error == full, "the table is full, and the region says {error}");
            return Ok(());
        }
        let expected = Error::Exhausted { need_bytes, capacity_bytes: REGION_BYTES };
        ensure!(error == expected, "the region has room and says {error}");
        self.tally("no room");
        let longest = self.world.longest_free_run() / self.line.bytes();
        // In lines: the block, and what an alignment may cost; from 64 lines on, the good fit's
        // 1/32 beside.
        let line = self.line.bytes();
        let lines = need_bytes.div_ceil(line) + align.max(self.line).bytes() / line - 1;
        let sure = if lines < 64 { lines } else { lines + lines.div_ceil(32) };
        ensure!(longest < sure, "no room for {need_bytes} bytes, with {longest} lines in one run");
        Ok(())
    }

    pub(crate) fn hold(&mut self, home: Home, buf: CpuBuf) -> Verdict {
        let extent = place(&buf);
        let claim = self.world.claim(home, extent.clone())?;
        self.held.push(Held { buf, claim, extent });
        Ok(())
    }

    /// A pool more, or the last handle of one less: its slots that are out stay.
    pub(crate) fn pool(&mut self) -> Verdict {
        if self.pools.len() > 1 && self.rng.bool() {
            let closed = self.pools.swap_remove(self.rng.usize(1..self.pools.len()));
            self.note(|| format!("close pool {}", closed.number));
            let out = closed.pool.taken() > 0;
            self.tally(if out { "pool closed, with slots out" } else { "pool closed" });
            self.world.close(closed.number);
            return Ok(());
        }
        let count = self.rng.usize(1..=3);
        self.open_pool(count, SLOT_BYTES)
    }

    /// A pool of `count` slots, whose places are learnt from the slots themselves.
    pub(crate) fn open_pool(&mut self, count: usize, slot_bytes: usize) -> Verdict {
        let made = self.region.pool(count, slot_bytes);
        self.note(|| format!("a pool of {count}: {made:?}"));
        let pool = match made {
            Ok(pool) => pool,
            Err(error) => return self.no_room(error, count * slot_bytes, self.line),
        };
        self.carves += 1;
        let all: Vec<_> = iter::from_fn(|| pool.take().ok()).collect();
        let mut at: Vec<_> = all.iter().map(CpuBuf::offset_bytes).collect();
        at.sort_unstable();
        let first = at.first().copied().unwrap_or_default();
        let neighbours = (0..count).map(|slot| first + slot * slot_bytes);
        ensure!(at.iter().copied().eq(neighbours), "{count} slots at {at:?}");
        let number = self.world.open(first..first + count * slot_bytes)?;
        self.pools.push(Slots { pool, number, count });
        Ok(())
    }

    /// An index of one of `len`, if there are any.
    pub(crate) fn one_of(&mut self, len: usize) -> Option<usize> {
        (len > 0).then(|| self.rng.usize(..len))
    }

    pub(crate) fn write(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let held = &mut self.held[index];
        let (at, len) = (held.buf.offset_bytes(), held.buf.len_bytes());
        let bytes = random_bytes(&mut self.rng, len);
        match self.rng.u8(..4) {
            0 => {
                let part = random_range(&mut self.rng, len);
                held.buf.view_at_mut::<u8>(part.clone())?.copy_from_slice(&bytes[part.clone()]);
                self.world.write(at + part.start, &bytes[part]);
            }
            1 => {
                let len = self.rng.usize(..=len);
                held.buf.copy_from_slice(&bytes[..len])?;
                self.copied += len as u64;
                self.world.write(at, &bytes[..len]);
            }
            _ => {
                held.buf.view_mut::<u8>()?.copy_from_slice(&bytes);
                self.world.write(at, &bytes);
            }
        }
        Ok(())
    }

    pub(crate) fn slice(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let Held { buf, claim, extent } = self.held.swap_remove(index);
        let shown = place(&buf);
        let partly = self.rng.u8(..4) == 0;
        let wanted = partly.then(|| random_range(&mut self.rng, shown.len() + 8));
        self.note(|| format!("show {wanted:?} of {shown:?}"));
        let (buf, expected) = match wanted {
            None => (buf.whole(), extent.clone()),
            Some(Range { start, end }) => match buf.slice(start..end) {
                Ok(buf) => (buf, shown.start + start..shown.start + end),
                Err(refused) => {
                    let error = Error::OutOfRange { start, end, len_bytes: shown.len() };
                    let right = refused.error == error && end > shown.len();
                    ensure!(right, "slice {start}..{end} of {shown:?}: {}", refused.error);
                    (refused.into_returned(), shown)
                }
            },
        };
        self.returned(buf, claim, extent, &expected)
    }

    pub(crate) fn split(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let Held { buf, claim, extent } = self.held.swap_remove(index);
        let (at, len) = (buf.offset_bytes(), buf.len_bytes());
        let mid = if self.rng.bool() {
            self.rng.usize(..=len) & !(self.line.bytes() - 1)
        } else {
            self.rng.usize(..len + 4)
        };
        self.note(|| format!("split {extent:?}, showing {len} from {at}, at {mid}"));
        match buf.split_at(mid) {
            Ok((left, right)) => {
                let found = [place(&left), place(&right)];
                let right_ones = [at..at + mid, at + mid..at + len];
                ensure!(found == right_ones, "{len} bytes at {at}, split at {mid}: {found:?}");
                self.tally("split");
                self.world.claims[claim].handles += 1;
                self.held.push(Held { buf: left, claim, extent: extent.start..at + mid });
                self.held.push(Held { buf: right, claim, extent: at + mid..extent.end });
            }
            Err(refused) => {
                let beyond = Error::OutOfRange { start: 0, end: mid, len_bytes: len };
                ensure!(mid > len && refused.error == beyond, "split at {mid}: {}", refused.error);
                self.held.push(Held { buf: refused.into_returned(), claim, extent });
            }
        }
        Ok(())
    }

    /// Gives one back, with a last look at all that it owns.
    pub(crate) fn drop_one(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let Held { buf, claim, extent } = self.held.swap_remove(index);
        let buf = buf.whole();
        let now = place(&buf);
        ensure!(now == extent, "a whole buffer is {now:?}, not {extent:?}");
        self.world.look(extent.start, buf.view::<u8>()?)?;
        self.note(|| format!("drop {extent:?}"));
        drop(buf);
        self.world.claims[claim].handles -= 1;
        Ok(())
    }

    pub(crate) fn forget_one(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let Held { buf, claim, extent } = self.held.swap_remove(index);
        self.note(|| format!("forget {extent:?}"));
        self.tally("buffer forgotten");
        mem::forget(buf);
        self.world.leak(claim);
        Ok(())
    }
}

//! Steps on buffers that the CPU owns: take, carve, write, show, split, drop, forget.

use crate::{
    machine::{ARENA_BYTES, BLOCKS, Held, LOCAL_SLOTS, Machine, POOL_SLOTS, REGION_BYTES, SLOT_BYTES, random_range},
    world::Home,
};
use contigo::{Align, CpuBuf, Error, OneThread};
use contigo_testkit::{
    conformance::{Verdict, rig::random_bytes},
    ensure,
};
use std::{mem, ops::Range};

impl<'p> Machine<'p> {
    pub(crate) fn take(&mut self) -> Verdict {
        let most = if self.rng.bool() { 3 * SLOT_BYTES / 2 } else { 300 };
        // Now and then exactly the longest run there is: no piece of it may have been lost.
        let longest = self.world.longest_free_run(Home::Arena, &self.territory[Home::Arena as usize]);
        let len_bytes = if longest > 0 && self.rng.u8(..4) == 0 { longest } else { self.rng.usize(1..=most) };
        let align = if self.rng.bool() { self.line } else { Align::new(32 << self.rng.u32(..5))? };
        let home = [Home::Pool, Home::Local, Home::Arena][self.rng.usize(..3)];
        let (taken, slots) = match home {
            Home::Pool => (self.pool.take().map(Into::into), POOL_SLOTS),
            Home::Local => (self.local.take(), LOCAL_SLOTS),
            _ if align == self.line => (self.arena.take(len_bytes), BLOCKS),
            _ => (self.arena.take_aligned(len_bytes, align), BLOCKS),
        };
        self.note(|| format!("take {len_bytes} from {home:?}: {taken:?}"));
        let full = self.world.out(home) == slots;
        let buf: CpuBuf<'p, OneThread> = match taken {
            Ok(buf) => buf,
            Err(error) => return self.nothing_left(home, error, full.then_some(slots), (len_bytes, align)),
        };
        ensure!(!full, "{home:?} gave out a slot more than it has");
        let expected = if home == Home::Arena { len_bytes.next_multiple_of(self.line.bytes()) } else { SLOT_BYTES };
        ensure!(buf.len_bytes() == expected, "{} bytes from {home:?}, not {expected}", buf.len_bytes());
        let addr = self.base + buf.offset_bytes() as u64;
        ensure!(home != Home::Arena || align.divides(addr), "a block at {addr:#x}, alignment {align:?}");
        self.hold(home, buf)
    }

    /// A refusal to give out anything is right where all is out, or no run is long enough for sure.
    fn nothing_left(&mut self, home: Home, error: Error, slots: Option<usize>, (need_bytes, align): (usize, Align)) -> Verdict {
        if let Some(slots) = slots {
            self.tally("no slots");
            let blocks = Error::TooMany { what: "blocks out of this arena", most: slots as u64 };
            let expected = if home == Home::Arena { blocks } else { Error::NoSlots { slots } };
            ensure!(error == expected, "{home:?} is full and says {error}");
            return Ok(());
        }
        ensure!(
            home == Home::Arena && error == Error::Exhausted { need_bytes, capacity_bytes: ARENA_BYTES },
            "{home:?} has room and says {error}"
        );
        self.tally("no room in the arena");
        let longest = self.world.longest_free_run(home, &self.territory[home as usize]) / self.line.bytes();
        // In lines: the block, and what an alignment may cost; from 64 lines on, the good fit's
        // 1/32 beside.
        let lines = need_bytes.div_ceil(self.line.bytes()) + align.max(self.line).bytes() / self.line.bytes() - 1;
        let sure = if lines < 64 { lines } else { lines + lines.div_ceil(32) };
        ensure!(longest < sure, "no room for {need_bytes} bytes, with {longest} lines in one run");
        Ok(())
    }

    fn hold(&mut self, home: Home, buf: CpuBuf<'p, OneThread>) -> Verdict {
        let extent = buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes();
        let claim = self.world.claim(home, extent.clone(), &self.territory[home as usize])?;
        self.held.push(Held { buf, claim, extent });
        Ok(())
    }

    pub(crate) fn carve(&mut self) -> Verdict {
        let align = Align::new(16 << self.rng.u32(..8))?;
        let len_bytes = if self.rng.u8(..8) == 0 { REGION_BYTES } else { self.rng.usize(..1500) };
        let unit = align.bytes().max(self.line.bytes());
        let start = self.carved.next_multiple_of(unit);
        let end = start + len_bytes.next_multiple_of(self.line.bytes());
        let carved = self.region.carve(len_bytes, align);
        self.note(|| format!("carve {len_bytes}, {align:?}: {carved:?}"));
        let carve = match carved {
            Ok(carve) => carve,
            Err(Error::Argument { value: 0, .. }) if len_bytes == 0 => return Ok(()),
            Err(error) => {
                let expected = Error::Exhausted { need_bytes: len_bytes, capacity_bytes: REGION_BYTES };
                ensure!(error == expected && end > REGION_BYTES, "carve {len_bytes} bytes after {}: {error}", self.carved);
                return Ok(());
            }
        };
        ensure!(end <= REGION_BYTES && carve.len_bytes() == end - start, "carved {} bytes for {start}..{end}", carve.len_bytes());
        self.carved = end;
        self.carves += 1;
        match self.rng.u8(..8) {
            0 if self.forgets => {
                mem::forget(carve);
                let claim = self.world.claim(Home::Carve, start..end, &(0..REGION_BYTES))?;
                self.world.leak(claim);
                Ok(())
            }
            1 | 2 => Ok(()), // Dropped: it stays carved, and does not count.
            _ => {
                let buf = carve.into_buf();
                ensure!(buf.offset_bytes() == start, "a carve at {}, not {start}", buf.offset_bytes());
                self.hold(Home::Carve, buf.into())
            }
        }
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
        let shown = buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes();
        let wanted = if self.rng.u8(..4) > 0 { None } else { Some(random_range(&mut self.rng, shown.len() + 8)) };
        self.note(|| format!("show {wanted:?} of {shown:?}"));
        let (buf, expected) = match wanted {
            None => (buf.whole(), extent.clone()),
            Some(Range { start, end }) => match buf.slice(start..end) {
                Ok(buf) => (buf, shown.start + start..shown.start + end),
                Err(refused) => {
                    let error = Error::OutOfRange { start, end, len_bytes: shown.len() };
                    ensure!(refused.error == error && end > shown.len(), "slice {start}..{end} of {shown:?}: {}", refused.error);
                    (refused.returned, shown)
                }
            },
        };
        let now = buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes();
        ensure!(now == expected, "a buffer shows {now:?}, not {expected:?}");
        self.held.push(Held { buf, claim, extent });
        Ok(())
    }

    pub(crate) fn split(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let Held { buf, claim, extent } = self.held.swap_remove(index);
        let (at, len) = (buf.offset_bytes(), buf.len_bytes());
        let mid = if self.rng.bool() { self.rng.usize(..=len) & !(self.line.bytes() - 1) } else { self.rng.usize(..len + 4) };
        self.note(|| format!("split {extent:?}, showing {len} from {at}, at {mid}"));
        match buf.split_at(mid) {
            Ok((left, right)) => {
                ensure!(mid <= len, "split {len} bytes at {mid}");
                let found = [left.offset_bytes(), left.len_bytes(), right.offset_bytes(), right.len_bytes()];
                ensure!(found == [at, mid, at + mid, len - mid], "{len} bytes at {at}, split at {mid}: {found:?}");
                self.tally("split");
                self.world.claims[claim].handles += 1;
                self.held.push(Held { buf: left, claim, extent: extent.start..at + mid });
                self.held.push(Held { buf: right, claim, extent: at + mid..extent.end });
            }
            Err(refused) => {
                ensure!(
                    mid > len && refused.error == Error::OutOfRange { start: 0, end: mid, len_bytes: len },
                    "split at {mid}: {}",
                    refused.error
                );
                self.held.push(Held { buf: refused.returned, claim, extent });
            }
        }
        Ok(())
    }

    /// Gives one back, with a last look at all that it owns.
    pub(crate) fn drop_one(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.held.len()) else { return Ok(()) };
        let Held { buf, claim, extent } = self.held.swap_remove(index);
        let buf = buf.whole();
        let now = buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes();
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

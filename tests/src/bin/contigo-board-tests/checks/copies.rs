//! One copy, to see that an engine works, or works again.

use super::{Verdict, Wrong, ensure, ok};
use crate::setup::Bench;
use contigo::{Align, CpuBuf, Driver, Queue, Region};
use contigo_exerciser::{JOB_TIMEOUT, Line};

/// How many bytes are copied, from an odd address to another.
const LEN: usize = 1000;
/// A buffer's size.
pub(super) const SLOT: usize = 4096;

/// One copy and its comparison.
pub(super) struct OneCopy;

impl Bench for OneCopy {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let [from, to] = buffers(region)?;
        drop(one(&mut queue, from, to, 0x35)?);
        Ok("copied".into())
    }
}

/// Two buffers, beyond what [`Reach::DriverOnly`](crate::setup::Reach::DriverOnly) reaches.
pub(super) fn buffers(region: &Region) -> Result<[CpuBuf; 2], Wrong> {
    // Held until the buffers have their places behind it.
    let _reach = ok(region.alloc(crate::setup::DRIVER_REACH_BYTES, Align::PAGE))?;
    Ok([ok(region.alloc(SLOT, Align::PAGE))?, ok(region.alloc(SLOT, Align::PAGE))?])
}

/// Copies a pattern from one to the other, waits, compares all of the destination, and gives both
/// back.
pub(super) fn one<D: Driver>(
    queue: &mut Queue<D>,
    mut from: CpuBuf,
    mut to: CpuBuf,
    mark: u8,
) -> Result<[CpuBuf; 2], Wrong> {
    ok(from.view_mut::<u8>())?.fill(mark);
    ok(to.view_mut::<u8>())?.fill(!mark);
    let [from, to] =
        ok(queue.run([from.to_device(3..3 + LEN), to.from_device(5..5 + LEN)], &[], JOB_TIMEOUT))?
            .buffers;
    let right = ok(to.view::<u8>())?
        .iter()
        .enumerate()
        .all(|(at, &byte)| byte == if (5..5 + LEN).contains(&at) { mark } else { !mark });
    ensure(right, "the copy is wrong")?;
    Ok([from, to])
}

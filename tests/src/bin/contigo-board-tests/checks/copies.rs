//! One copy, to see that an engine works, or works again.

use super::{Verdict, Wrong, ensure, ok};
use crate::setup::Bench;
use contigo::{Align, Backend, CpuBuf, Engine, Region, TypedDriver};
use contigo_testkit::exercise::{JOB_TIMEOUT, Line};

/// How many bytes are copied, from an odd address to another.
const LEN: usize = 1000;
/// A buffer's size.
pub(super) const SLOT: usize = 4096;

/// One copy and its comparison.
pub(super) struct OneCopy;

impl Bench for OneCopy {
    type Out = Verdict;

    fn on<B: Backend, D: TypedDriver<2, Args = ()>>(self, region: &Region<B>, mut engine: Engine<D, 2>, _line: Line<'_>) -> Verdict {
        let [from, to] = buffers(region)?;
        drop(one(&mut engine, from, to, 0x35)?);
        Ok("copied".into())
    }
}

/// Two buffers, beyond what [`Reach::DriverOnly`](crate::setup::Reach::DriverOnly) reaches.
pub(super) fn buffers<B: Backend>(region: &Region<B>) -> Result<[CpuBuf<'_>; 2], Wrong> {
    drop(ok(region.carve(crate::setup::DRIVER_REACH_BYTES, Align::PAGE))?);
    Ok([ok(region.carve(SLOT, Align::PAGE))?.into_buf(), ok(region.carve(SLOT, Align::PAGE))?.into_buf()])
}

/// Copies a pattern from one to the other, waits, compares all of the destination, and gives both
/// back.
pub(super) fn one<'r, D: TypedDriver<2, Args = ()>>(
    engine: &mut Engine<D, 2>,
    mut from: CpuBuf<'r>,
    mut to: CpuBuf<'r>,
    mark: u8,
) -> Result<[CpuBuf<'r>; 2], Wrong> {
    ok(from.view_mut::<u8>())?.fill(mark);
    ok(to.view_mut::<u8>())?.fill(!mark);
    let job = ok(engine.start([from.to_device(3..3 + LEN), to.from_device(5..5 + LEN)], &()))?;
    let [from, to] = ok(job.wait(JOB_TIMEOUT))?.buffers;
    let right = ok(to.view::<u8>())?.iter().enumerate().all(|(at, &byte)| byte == if (5..5 + LEN).contains(&at) { mark } else { !mark });
    ensure(right, "the copy is wrong")?;
    Ok([from, to])
}

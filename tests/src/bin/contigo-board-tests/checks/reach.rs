//! The jobs that must be refused before a doorbell rings.

use super::{
    Verdict, Wrong,
    copies::{SLOT, buffers},
    ensure, ok,
};
use crate::setup::Bench;
use contigo::{Driver, Error, Queue, Region, names::DeviceName};
use contigo_exerciser::Line;

/// A job whose bytes the engine does not reach.
pub(super) struct Unreachable;

impl Bench for Unreachable {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let [mut from, mut to] = buffers(region)?;
        ok(from.view_mut::<u8>())?.fill(0x11);
        ok(to.view_mut::<u8>())?.fill(0x22);
        let refused = match queue.submit([from.to_device(..SLOT), to.from_device(..SLOT)], &[]) {
            Ok(_) => return Err(Wrong::Failed("the job was started".into())),
            Err(refused) => refused,
        };
        let error @ Error::Unreachable { addr, last, .. } = refused.error else {
            return Err(Wrong::Failed(format!("refused, but as: {refused}")));
        };
        ensure(addr + SLOT as u64 - 1 > last, format!("{addr:#x} is within {last:#x}"))?;
        ensure(queue.counts().pushed == 0 && queue.is_empty(), "the doorbell was rung")?;
        let [_, to] =
            refused.buffers.ok_or_else(|| Wrong::Failed("the buffers are lost".into()))?;
        let to =
            to.into_buf().map_err(|_| Wrong::Failed("the destination is the device's".into()))?;
        ensure(
            ok(to.view::<u8>())?.iter().all(|&byte| byte == 0x22),
            "the destination was written",
        )?;
        Ok(error.to_string())
    }
}

/// A device that is open already.
pub(super) fn uio_in_use(name: &DeviceName) -> Verdict {
    let _first = ok(name.open())?;
    match name.open() {
        Err(error @ Error::InUse { .. }) => Ok(error.to_string()),
        Err(error) => Err(Wrong::Failed(format!("refused, but as: {error}"))),
        Ok(_) => Err(Wrong::Failed("two drivers have it".into())),
    }
}

//! A job that takes longer than it may.

use super::{
    Verdict, Wrong,
    copies::{SLOT, buffers, one},
    ensure, ok,
};
use crate::setup::Bench;
use contigo::{Driver, Error, Queue, Region};
use contigo_exerciser::{Line, refresh};
use contigo_testkit::edu::regs::TRANSFER_BYTES;
use std::{thread::sleep, time::Duration};

/// Longer than any engine here needs for what it had begun: three of edu's transfers.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// A job that is given up at once, or after a millisecond where the engine takes 200.
pub(super) struct Timeouts {
    pub(super) slow: bool,
}

impl Bench for Timeouts {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let [mut from, mut to] = buffers(region)?;
        ok(from.view_mut::<u8>())?.fill(0x44);
        ok(to.view_mut::<u8>())?.fill(0xBB);
        let len = if self.slow { TRANSFER_BYTES as usize } else { SLOT };
        let limit = if self.slow { Duration::from_millis(1) } else { Duration::ZERO };
        let failed = match queue.run([from.to_device(..len), to.from_device(..len)], &[], limit) {
            Ok(_) => return Err(Wrong::Skipped("this engine was done at the first look".into())),
            Err(failed) => failed,
        };
        ensure(
            contigo::types::timeout_us(limit)
                .is_ok_and(|timeout_us| failed.error == Error::Timeout { timeout_us }),
            format!("it ended as: {failed}"),
        )?;
        ensure(
            queue.is_empty() && !queue.is_stopped() && queue.counts().stopped == 1,
            "the engine was not stopped",
        )?;
        let [from, to] =
            failed.buffers.ok_or_else(|| Wrong::Failed("the buffers are lost".into()))?;
        let (from, to) = (ok(from.into_cpu())?, ok(to.into_cpu())?);
        let then = ok(to.view::<u8>())?.to_vec();
        sleep(AFTERWARDS);
        let to = ok(refresh(to, queue.port(), queue.driver().addr_bits()))?;
        let written =
            ok(to.view::<u8>())?.iter().zip(&then).filter(|(now, then)| now != then).count();
        ensure(written == 0, format!("{written} bytes were written after the engine was stopped"))?;
        drop(one(&mut queue, from, to, 0x66)?);
        Ok(format!(
            "{}; {} of {len} bytes had been written, none afterwards, and the next job worked",
            failed.error,
            moved(&then)
        ))
    }
}

fn moved(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == 0x44).count()
}

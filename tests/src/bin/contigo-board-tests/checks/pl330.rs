#![allow(unsafe_code, reason = "programs for a PL330 that touch no memory")]
//! A PL330's faults and a program that never ends. QEMU's model runs a job inside the doorbell's
//! register access and ignores what the bus answers (hw/dma/pl330.c), so both are made by programs
//! of their own, which touch no memory.

use super::{
    Verdict, Wrong,
    copies::{OneCopy, buffers, one},
    ensure, ok,
};
use crate::setup::Bench;
use contigo::{Device, Driver, Error, Queue, Region, Result, drivers::pl330::Pl330};
use contigo_exerciser::Line;
use std::time::Duration;

/// Arm DDI 0424C, chapter 4: no instruction begins with this byte.
const UNDEFINED: u8 = 0x5F;
/// DMAWFE (4.3.19) for event 1, which no program sends, and DMAEND.
pub(super) const WAIT_FOR_EVER: [u8; 3] = [0x36, 1 << 3, 0x00];

/// Which of them.
pub(super) enum Trial {
    /// An undefined instruction.
    Fault,
    /// A wait that never ends.
    Killed,
}

impl Bench for Trial {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, queue: Queue<D>, line: Line<'_>) -> Verdict {
        OneCopy.on(region, queue, line)?;
        Err(Wrong::Failed("this engine is no PL330".into()))
    }

    fn on_pl330<D: Device>(
        self,
        region: &Region,
        mut driver: Pl330<D>,
        _line: Line<'_>,
    ) -> Result<Verdict> {
        driver.stop()?;
        let seen = match self {
            Self::Fault => fault(&mut driver),
            Self::Killed => killed(&mut driver),
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(wrong) => return Ok(Err(wrong)),
        };
        let mut queue = Queue::new(driver, 1)?;
        Ok(buffers(region)
            .and_then(|[from, to]| one(&mut queue, from, to, 0x77))
            .map(|_| format!("{seen}, and the next job worked")))
    }
}

fn fault<D: Device>(driver: &mut Pl330<D>) -> Verdict {
    // SAFETY: an instruction that is none touches nothing.
    ok(unsafe { driver.run_program(&[UNDEFINED]) })?;
    match driver.poll(Duration::from_secs(1)) {
        Err(error @ Error::Fault { device: "pl330", .. }) => {
            ok(driver.stop())?;
            Ok(error.to_string())
        }
        other => Err(Wrong::Failed(format!("it ended as: {other:?}"))),
    }
}

fn killed<D: Device>(driver: &mut Pl330<D>) -> Verdict {
    // SAFETY: it waits, and touches nothing.
    ok(unsafe { driver.run_program(&WAIT_FOR_EVER) })?;
    let ended = driver.poll(Duration::from_millis(50));
    ensure(ended == Ok(None), format!("it ended as: {ended:?}"))?;
    ok(driver.stop())?;
    Ok("it ran for 50 ms and was killed".into())
}

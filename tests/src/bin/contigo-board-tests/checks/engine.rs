#![allow(unsafe_code, reason = "programs for a PL330 that touch no memory")]
//! Checks of an engine with one memory: what must be refused before the doorbell rings, stopped, or
//! decoded, and that the next job works.

use crate::setup::{Bench, DRIVER_REACH_BYTES, Place, given_back};
use crate::verdict::{Verdict, Wrong, ensure, fail, others, skip};
use contigo::drivers::pl330::Pl330;
use contigo::names::DeviceName;
use contigo::{Align, CpuBuf, Device, Driver, Error, Queue, Region};
use contigo_exerciser::{JOB_TIMEOUT, Line, refresh};
use contigo_testkit::edu::regs::TRANSFER_BYTES;
use std::thread::sleep;
use std::time::Duration;

pub(crate) fn at(place: &Place, bench: impl Bench<Out = Verdict>) -> Verdict {
    place.run(false, bench).map_err(Wrong::opening)?
}

/// An address that the engine cannot reach is refused before the doorbell.
pub(crate) fn unreachable(place: &Place) -> Verdict {
    at(place, Unreachable)
}

/// A job that takes too long is stopped, and nothing is written afterwards.
pub(crate) fn timeout(place: &Place) -> Verdict {
    at(place, Timeouts { slow: place.engine.is_slow() })
}

/// A fault comes back decoded, and the next job works.
pub(crate) fn pl330_fault(place: &Place) -> Verdict {
    at(place, Pl330Trial::Fault)
}

/// A program that never ends is killed, and the next job works.
pub(crate) fn pl330_killed(place: &Place) -> Verdict {
    at(place, Pl330Trial::Killed)
}

/// A port whose caches cannot be maintained refuses the driver's own memory already: by
/// `CannotSync`, and no other error.
pub(crate) fn real_port(place: &Place) -> Verdict {
    match place.run(false, OneCopy) {
        Err(error @ Error::CannotSync { .. }) => Ok(error.to_string()),
        Err(error) => fail(format!("refused, but as: {error}")),
        Ok(Err(wrong @ Wrong::Failed(_))) => Err(wrong),
        Ok(other) => fail(format!("not refused: {other:?}")),
    }
}

const LEN: usize = 1000;
pub(crate) const SLOT: usize = 4096;

struct OneCopy;

impl Bench for OneCopy {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let [from, to] = buffers(region)?;
        drop(one(&mut queue, from, to, 0x35)?);
        Ok("copied".into())
    }
}

/// Two buffers, beyond what `Reach::DriverOnly` reaches.
fn buffers(region: &Region) -> Result<[CpuBuf; 2], Wrong> {
    // Held until the buffers have their places behind it.
    let _reach = region.alloc(DRIVER_REACH_BYTES, Align::PAGE)?;
    Ok([region.alloc(SLOT, Align::PAGE)?, region.alloc(SLOT, Align::PAGE)?])
}

/// Copies a pattern from one to the other, waits, compares all of the destination, and gives both
/// back.
fn one<D: Driver>(
    queue: &mut Queue<D>,
    mut from: CpuBuf,
    mut to: CpuBuf,
    mark: u8,
) -> Result<[CpuBuf; 2], Wrong> {
    from.view_mut::<u8>()?.fill(mark);
    to.view_mut::<u8>()?.fill(!mark);
    let [from, to] = queue
        .run([from.to_device(3..3 + LEN), to.from_device(5..5 + LEN)], &[], JOB_TIMEOUT)?
        .buffers;
    let right = to
        .view::<u8>()?
        .iter()
        .enumerate()
        .all(|(at, &byte)| byte == if (5..5 + LEN).contains(&at) { mark } else { !mark });
    ensure(right, "the copy is wrong")?;
    Ok([from, to])
}

struct Unreachable;

impl Bench for Unreachable {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let [mut from, mut to] = buffers(region)?;
        from.view_mut::<u8>()?.fill(0x11);
        to.view_mut::<u8>()?.fill(0x22);
        let refused = match queue.submit([from.to_device(..SLOT), to.from_device(..SLOT)], &[]) {
            Ok(_) => return fail("the job was started"),
            Err(refused) => refused,
        };
        let error @ Error::Unreachable { addr, last, .. } = refused.error else {
            return fail(format!("refused, but as: {refused}"));
        };
        ensure(addr + SLOT as u64 - 1 > last, format!("{addr:#x} is within {last:#x}"))?;
        ensure(queue.counts().pushed == 0 && queue.is_empty(), "the doorbell was rung")?;
        let [_, to] =
            refused.buffers.ok_or_else(|| Wrong::Failed("the buffers are lost".into()))?;
        let to =
            to.into_buf().map_err(|_| Wrong::Failed("the destination is the device's".into()))?;
        ensure(to.view::<u8>()?.iter().all(|&byte| byte == 0x22), "the destination was written")?;
        Ok(error.to_string())
    }
}

pub(crate) fn uio_in_use(name: &DeviceName) -> Verdict {
    let _first = name.open()?;
    match name.open() {
        Err(error @ Error::InUse { .. }) => Ok(error.to_string()),
        Err(error) => fail(format!("refused, but as: {error}")),
        Ok(_) => fail("two drivers have it"),
    }
}

/// Longer than any engine here needs for what it had begun: three of edu's transfers.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// A job that is given up at once, or after a millisecond where the engine takes 200.
struct Timeouts {
    slow: bool,
}

impl Bench for Timeouts {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, _line: Line<'_>) -> Verdict {
        let [mut from, mut to] = buffers(region)?;
        from.view_mut::<u8>()?.fill(0x44);
        to.view_mut::<u8>()?.fill(0xBB);
        let len = if self.slow { TRANSFER_BYTES as usize } else { SLOT };
        let limit = if self.slow { Duration::from_millis(1) } else { Duration::ZERO };
        let failed = match queue.run([from.to_device(..len), to.from_device(..len)], &[], limit) {
            Ok(_) => return skip("this engine was done at the first look"),
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
        let Some([from, to]) = given_back(failed.buffers) else {
            return fail("the buffers are lost");
        };
        let then = to.view::<u8>()?.to_vec();
        sleep(AFTERWARDS);
        let to = refresh(to, queue.port(), queue.driver().addr_bits())?;
        let written = to.view::<u8>()?.iter().zip(&then).filter(|(now, then)| now != then).count();
        ensure(written == 0, format!("{written} bytes were written after the engine was stopped"))?;
        drop(one(&mut queue, from, to, 0x66)?);
        let (error, moved) = (failed.error, then.len() as u64 - others(&then, 0x44));
        Ok(format!(
            "{error}; {moved} of {len} bytes had been written, none afterwards, and the next job \
             worked"
        ))
    }
}

/// Arm DDI 0424C, chapter 4: no instruction begins with this byte.
const UNDEFINED: u8 = 0x5F;
/// DMAWFE (4.3.19) for event 1, which no program sends, and DMAEND.
pub(crate) const WAIT_FOR_EVER: [u8; 3] = [0x36, 1 << 3, 0x00];

/// A program that the driver does not make itself, and what must be seen of it. QEMU's model runs a
/// job inside the doorbell's register access and ignores what the bus answers (hw/dma/pl330.c), so
/// faults are made by programs that touch no memory.
enum Pl330Trial {
    Fault,
    Killed,
}

impl Bench for Pl330Trial {
    type Out = Verdict;

    fn on<D: Driver>(self, region: &Region, queue: Queue<D>, line: Line<'_>) -> Verdict {
        OneCopy.on(region, queue, line)?;
        fail("this engine is no PL330")
    }

    fn on_pl330<D: Device>(
        self,
        region: &Region,
        mut driver: Pl330<D>,
        _line: Line<'_>,
    ) -> contigo::Result<Verdict> {
        driver.stop()?;
        let seen = match self {
            Self::Fault => fault(&mut driver),
            Self::Killed => killed(&mut driver),
        };
        let mut queue = Queue::new(driver, 1)?;
        let mut next_job =
            || buffers(region).and_then(|[from, to]| one(&mut queue, from, to, 0x77));
        Ok(seen.and_then(|seen| next_job().map(|_| format!("{seen}, and the next job worked"))))
    }
}

fn fault<D: Device>(driver: &mut Pl330<D>) -> Verdict {
    // SAFETY: an instruction that is none touches nothing.
    unsafe { driver.run_program(&[UNDEFINED]) }?;
    match driver.poll(Duration::from_secs(1)) {
        Err(error @ Error::Fault { device: "pl330", .. }) => {
            driver.stop()?;
            Ok(error.to_string())
        }
        other => fail(format!("it ended as: {other:?}")),
    }
}

fn killed<D: Device>(driver: &mut Pl330<D>) -> Verdict {
    // SAFETY: it waits, and touches nothing.
    unsafe { driver.run_program(&WAIT_FOR_EVER) }?;
    let ended = driver.poll(Duration::from_millis(50));
    ensure(ended == Ok(None), format!("it ended as: {ended:?}"))?;
    driver.stop()?;
    Ok("it ran for 50 ms and was killed".into())
}

/// Each check must be able to fail: here it is given what it must not accept.
#[cfg(test)]
#[allow(clippy::panic, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::machine::{Engine, Memory};
    use crate::setup::{Reach, VIRT_PCIE};
    use contigo_boards::DmaKind;

    fn sim(kind: DmaKind, reach: Reach) -> Place {
        let memory = Memory::named("sim").unwrap_or_else(|| panic!("sim is no name"));
        Place { memory, engine: Engine::Sim(kind), port: VIRT_PCIE, reach, armed: true }
    }

    #[track_caller]
    fn fails(verdict: &Verdict, why: impl Fn(&str) -> bool) {
        assert!(matches!(verdict, Err(Wrong::Failed(said)) if why(said)), "{verdict:?}");
    }

    #[test]
    fn what_can_be_reached_fails_the_check_of_reach() {
        for kind in [DmaKind::Pl330, DmaKind::Zdma] {
            let refused = unreachable(&sim(kind, Reach::DriverOnly));
            assert!(refused.is_ok(), "{refused:?}");
            fails(&unreachable(&sim(kind, Reach::All)), |why| why == "the job was started");
        }
    }

    #[test]
    fn accepting_port_fails_real_port_check() {
        let all = sim(DmaKind::Zdma, Reach::All);
        fails(&real_port(&all), |why| why.starts_with("not refused"));
        // Another refusal is not the one.
        fails(&real_port(&sim(DmaKind::Zdma, Reach::DriverOnly)), |why| !why.contains("caches"));
        let Some(memory) = Memory::named("u-dma-buf:no-such-device") else { panic!("no name") };
        fails(&real_port(&Place { memory, ..all }), |why| why.starts_with("refused, but as: "));
    }

    #[test]
    fn a_simulated_engine_is_stopped_and_decoded() {
        let (pl330, zdma) = (sim(DmaKind::Pl330, Reach::All), sim(DmaKind::Zdma, Reach::All));
        for seen in [timeout(&zdma), timeout(&pl330), pl330_fault(&pl330), pl330_killed(&pl330)] {
            assert!(seen.is_ok(), "{seen:?}");
        }
        fails(&pl330_fault(&zdma), |why| why == "this engine is no PL330");
    }
}

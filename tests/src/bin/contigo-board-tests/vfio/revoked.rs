#![allow(
    unsafe_code,
    reason = "memory is read through a raw pointer that a device may still write"
)]
//! Memory that is taken away while the device is at work.

use super::refused::{CANARY, Refused};
use super::{LEN, LIMIT, WIDE, open_device, open_edu};
use crate::verdict::{Seen, Tried, fail, others};
use contigo::drivers::axi_gate::Part;
use contigo::linux::vfio::{Interrupt, Vfio};
use contigo::{Align, DevAddr, Driver, Error, Mmio as _, Queue, Region, Result};
use contigo_testkit::edu::{Edu, FaultWatch as _, IommuFault, Unwatched};
use std::thread;
use std::time::{Duration, Instant};

/// Well into a transfer of 100 ms, and well before its end.
const IN_THE_FIRST: Duration = Duration::from_millis(40);
const IN_THE_SECOND: Duration = Duration::from_millis(150);
/// No transfer ends sooner after the start of its job: 100 ms each, by a clock that is read in
/// whole milliseconds (hw/misc/edu.c).
const FIRST_ENDS: Duration = Duration::from_millis(99);
const SECOND_ENDS: Duration = Duration::from_millis(198);
/// On a busy host a guest may sleep through the end of a transfer, and what comes after it shows
/// nothing. It may so often.
const TRIES: usize = 5;

/// The result of `test` the first time that it comes before the end of the transfer.
fn in_time<T>(mut test: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    for _ in 0..TRIES {
        if let Some(shown) = test()? {
            return Ok(Some(shown));
        }
    }
    Ok(None)
}

fn too_late() -> Tried {
    fail(format!(
        "{TRIES} times the transfer was over before it could be stopped: this machine is too busy"
    ))
}

pub(crate) fn revoked(address: &str, refused: Refused, writes: bool) -> Tried {
    in_time(|| revoked_once(address, refused, writes))?.map_or_else(too_late, Ok)
}

/// Takes the block away that the device is about to write, or to read, while its transfer is under
/// way; `None` if that was over.
fn revoked_once(address: &str, refused: Refused, writes: bool) -> Result<Option<Seen>> {
    let vfio = Vfio::open(address)?;
    let (source, target) = (Region::new(vfio.memory(4096)?)?, Region::new(vfio.memory(4096)?)?);
    let (mut from, mut to) = (source.alloc(4096, Align::PAGE)?, target.alloc(4096, Align::PAGE)?);
    from.view_mut::<u8>()?.fill(0x99);
    to.view_mut::<u8>()?.fill(CANARY);
    let taken = if writes { target.base() } else { source.base() };
    let mut log = refused.log(address);
    let len = refused.len();
    let mut queue = Queue::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?, 1)?;
    let started = Instant::now();
    queue.submit([from.to_device(..len), to.from_device(..len)], &[])?;
    if writes {
        if !runs_until_the_second(&mut queue)? {
            return Ok(None);
        }
    } else {
        thread::sleep(IN_THE_FIRST);
    }
    vfio.revoke(taken)?;
    let late = started.elapsed() >= if writes { SECOND_ENDS } else { FIRST_ENDS };
    let again = vfio.revoke(taken);
    let [from, to] = queue
        .wait(LIMIT)?
        .ok_or(Error::Timeout { timeout_us: contigo::types::timeout_us(LIMIT)? })?
        .buffers;
    if late {
        return Ok(None);
    }
    let mut outcome = Seen { jobs: 1, ..Seen::default() };
    // A read that was refused gives edu zeros (QEMU), and those it may write: never what it was not
    // allowed to read.
    let allowed = if writes { CANARY } else { 0 };
    outcome.canary_hits += others(to.view_at(..len)?, allowed);
    outcome.canary_hits += others(to.view_at(len..)?, CANARY);
    outcome.canary_hits += others(from.view()?, 0x99);
    let fault = match &mut log {
        None => "the kernel log was not read".to_owned(),
        Some(log) => match log.seen(500_000)? {
            Some(fault @ IommuFault { event: 0x10, addr, write, .. })
                if addr == taken.raw() && write == writes =>
            {
                format!("{fault:x?}")
            }
            other => {
                outcome.failed = true;
                format!("no fault at {taken:?}: {other:x?}")
            }
        },
    };
    outcome.failed |= !matches!(again, Err(Error::NotOurs { .. }));
    drop((from, to));
    drop((source, target));
    outcome.failed |= vfio.leaked_bytes()? != 0;
    let (at, done) = (taken.raw(), if writes { "written" } else { "read" });
    outcome.detail =
        format!("{len} bytes at {at:#x} taken away, nothing {done}; {fault}; edu says done");
    Ok(Some(outcome))
}

/// A job is forgotten with its queue, and its device is closed: the transfer under way touches
/// nothing.
pub(crate) fn closed_while_running(address: &str) -> Tried {
    let vfio = Vfio::open(address)?;
    let Some(changed) = in_time(|| forgotten(&vfio))? else { return too_late() };
    // And the device opens again, beside the memory that was forgotten.
    let region = Region::new(vfio.memory(2 * 4096)?)?;
    let (mut from, to) = (region.alloc(4096, Align::PAGE)?, region.alloc(4096, Align::PAGE)?);
    from.view_mut::<u8>()?.fill(0x42);
    let mut queue = Queue::new(open_edu::<WIDE, _>(&vfio, Interrupt::Msi, Unwatched)?, 1)?;
    let [_, to] = queue.run([from.to_device(..LEN), to.from_device(..LEN)], &[], LIMIT)?.buffers;
    let mismatches = others(to.view_at(..LEN)?, 0x42);
    let detail = "nothing was written after the device was closed; it opened again, and the next \
                  job was right"
        .to_owned();
    Ok(Seen { jobs: 2, bytes: LEN as u64, mismatches, canary_hits: changed, ..detail.into() })
}

/// How many bytes of a forgotten job's destination changed; `None` if the transfer was over before
/// the device was closed.
fn forgotten(vfio: &Vfio) -> Result<Option<u64>> {
    let port = vfio.port();
    let region = Region::new(vfio.memory(2 * 4096)?)?;
    let (mut from, mut to) = (region.alloc(4096, Align::PAGE)?, region.alloc(4096, Align::PAGE)?);
    from.view_mut::<u8>()?.fill(0x99);
    to.view_mut::<u8>()?.fill(CANARY);
    let target = to.offset_bytes() as u64;
    let device = open_device(vfio, Interrupt::Polled)?;
    // SAFETY: no other code has its registers. `vfio` is the lab's edu, whose mask is wider.
    let edu = unsafe { Edu::<_, WIDE>::open(Part::new(&device, 0, device.len_bytes())?)? };
    let mut queue = Queue::new(edu, 1)?;
    let started = Instant::now();
    queue.submit([from.to_device(..LEN), to.from_device(..LEN)], &[])?;
    if !runs_until_the_second(&mut queue)? {
        return Ok(None);
    }
    std::mem::forget(queue);
    // Bus mastering ends here, in the middle of the second transfer.
    drop(device);
    if started.elapsed() >= SECOND_ENDS {
        return Ok(None);
    }
    thread::sleep(Duration::from_millis(150));
    let bytes = region.host_ptr_of(&port, DevAddr(region.base().raw() + target))?;
    // SAFETY: 4096 bytes of the region, which is alive; the device may no longer write them, and
    // where it does all the same, a volatile read sees it.
    let changed =
        (0..4096).filter(|index| unsafe { bytes.add(*index).read_volatile() } != CANARY).count();
    Ok(Some(changed as u64))
}

/// Looks at the job until 50 ms into its second transfer, whose doorbell is rung by looking. Does
/// it still run?
fn runs_until_the_second<D: Driver>(queue: &mut Queue<D>) -> Result<bool> {
    let limit = Instant::now() + IN_THE_SECOND;
    while Instant::now() < limit {
        if queue.try_next::<2>()?.is_some() {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

//! Bus mastering off is a pause, not a stop: what the user before has begun must not go on into
//! memory that was given back.

use super::{
    super::{Verdict, ensure, ok},
    edu::{COMMAND, LEN, RUNNING, STOP, begin},
    subject::{Subject, file, refused, sys},
};
use crate::{
    heap,
    raw::{import, mapped},
};
use nix::errno::Errno;
use std::{thread::sleep, time::Duration};

const MARK: u8 = 0x11;

pub(super) fn previous_transfer(subject: &Subject) -> Verdict {
    let block = ok(heap::block(&subject.heap, 1 << 16))?;
    let bytes = file("mmap of the block", mapped(&block, 1 << 16))?;
    #[allow(unsafe_code, reason = "memory that a device may write")]
    // SAFETY: bytes of the mapping, which no reference is made of.
    let fill = || (0..LEN as usize).for_each(|at| unsafe { bytes.start().add(at).write_volatile(MARK) });
    #[allow(unsafe_code, reason = "memory that a device may write")]
    // SAFETY: as above.
    let is_whole = || (0..LEN as usize).all(|at| unsafe { bytes.start().add(at).read_volatile() } == MARK);
    fill();

    // First that a transfer does arrive where it may.
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    let place = sys("IMPORT", guard.import(&block, import::CONTIGUOUS, 0))?;
    refused("mastering without a program", guard.set_bus_master(true), Errno::EBUSY)?;
    sys("ARM", guard.arm(&STOP))?;
    sys("SET_BUS_MASTER", guard.set_bus_master(true))?;
    begin(&registers, place.addr);
    sleep(Duration::from_millis(200));
    ensure(!is_whole(), "the device does not write: this check can catch nothing")?;
    fill();

    // Its user takes the memory back and goes while the next one is at work; the next user wants
    // to master the bus at once.
    begin(&registers, place.addr);
    sys("RELEASE", guard.release(place.handle))?;
    sys("ARM of nothing", guard.arm(&[]))?;
    drop((guard, registers));
    let next = subject.open()?;
    refused("mastering without a program", next.set_bus_master(true), Errno::EBUSY)?;
    let own = sys("mmap", next.map())?;
    subject.set_flag(&own, false);
    sys("ARM", next.arm(&subject.by_flag()))?;
    refused("mastering after a program that is not met", next.set_bus_master(true), Errno::ETIMEDOUT)?;
    sys("ARM", next.arm(&STOP))?;
    sys("SET_BUS_MASTER", next.set_bus_master(true))?;
    ensure(own.read(COMMAND) & RUNNING == 0, "it may master the bus while the transfer before goes on")?;
    sleep(Duration::from_millis(200));
    ensure(is_whole(), "the transfer of the user before went on into memory that was given back")?;
    Ok("EBUSY without a program, ETIMEDOUT where it is not met; the transfer before reached nothing".into())
}

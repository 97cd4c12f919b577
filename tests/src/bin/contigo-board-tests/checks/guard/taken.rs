//! A device that is unbound under a user who drives it, and who asks the kernel for nothing: its
//! registers are mapped, and its memory may be coherent.

use super::{
    super::{Verdict, ensure, ok},
    subject::{Subject, refused, soon, sys},
};
use crate::heap;
use nix::{errno::Errno, libc};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{scope, sleep},
    time::Duration,
};

/// A number that no register has by itself.
const MARK: u32 = 0x5A5A_1234;

pub(super) fn taken(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    let real = registers.read(subject.steady());
    sys("ARM", guard.arm(&subject.always(&registers)))?;
    let block = ok(heap::block(&subject.heap, 1 << 16))?;
    sys("IMPORT", guard.import(&block, 0))?;
    let (done, reads, wrong) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let bound = scope(|scope| {
        // Reads on, whatever happens: a safe read must not end the process.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let now = registers.read(subject.steady());
                reads.fetch_add(1, Ordering::Relaxed);
                wrong.fetch_add(u64::from(now != real && now != u32::MAX), Ordering::Relaxed);
            }
        });
        sleep(Duration::from_millis(20));
        let unbound = subject.unbind();
        let gone = reads.load(Ordering::Relaxed);
        let goes_on = soon(|| reads.load(Ordering::Relaxed) > gone + 1000);
        done.store(true, Ordering::Relaxed);
        ensure(goes_on, "the reader stood still")?;
        unbound
    });
    let unbound = bound?;
    ensure(wrong.load(Ordering::Relaxed) == 0, "a read was neither the register's value nor ones")?;
    ensure(registers.read(subject.steady()) == u32::MAX, "its registers do not read as ones")?;
    ensure(guard.poll(0) & libc::POLLHUP != 0, "poll does not say POLLHUP")?;
    refused("GET_INFO", guard.info(), Errno::ENODEV)?;
    refused("IMPORT", guard.import(&block, 0), Errno::ENODEV)?;
    refused("RESET", guard.reset(), Errno::ENODEV)?;
    refused("UNMASK", guard.unmask(1), Errno::ENODEV)?;
    refused("read", guard.read(4), Errno::ENODEV)?;
    refused("mmap", guard.map(), Errno::ENODEV)?;
    unbound.bind()?;

    // The next owner has the device, and what the one before writes does not reach it.
    ensure(
        soon(|| std::path::Path::new("/dev/contigo").join(&subject.guard).exists()),
        "it did not come back",
    )?;
    let next = subject.open()?;
    let own = sys("mmap", next.map())?;
    subject.set_flag(&own, true);
    let flag = own.read(subject.flag());
    registers.write(subject.flag(), MARK);
    ensure(registers.read(subject.flag()) == MARK, "a write to the page of ones is not read back")?;
    ensure(own.read(subject.flag()) == flag, "a write of the owner before reached the device")?;
    ensure(own.read(subject.steady()) == real, "the next owner's registers are not the device's")?;
    drop((guard, registers));
    ensure(
        sys("GET_INFO", next.info()).is_ok(),
        "the end of the owner before took it from the next",
    )?;
    Ok(format!(
        "ENODEV and POLLHUP; {} reads without a crash; the next owner saw nothing",
        reads.load(Ordering::Relaxed)
    ))
}

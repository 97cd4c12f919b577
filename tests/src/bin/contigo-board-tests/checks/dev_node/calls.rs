//! The calls of a contigo: one process at a time, mappings that are refused, interrupts that are
//! masked until they are wanted, and stop sequences that prove nothing.
#![allow(unsafe_code, reason = "an eventfd")]

use super::subject::{Subject, soon};
use crate::apart::{Apart, apart};
use crate::raw::{RawDevNode, Step, info};
use crate::verdict::{Verdict, ensure, must, refused, same};
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags};
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// EBUSY for a second file, for another process, and as long as a child or a mapping holds it.
pub(crate) fn exclusive(subject: &Subject) -> Verdict {
    let busy = |what: &str| refused(what, RawDevNode::open(&subject.dev_node), Errno::EBUSY);
    let dev_node = subject.open()?;
    busy("a second open")?;
    apart(None, || busy("another process's open").map(|()| String::new()))?;
    // A child that has the descriptor keeps the device.
    let holder = Apart::begin(None, |_| {
        sleep(Duration::from_millis(200));
        Ok(String::new())
    })?;
    drop(dev_node);
    busy("open, while a child has the file")?;
    holder.ended()?;
    // And so does a mapping without a descriptor.
    let (again, registers) = subject.open_mapped()?;
    drop(again);
    busy("open, while its registers are mapped")?;
    let (at, before) = (subject.steady(), registers.read(subject.steady()));
    drop(registers);
    let is_free = soon(|| RawDevNode::open(&subject.dev_node).is_ok());
    ensure(is_free, "it stays busy after the mapping's end")?;
    Ok(format!("EBUSY four times; register {at:#x} is {before:#x} without a descriptor"))
}

/// A child of fork() does not have the registers.
pub(crate) fn not_inherited(subject: &Subject) -> Verdict {
    let (_dev_node, registers) = subject.open_mapped()?;
    let before = registers.read(subject.steady());
    let looks = Apart::begin(None, |_| Ok(registers.read(subject.steady()).to_string()))?;
    let (end, _) = looks.ended()?;
    let crashed = matches!(end, WaitStatus::Signaled(_, Signal::SIGSEGV, _));
    ensure(crashed, format!("a child that read a register ended as {end:?}"))?;
    ensure(registers.read(subject.steady()) == before, "the parent's registers are gone")?;
    Ok("a child that reads a register ends by SIGSEGV; its parent reads on".into())
}

pub(crate) fn mappings(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let window = must("GET_INFO", dev_node.info())?.window[0];
    let pages = window.len_bytes.next_multiple_of(4096);
    let (read, shared) = (ProtFlags::PROT_READ, MapFlags::MAP_SHARED);
    let (executable, private) = (read | ProtFlags::PROT_EXEC, MapFlags::MAP_PRIVATE);
    let at = window.mmap_offset;
    for (what, offset, len_bytes, access, kind, errno) in [
        ("a private mapping", at, 4096, read, private, Errno::EINVAL),
        ("an executable one", at, 4096, executable, shared, Errno::EPERM),
        ("a page too many", at, pages + 4096, read, shared, Errno::EINVAL),
        ("behind it", at + pages, 4096, read, shared, Errno::EINVAL),
        ("far behind it", at + (1 << 30), 4096, read, shared, Errno::EINVAL),
    ] {
        refused(what, dev_node.map_at(offset, len_bytes, access, kind), errno)?;
    }
    drop(must("mmap to read", dev_node.map_at(at, 4096, read, shared))?);
    Ok(format!("five refused; {pages} bytes at {at:#x} can be mapped"))
}

/// edu's registers (`docs/specs/edu.rst`): what it raises, and what acknowledges it.
const STATUS: u32 = 0x24;
const RAISE: u32 = 0x60;
const ACKNOWLEDGE: u32 = 0x64;

pub(crate) fn interrupts(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let count = must("GET_INFO", dev_node.info())?.interrupts;
    ensure(count > 0, "it has no interrupt")?;
    must("fcntl", dev_node.set_nonblocking())?;
    refused("a read of nothing", dev_node.read(4), Errno::EAGAIN)?;
    refused("a read of 3 bytes", dev_node.read(3), Errno::EINVAL)?;
    refused("unmasking what it has not", dev_node.unmask(1 << count), Errno::EINVAL)?;
    refused("waiting for what it has not", dev_node.wait(1 << count, 0), Errno::EINVAL)?;
    refused("waiting for nothing", dev_node.wait(0, 0), Errno::EINVAL)?;
    let mut event = must("eventfd", eventfd())?;
    let null = must("/dev/null", File::open("/dev/null"))?;
    for (what, interrupt, fd, errno) in [
        ("an interrupt that it has not", count, event.as_raw_fd(), Errno::EINVAL),
        ("a file that is no eventfd", 0, null.as_raw_fd(), Errno::EINVAL),
        ("no descriptor", 0, 9999, Errno::EBADF),
    ] {
        refused(what, dev_node.set_eventfd(interrupt, fd), errno)?;
    }
    must("an eventfd", dev_node.set_eventfd(0, event.as_raw_fd()))?;
    let registers = must("mmap", dev_node.map())?;
    let acknowledge = || registers.write(ACKNOWLEDGE, registers.read(STATUS));
    if subject.is_edu() {
        // It has no reset: what another check had it raise is raised still.
        acknowledge();
    }
    must("unmask", dev_node.unmask(1))?;
    ensure(dev_node.poll(0) == 0, "an interrupt came, and the device was never told to raise one")?;
    if !subject.is_edu() {
        must("none", dev_node.set_eventfd(0, -1))?;
        return Ok(format!("{count} interrupts; every wrong question is refused"));
    }
    for round in 0..3 {
        let in_round = |what| format!("round {round}: {what}");
        registers.write(RAISE, 1);
        same(&in_round("events within a second"), dev_node.poll(1_000), libc::POLLIN)?;
        same(&in_round("which one read tells"), must("read", dev_node.read(4))?, 1)?;
        same(&in_round("signals of the eventfd"), signalled(&mut event), Some(1))?;
        acknowledge();
        // It is masked now: another one is seen when it is unmasked.
        registers.write(RAISE, 1);
        ensure(dev_node.poll(50) == 0, "it came while it was masked")?;
        must("unmask", dev_node.unmask(1))?;
        ensure(dev_node.poll(1_000) == libc::POLLIN, "one that came while it was masked is lost")?;
        must("read", dev_node.read(4))?;
        ensure(signalled(&mut event).is_some(), "the eventfd was not signalled again")?;
        acknowledge();
        // The same in one call, which signals no eventfd.
        registers.write(RAISE, 1);
        same(&in_round("which one a wait tells"), must("wait", dev_node.wait(1, 1_000_000))?, 1)?;
        acknowledge();
        let begun = Instant::now();
        same(&in_round("after no interrupt"), must("wait", dev_node.wait(1, 20_000))?, 0)?;
        ensure(begun.elapsed() >= Duration::from_millis(20), "a wait ended before its limit")?;
        same(&in_round("events after a wait"), dev_node.poll(0), 0)?;
        ensure(event.read(&mut [0; 8]).is_err(), "a wait signalled the eventfd")?;
        must("unmask", dev_node.unmask(1))?;
    }
    Ok("seen by poll, by read, by an eventfd and by a wait; masked when taken".into())
}

fn eventfd() -> Result<File, Errno> {
    // SAFETY: a new descriptor, which no other code owns.
    Errno::result(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// How often it was signalled since the last look; `None`: not at all. Another processor may not
/// have signalled it yet when poll already reports the interrupt.
fn signalled(event: &mut File) -> Option<u64> {
    let mut count = [0; 8];
    soon(|| event.read_exact(&mut count).is_ok()).then_some(u64::from_ne_bytes(count))
}

pub(crate) fn stop_without_poll(subject: &Subject) -> Verdict {
    let (dev_node, registers) = subject.open_mapped()?;
    subject.set_flag(&registers, true);
    let [poll] = subject.by_flag();
    must("ARM", dev_node.arm(&[poll]))?;
    let write = Step::write(subject.flag(), 0);
    let unproven: [(&str, &[Step]); 7] = [
        ("a write alone", &[write]),
        ("a write at the end", &[poll, write]),
        ("two writes at the end", &[poll, write, write]),
        ("a write before an ELSE", &[poll, write, Step::ELSE, poll]),
        ("a write alone before an ELSE", &[write, Step::ELSE, poll]),
        ("a write behind an ELSE", &[poll, Step::ELSE, write]),
        ("a write behind the last ELSE", &[poll, Step::ELSE, poll, Step::ELSE, poll, write]),
    ];
    for (what, steps) in unproven {
        refused(what, dev_node.arm(steps), Errno::EINVAL)?;
        let is_armed = must("GET_INFO", dev_node.info())?.flags & info::ARMED != 0;
        ensure(is_armed, format!("{what} was refused, and nothing is armed any more"))?;
    }
    let each_way = [write, poll, Step::ELSE, write, poll];
    must("a write that is polled for, on each way", dev_node.arm(&each_way))?;
    must("ARM", dev_node.arm(&[poll]))?;
    refused("a write at the end", dev_node.arm(&[poll, write]), Errno::EINVAL)?;
    // A register was touched: without a stop sequence this would be in quarantine.
    must("ALLOC", dev_node.alloc(4096, 0))?;
    drop((dev_node, registers));
    let left = subject.info()?.quarantined;
    same("in quarantine, though the sequence before finds it stopped", left, 0)?;
    Ok(format!("EINVAL for {} sequences; the one before stays armed, and is run", unproven.len()))
}

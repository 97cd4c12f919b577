//! The calls of a contigo: one process at a time, mappings that are refused, interrupts that are
//! masked until they are wanted, and stop sequences that prove nothing.
#![allow(unsafe_code, reason = "an eventfd")]

use super::subject::{Subject, soon};
use crate::{
    apart::{Apart, apart},
    raw::{RawDevNode, Step, info},
    verdict::{Verdict, ensure, must, refused},
};
use nix::{
    errno::Errno,
    libc,
    sys::{
        mman::{MapFlags, ProtFlags},
        signal::Signal,
        wait::WaitStatus,
    },
};
use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    thread::sleep,
    time::Duration,
};

/// EBUSY for a second file, for another process, and as long as a child or a mapping holds it.
pub(crate) fn exclusive(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    refused("a second open", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
    apart(None, || {
        refused("another process's open", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
        Ok(String::new())
    })?;
    // A child that has the descriptor keeps the device.
    let holder = Apart::begin(None, |_| {
        sleep(Duration::from_millis(200));
        Ok(String::new())
    })?;
    drop(dev_node);
    refused("open, while a child has the file", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
    holder.ended()?;
    let again = subject.open()?;
    // And so does a mapping without a descriptor.
    let registers = must("mmap", again.map())?;
    drop(again);
    refused(
        "open, while its registers are mapped",
        RawDevNode::open(&subject.dev_node),
        Errno::EBUSY,
    )?;
    let before = registers.read(subject.steady());
    drop(registers);
    ensure(
        soon(|| RawDevNode::open(&subject.dev_node).is_ok()),
        "it stays busy after the mapping's end",
    )?;
    Ok(format!(
        "EBUSY four times; register {:#x} is {before:#x} without a descriptor",
        subject.steady()
    ))
}

/// A child of fork() does not have the registers.
pub(crate) fn not_inherited(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    let before = registers.read(subject.steady());
    let looks = Apart::begin(None, |_| Ok(registers.read(subject.steady()).to_string()))?;
    let (end, _) = looks.ended()?;
    ensure(
        matches!(end, WaitStatus::Signaled(_, Signal::SIGSEGV, _)),
        format!("a child that read a register ended as {end:?}"),
    )?;
    ensure(registers.read(subject.steady()) == before, "the parent's registers are gone")?;
    Ok("a child that reads a register ends by SIGSEGV; its parent reads on".into())
}

/// Each mapping that must not be.
pub(crate) fn mappings(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let window = must("GET_INFO", dev_node.info())?.window[0];
    let pages = window.len_bytes.next_multiple_of(4096);
    let (read, shared) = (ProtFlags::PROT_READ, MapFlags::MAP_SHARED);
    let at = window.mmap_offset;
    refused(
        "a private mapping",
        dev_node.map_at(at, 4096, read, MapFlags::MAP_PRIVATE),
        Errno::EINVAL,
    )?;
    refused(
        "an executable one",
        dev_node.map_at(at, 4096, read | ProtFlags::PROT_EXEC, shared),
        Errno::EPERM,
    )?;
    refused("a page too many", dev_node.map_at(at, pages + 4096, read, shared), Errno::EINVAL)?;
    refused("behind it", dev_node.map_at(at + pages, 4096, read, shared), Errno::EINVAL)?;
    refused("far behind it", dev_node.map_at(at + (1 << 30), 4096, read, shared), Errno::EINVAL)?;
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
    let mut event = must("eventfd", eventfd())?;
    refused(
        "an interrupt that it has not",
        dev_node.set_eventfd(count, event.as_raw_fd()),
        Errno::EINVAL,
    )?;
    let null = must("/dev/null", File::open("/dev/null"))?;
    refused("a file that is no eventfd", dev_node.set_eventfd(0, null.as_raw_fd()), Errno::EINVAL)?;
    refused("no descriptor", dev_node.set_eventfd(0, 9999), Errno::EBADF)?;
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
        registers.write(RAISE, 1);
        ensure(
            dev_node.poll(1_000) == libc::POLLIN,
            format!("round {round}: no interrupt within a second"),
        )?;
        ensure(must("read", dev_node.read(4))? == 1, "read does not say which one came")?;
        let times = signalled(&mut event);
        ensure(
            times == Some(1),
            format!("round {round}: the eventfd was signalled {times:?} times"),
        )?;
        acknowledge();
        // It is masked now: another one is seen when it is unmasked.
        registers.write(RAISE, 1);
        ensure(dev_node.poll(50) == 0, "it came while it was masked")?;
        must("unmask", dev_node.unmask(1))?;
        ensure(dev_node.poll(1_000) == libc::POLLIN, "one that came while it was masked is lost")?;
        must("read", dev_node.read(4))?;
        ensure(signalled(&mut event).is_some(), "the eventfd was not signalled again")?;
        acknowledge();
        must("unmask", dev_node.unmask(1))?;
    }
    Ok("seen by poll, by read and by an eventfd; masked when taken".into())
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
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
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
        ensure(
            must("GET_INFO", dev_node.info())?.flags & info::ARMED != 0,
            format!("{what} was refused, and nothing is armed any more"),
        )?;
    }
    must(
        "a write that is polled for, on each way",
        dev_node.arm(&[write, poll, Step::ELSE, write, poll]),
    )?;
    must("ARM", dev_node.arm(&[poll]))?;
    refused("a write at the end", dev_node.arm(&[poll, write]), Errno::EINVAL)?;
    // A register was touched: without a stop sequence this would be in quarantine.
    must("ALLOC", dev_node.alloc(4096, 0))?;
    drop((dev_node, registers));
    let left = subject.info()?.quarantined;
    ensure(
        left == 0,
        format!("the sequence before was to find it stopped, and {left} buffers are in quarantine"),
    )?;
    Ok(format!("EINVAL for {} sequences; the one before stays armed, and is run", unproven.len()))
}

#![allow(unsafe_code, reason = "fork")]
//! One process at a time: a second file, another process, a child, and mappings that are refused.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, refused, soon, sys},
};
use crate::raw::RawGuard;
use nix::{
    errno::Errno,
    libc,
    sys::{
        mman::{MapFlags, ProtFlags},
        signal::Signal,
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};
use std::{thread::sleep, time::Duration};

/// EBUSY for a second file, for another process, and as long as a child or a mapping holds it.
pub(super) fn exclusive(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    refused("a second open", RawGuard::open(&subject.guard), Errno::EBUSY)?;
    let other = child(|| i32::from(RawGuard::open(&subject.guard).err() != Some(Errno::EBUSY)))?;
    ensure(
        ended(other)? == WaitStatus::Exited(other, 0),
        "another process was not refused by EBUSY",
    )?;
    // A child that has the descriptor keeps the device.
    let holder = child(|| {
        sleep(Duration::from_millis(200));
        0
    })?;
    drop(guard);
    refused("open, while a child has the file", RawGuard::open(&subject.guard), Errno::EBUSY)?;
    ended(holder)?;
    let again = subject.open()?;
    // And so does a mapping without a descriptor.
    let registers = sys("mmap", again.map())?;
    drop(again);
    refused("open, while its registers are mapped", RawGuard::open(&subject.guard), Errno::EBUSY)?;
    let before = registers.read(subject.steady());
    drop(registers);
    ensure(
        soon(|| RawGuard::open(&subject.guard).is_ok()),
        "it stays busy after the mapping's end",
    )?;
    Ok(format!(
        "EBUSY four times; register {:#x} is {before:#x} without a descriptor",
        subject.steady()
    ))
}

/// A child of fork() does not have the registers.
pub(super) fn not_inherited(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    let before = registers.read(subject.steady());
    let looks = child(|| i32::from(registers.read(subject.steady()) == before))?;
    let end = ended(looks)?;
    ensure(
        matches!(end, WaitStatus::Signaled(_, Signal::SIGSEGV, _)),
        format!("a child that read a register ended as {end:?}"),
    )?;
    ensure(registers.read(subject.steady()) == before, "the parent's registers are gone")?;
    Ok("a child that reads a register ends by SIGSEGV; its parent reads on".into())
}

/// Each mapping that must not be.
pub(super) fn mappings(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let window = sys("GET_INFO", guard.info())?.window[0];
    let pages = window.len_bytes.next_multiple_of(4096);
    let (read, shared) = (ProtFlags::PROT_READ, MapFlags::MAP_SHARED);
    let at = window.mmap_offset;
    refused(
        "a private mapping",
        guard.map_at(at, 4096, read, MapFlags::MAP_PRIVATE),
        Errno::EINVAL,
    )?;
    refused(
        "an executable one",
        guard.map_at(at, 4096, read | ProtFlags::PROT_EXEC, shared),
        Errno::EPERM,
    )?;
    refused("a page too many", guard.map_at(at, pages + 4096, read, shared), Errno::EINVAL)?;
    refused("behind it", guard.map_at(at + pages, 4096, read, shared), Errno::EINVAL)?;
    refused("far behind it", guard.map_at(at + (1 << 30), 4096, read, shared), Errno::EINVAL)?;
    drop(sys("mmap to read", guard.map_at(at, 4096, read, shared))?);
    Ok(format!("five refused; {pages} bytes at {at:#x} can be mapped"))
}

/// A child that ends with what `work` answers.
fn child(work: impl FnOnce() -> i32) -> Result<Pid, Wrong> {
    // SAFETY: this process has one thread.
    match unsafe { fork() }.map_err(|errno| Wrong::Failed(format!("fork: {errno}")))? {
        // SAFETY: `exit_group`, and nothing before it.
        ForkResult::Child => unsafe { libc::_exit(work()) },
        ForkResult::Parent { child } => Ok(child),
    }
}

fn ended(child: Pid) -> Result<WaitStatus, Wrong> {
    waitpid(child, None).map_err(|errno| Wrong::Failed(format!("waitpid: {errno}")))
}

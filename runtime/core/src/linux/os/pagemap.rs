//! Where the kernel put a page: `/proc/self/pagemap`, one 64-bit entry for each virtual page, read
//! without the heap.
//!
//! An entry has the page's frame number in bits 0 to 54 and "present" in bit 63. Two entries look
//! like no address and mean different things, so they are told apart here:
//!
//! | present | frame | what it is |
//! |---|---|---|
//! | 1 | not 0 | `Frame::At` |
//! | 1 | 0 | `Frame::Hidden`: the kernel hides frames from a process without CAP_SYS_ADMIN (since Linux 4.2) |
//! | 0 | any | `Frame::Absent`: not faulted in, swapped, or a PFN mapping, which the walk skips (a dma-heap since Linux 6.9) |
//!
//! # References
//! Linux `Documentation/admin-guide/mm/pagemap.rst` (the bits; "Starting with 4.2 the PFN field is
//! zeroed if the user does not have CAP_SYS_ADMIN"); `fs/proc/task_mmu.c` (`pagemap_read`);
//! `mm/pagewalk.c` (`walk_page_test`: VM_PFNMAP is a hole).

use super::kernel::{Kernel, RUNNING, SystemCalls};
use crate::mem::backend::Segment;
use crate::types::{Error, PhysAddr};
use core::ffi::CStr;
use nix::libc::{ENOENT, EOVERFLOW, O_RDONLY};
use nix::unistd::{SysconfVar, sysconf};
use zerocopy::IntoBytes;

const NAME: &str = "/proc/self/pagemap";
const PATH: &CStr = c"/proc/self/pagemap";
const PRESENT: u64 = 1 << 63;
const FRAME_MASK: u64 = (1 << 55) - 1;
const ENTRY_BYTES: u64 = size_of::<u64>() as u64;
/// Entries read by one system call: 512 bytes of stack, and a 64 MiB block of 4 KiB pages takes 256
/// calls.
const BATCH: usize = 64;

/// The meaning of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    At(PhysAddr),
    Hidden,
    Absent,
}

/// A page-aligned block of virtual memory, in the numbers that a walk needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Virtual address of byte 0, a multiple of `page_bytes`.
    pub(crate) cpu: u64,
    /// Its length.
    pub(crate) len_bytes: usize,
    /// The kernel's page, the unit in which pagemap counts.
    pub(crate) page_bytes: usize,
    /// The unit that is contiguous by construction: a page, or a huge page. Only its first entry is
    /// read.
    pub(crate) unit_bytes: usize,
    /// The error for a page that is absent here.
    pub(crate) absent: Error,
}

/// The kernel's page size in bytes: 4, 16 or 64 KiB.
pub fn page_bytes() -> Result<usize, Error> {
    let value = sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|value| usize::try_from(value).ok())
        .unwrap_or(0);
    if value.is_power_of_two() {
        Ok(value)
    } else {
        Err(Error::Unexpected { name: "sysconf(_SC_PAGESIZE)", value: value as u64 })
    }
}

/// Reads the entries of consecutive virtual pages; page number = virtual address / page size.
///
/// The file is opened for each call: a held descriptor would show another process's pages after a
/// fork.
///
/// # Errors
/// [`Error::AttributeMissing`]: a kernel without CONFIG_PROC_PAGE_MONITOR, or no `/proc`.
/// [`Error::AttributeUnreadable`]: a process that changed its user (prctl(2), PR_SET_DUMPABLE).
/// [`Error::Unexpected`]: fewer entries than pages.
pub fn read(first_page: u64, entries: &mut [u64]) -> Result<(), Error> {
    read_from(&RUNNING, first_page, entries)
}

/// As [`read`], of the process that `kernel` runs.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_from(
    kernel: &Kernel,
    first_page: u64,
    entries: &mut [u64],
) -> Result<(), Error> {
    let unreadable = |errno| match errno {
        ENOENT => Error::AttributeMissing { name: NAME },
        errno => Error::AttributeUnreadable { name: NAME, errno },
    };
    let offset_bytes = first_page.checked_mul(ENTRY_BYTES).ok_or_else(|| unreadable(EOVERFLOW))?;
    let file = kernel.open(PATH, O_RDONLY).map_err(unreadable)?;
    let need_bytes = size_of_val(entries);
    let done_bytes =
        kernel.read_at(&file, offset_bytes, entries.as_mut_bytes()).map_err(unreadable)?;
    if done_bytes == need_bytes {
        Ok(())
    } else {
        Err(Error::Unexpected { name: NAME, value: done_bytes as u64 })
    }
}

/// The contiguous run that begins at byte `offset_bytes` of `block`: as long as each unit lies just
/// behind the one before.
///
/// `read` is [`read`], or a stand-in for it.
///
/// # Errors
/// [`Error::OutOfRange`] at or past the end; [`Error::PagemapHidden`]; the block's `absent`; the
/// error of `read`.
pub(crate) fn run(
    block: &Block,
    offset_bytes: usize,
    mut read: impl FnMut(u64, &mut [u64]) -> Result<(), Error>,
) -> Result<Segment, Error> {
    let Block { cpu, len_bytes, page_bytes, unit_bytes, .. } = *block;
    if offset_bytes >= len_bytes || !page_bytes.is_power_of_two() || !unit_bytes.is_power_of_two() {
        return Err(Error::OutOfRange {
            start: offset_bytes,
            end: offset_bytes.saturating_add(1),
            len_bytes,
        });
    }
    let within = offset_bytes & (unit_bytes - 1);
    let mut start = offset_bytes - within;
    let mut entries = [0; BATCH];
    let mut addr = None;
    let mut next = 0;
    // INVARIANT: start grows by unit_bytes for each entry, so there are at most len_bytes /
    // unit_bytes rounds.
    while start < len_bytes {
        let pages = if unit_bytes == page_bytes {
            (len_bytes - start).div_ceil(page_bytes).min(BATCH)
        } else {
            1
        };
        let (batch, _) = entries.split_at_mut_checked(pages).unwrap_or_default();
        let first_page = cpu.saturating_add(start as u64) / page_bytes as u64;
        read(first_page, batch)?;
        for (page, entry) in (first_page..).zip(batch.iter()) {
            let found = match decode(*entry, page_bytes)? {
                Frame::At(PhysAddr(found)) => found,
                // Memory that begins at physical address 0, as ZynqMP's does, has a page there.
                Frame::Hidden if shows_frames(page_bytes, &mut read) => 0,
                Frame::Hidden => return Err(Error::PagemapHidden { page }),
                Frame::Absent => return Err(block.absent),
            };
            match addr {
                None => addr = found.checked_add(within as u64),
                Some(addr) if found != next => {
                    return Ok(Segment { addr, len_bytes: start - offset_bytes });
                }
                Some(_) => {}
            }
            next = found.saturating_add(unit_bytes as u64);
            start = start.saturating_add(unit_bytes);
        }
    }
    let addr = addr.ok_or(Error::Unexpected { name: NAME, value: u64::MAX })?;
    Ok(Segment { addr, len_bytes: len_bytes - offset_bytes })
}

/// Returns whether the kernel shows this process frames at all: looks up a page of its stack, which
/// is not the page at address 0 in question.
fn shows_frames(
    page_bytes: usize,
    read: &mut impl FnMut(u64, &mut [u64]) -> Result<(), Error>,
) -> bool {
    let (here, mut entry) = (0_u8, [0]);
    let page = (&raw const here).addr() / page_bytes;
    read(page as u64, &mut entry).is_ok()
        && matches!(decode(entry[0], page_bytes), Ok(Frame::At(_)))
}

/// Where byte 0 of `block` lies: address 0 only where memory is there and the kernel shows it.
///
/// # Errors
/// As [`run`].
pub(crate) fn base(
    block: &Block,
    read: impl FnMut(u64, &mut [u64]) -> Result<(), Error>,
) -> Result<PhysAddr, Error> {
    let first = Block { len_bytes: block.len_bytes.min(block.unit_bytes), ..*block };
    Ok(PhysAddr(run(&first, 0, read)?.addr))
}

/// One entry, decoded.
fn decode(entry: u64, page_bytes: usize) -> Result<Frame, Error> {
    if entry & PRESENT == 0 {
        return Ok(Frame::Absent);
    }
    match entry & FRAME_MASK {
        0 => Ok(Frame::Hidden),
        frame => {
            let addr = frame.checked_mul(page_bytes as u64);
            addr.map(|addr| Frame::At(PhysAddr(addr)))
                .ok_or(Error::Unexpected { name: NAME, value: entry })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// Where a block's first page lies when its entry says frame 0, and every other page's says
    /// `elsewhere`.
    fn first_frame_is_zero(elsewhere: u64) -> Result<PhysAddr, Error> {
        let absent = Error::NoAddress { install: "" };
        let block =
            Block { cpu: 7 * PAGE, len_bytes: 4096, page_bytes: 4096, unit_bytes: 4096, absent };
        base(&block, |first_page, entries| {
            entries.fill(PRESENT | if first_page == 7 { 0 } else { elsewhere });
            Ok(())
        })
    }

    #[test]
    fn zero_address_needs_visible_pagemap() {
        assert_eq!(first_frame_is_zero(5), Ok(PhysAddr(0)));
        assert_eq!(first_frame_is_zero(0), Err(Error::PagemapHidden { page: 7 }));
    }
}

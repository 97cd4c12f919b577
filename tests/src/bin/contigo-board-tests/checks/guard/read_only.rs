//! A dma-buf that was opened for reading alone is imported for reading alone. An IOMMU keeps the
//! device to that.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    edu,
    subject::{Subject, file, refused, sys},
};
use crate::{
    heap,
    raw::{self, RawGuard, import, info},
};
use nix::errno::Errno;
use std::{thread::sleep, time::Duration};

pub(super) fn read_only(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let buffer = match heap::read_only(&subject.heap, 1 << 16) {
        Err(contigo::Error::Os { errno: nix::libc::EACCES, .. }) => {
            return Err(Wrong::Skipped("this user may not open the heap".into()));
        }
        made => ok(made)?,
    };
    refused("a buffer for reading, imported for writing", guard.import(&buffer, 0), Errno::EACCES)?;
    ensure(sys("GET_INFO", guard.info())?.buffers == 0, "the import was refused, and kept")?;
    let mapped = sys("imported for reading", guard.import(&buffer, import::READ_ONLY))?;
    let flags = sys("GET_INFO", guard.info())?.flags;
    let kept =
        if subject.is_edu() && flags & info::IOMMU != 0 { unwritten(subject, &guard)? } else { "" };
    sys("RELEASE", guard.release(mapped.handle))?;
    refused("an unknown flag", guard.import(&buffer, 1 << 31 | import::READ_ONLY), Errno::EINVAL)?;
    Ok(format!(
        "EACCES for writing; {} bytes at {:#x} for reading{kept}",
        mapped.len_bytes, mapped.addr
    ))
}

/// A buffer that this program may write and the device may not: what the device writes arrives
/// only when it is imported for writing.
fn unwritten(subject: &Subject, guard: &RawGuard) -> Result<&'static str, Wrong> {
    const MARK: u8 = 0x3D;
    let block = ok(heap::block(&subject.heap, 1 << 16))?;
    let bytes = file("mmap of the block", raw::mapped(&block, 1 << 16))?;
    let registers = sys("mmap", guard.map())?;
    sys("ARM", guard.arm(&edu::STOP))?;
    for (flags, arrives) in [(import::READ_ONLY, false), (0, true)] {
        #[allow(unsafe_code, reason = "memory that a device may write")]
        // SAFETY: bytes of the mapping, which no reference is made of.
        (0..edu::LEN as usize).for_each(|at| unsafe { bytes.start().add(at).write_volatile(MARK) });
        let place = sys("IMPORT", guard.import(&block, flags))?;
        edu::begin(&registers, place.addr);
        sleep(Duration::from_millis(250));
        sys("RELEASE", guard.release(place.handle))?;
        #[allow(unsafe_code, reason = "memory that a device may write")]
        // SAFETY: as above.
        let is_whole = (0..edu::LEN as usize)
            .all(|at| unsafe { bytes.start().add(at).read_volatile() } == MARK);
        ensure(
            is_whole != arrives,
            format!(
                "flags {flags}: what the device wrote {}",
                if arrives { "is lost" } else { "has arrived" }
            ),
        )?;
    }
    Ok(", and the IOMMU keeps the device to it")
}

//! Memory of the device's own: allocated, mapped, written by the device, exported, and there as
//! long as anybody sees it.

use super::{
    super::{Verdict, ensure},
    edu,
    subject::{Subject, file, refused, soon, sys},
};
use crate::raw::{self, ALLOC_COHERENT, Pages, RawGuard, SYNC_FOR_CPU, info};
use nix::{
    errno::Errno,
    sys::mman::{MapFlags, ProtFlags},
};
use std::{path::Path, thread::sleep, time::Duration};

const LEN_BYTES: usize = 256 << 10;
const MARK: u8 = 0x5A;

pub(super) fn own(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let len_bytes = LEN_BYTES as u64;
    refused("no bytes", guard.alloc(0, 0), Errno::EINVAL)?;
    refused("no whole page", guard.alloc(4097, 0), Errno::EINVAL)?;
    refused("an unknown flag", guard.alloc(4096, 1 << 31), Errno::EINVAL)?;
    refused("more than the machine has", guard.alloc(1 << 31, 0), Errno::EDQUOT)?;
    refused("export of nothing", guard.export(7), Errno::ENOENT)?;
    ensure(sys("GET_INFO", guard.info())?.buffers == 0, "an allocation was refused, and kept")?;

    let memory = sys("ALLOC", guard.alloc(len_bytes, 0))?;
    let pages = map(&guard, memory.mmap_offset, LEN_BYTES)?;
    ensure((0..LEN_BYTES).all(|at| pages.read(at) == 0), "it is not zero")?;
    refused(
        "a page too many",
        guard.map_at(
            memory.mmap_offset,
            len_bytes + 4096,
            ProtFlags::PROT_READ,
            MapFlags::MAP_SHARED,
        ),
        Errno::EINVAL,
    )?;
    refused(
        "a private mapping",
        guard.map_at(memory.mmap_offset, 4096, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE),
        Errno::EINVAL,
    )?;
    let last = map(&guard, memory.mmap_offset + len_bytes - 4096, 4096)?;
    pages.write(LEN_BYTES - 1, MARK);
    ensure(last.read(4095) == MARK, "its last page is another one")?;
    let mut seen = format!("{LEN_BYTES} bytes at {:#x}", memory.addr);
    if subject.is_edu() {
        seen.push_str(written_by_edu(&guard, memory.handle, memory.addr, &pages)?);
    }

    // As a dma-buf: the same bytes, also without its device. Its own device has it already. Behind
    // an IOMMU the device's next user would reach it.
    let shared = if sys("GET_INFO", guard.info())?.flags & info::IOMMU == 0 {
        let exported = sys("EXPORT", guard.export(memory.handle))?;
        refused("import of its own memory", guard.import(&exported, 0), Errno::EINVAL)?;
        seen.push_str("; a dma-buf");
        Some(file("mmap of the dma-buf", raw::mapped(&exported, LEN_BYTES))?)
    } else {
        refused("export behind an IOMMU", guard.export(memory.handle), Errno::EOPNOTSUPP)?;
        None
    };
    let rings = sys("ALLOC of coherent memory", guard.alloc(4096, ALLOC_COHERENT))?;
    let ring = map(&guard, rings.mmap_offset, 4096)?;
    ring.write(0, MARK);
    sys("SYNC of coherent memory", guard.sync(rings.handle, SYNC_FOR_CPU, 0, 4096))?;
    ensure(ring.read(0) == MARK, "a sync of coherent memory has changed it")?;
    refused("export of coherent memory", guard.export(rings.handle), Errno::EOPNOTSUPP)?;

    let plain = sys("ALLOC", guard.alloc(8192, 0))?;
    let private = map(&guard, plain.mmap_offset, 8192)?;
    private.write(8191, MARK);

    // It stays while it is mapped: behind its handle, its file, and its device's driver. What has
    // no dma-buf is a copy from then on.
    sys("RELEASE", guard.release(memory.handle))?;
    refused(
        "mmap of what was released",
        guard.map_at(memory.mmap_offset, 4096, ProtFlags::PROT_READ, MapFlags::MAP_SHARED),
        Errno::EINVAL,
    )?;
    let unbound = subject.unbind()?;
    refused("ALLOC", guard.alloc(4096, 0), Errno::ENODEV)?;
    let same = pages.read(LEN_BYTES - 1) == MARK
        && ring.read(0) == MARK
        && private.read(8191) == MARK
        && private.read(0) == 0;
    ensure(same, "its device is gone, and it has changed")?;
    private.write(0, MARK);
    ensure(private.read(0) == MARK, "its device is gone, and it cannot be written")?;
    pages.write(0, MARK);
    #[allow(unsafe_code, reason = "memory that a device may write")]
    // SAFETY: a byte of the mapping, which no reference is made of.
    let first = shared.as_ref().map(|shared| unsafe { shared.start().read_volatile() });
    ensure(first.is_none_or(|first| first == MARK), "the dma-buf has other bytes")?;
    unbound.bind()?;
    ensure(
        soon(|| Path::new("/dev/contigo").join(&subject.guard).exists()),
        "it did not come back",
    )?;
    drop((pages, last, ring, private, shared, guard));
    let next = subject.open()?;
    let again = sys("ALLOC of the next user", next.alloc(len_bytes, 0))?;
    let pages = map(&next, again.mmap_offset, LEN_BYTES)?;
    ensure((0..LEN_BYTES).all(|at| pages.read(at) == 0), "the next user sees another one's bytes")?;
    seen.push_str("; there while it is mapped");
    Ok(seen)
}

pub(super) fn map(
    guard: &RawGuard,
    offset: u64,
    len_bytes: usize,
) -> Result<Pages, super::super::Wrong> {
    sys(
        "mmap",
        guard.map_at(
            offset,
            len_bytes as u64,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_SHARED,
        ),
    )
}

fn written_by_edu(
    guard: &RawGuard,
    handle: u32,
    addr: u64,
    pages: &Pages,
) -> Result<&'static str, super::super::Wrong> {
    let registers = sys("mmap", guard.map())?;
    (0..edu::LEN as usize).for_each(|at| pages.write(at, MARK));
    sys("SYNC", guard.sync(handle, 2, 0, u64::from(edu::LEN)))?;
    sys("ARM", guard.arm(&edu::STOP))?;
    edu::begin(&registers, addr);
    sleep(Duration::from_millis(250));
    sys("SYNC", guard.sync(handle, SYNC_FOR_CPU, 0, u64::from(edu::LEN)))?;
    let arrived = (0..edu::LEN as usize).any(|at| pages.read(at) != MARK);
    ensure(arrived, "what the device wrote did not arrive")?;
    Ok(", and the device has written it")
}

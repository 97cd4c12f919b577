//! Buffers of a contigo: memory of the device's own, dma-bufs for reading alone, and the fences of
//! dma-bufs that another device writes.
#![allow(unsafe_code, reason = "a timer that interrupts a wait")]

use super::left::edu;
use super::subject::Subject;
use crate::lab::{Exporter, property};
use crate::pages::{self, Map};
use crate::raw::{ALLOC_COHERENT, RawDevNode, SYNC_FOR_CPU, SYNC_FOR_DEVICE, import, info};
use crate::verdict::{Verdict, Wrong, ensure, must, refused, same, skip};
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const LEN_BYTES: usize = 256 << 10;
const MARK: u8 = 0x5A;

pub(crate) fn own(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let len_bytes = LEN_BYTES as u64;
    let map = |offset, len_bytes, kind| {
        dev_node.map_at(offset, len_bytes, ProtFlags::PROT_READ, kind).map(drop)
    };
    refused("no bytes", dev_node.alloc(0, 0), Errno::EINVAL)?;
    refused("no whole page", dev_node.alloc(4097, 0), Errno::EINVAL)?;
    refused("an unknown flag", dev_node.alloc(4096, 1 << 31), Errno::EINVAL)?;
    refused("more than the machine has", dev_node.alloc(1 << 31, 0), Errno::EDQUOT)?;
    refused("export of nothing", dev_node.export(7), Errno::ENOENT)?;
    same("buffers kept by refusals", must("GET_INFO", dev_node.info())?.buffers, 0)?;

    let memory = must("ALLOC", dev_node.alloc(len_bytes, 0))?;
    let at = memory.mmap_offset;
    let pages = must("mmap", dev_node.map_memory(at, len_bytes))?;
    ensure(pages.is_filled(LEN_BYTES, 0), "it is not zero")?;
    refused("a page too many", map(at, len_bytes + 4096, MapFlags::MAP_SHARED), Errno::EINVAL)?;
    refused("a private mapping", map(at, 4096, MapFlags::MAP_PRIVATE), Errno::EINVAL)?;
    let last = must("mmap", dev_node.map_memory(at + len_bytes - 4096, 4096))?;
    pages.write(LEN_BYTES - 1, MARK);
    ensure(last.read(4095) == MARK, "its last page is another one")?;
    let mut seen = format!("{LEN_BYTES} bytes at {:#x}", memory.addr);
    if subject.is_edu() {
        seen.push_str(written_by_edu(&dev_node, memory.handle, memory.addr, &pages)?);
    }

    // As a dma-buf: the same bytes, also without its device. Its own device has it already. Behind
    // an IOMMU the device's next user would reach it.
    let shared = if must("GET_INFO", dev_node.info())?.flags & info::IOMMU == 0 {
        let exported = must("EXPORT", dev_node.export(memory.handle))?;
        refused("import of its own memory", dev_node.import(&exported, 0), Errno::EINVAL)?;
        seen.push_str("; a dma-buf");
        Some(must("mmap of the dma-buf", Map::shared(&exported, LEN_BYTES))?)
    } else {
        refused("export behind an IOMMU", dev_node.export(memory.handle), Errno::EOPNOTSUPP)?;
        None
    };
    let rings = must("ALLOC of coherent memory", dev_node.alloc(4096, ALLOC_COHERENT))?;
    let ring = must("mmap", dev_node.map_memory(rings.mmap_offset, 4096))?;
    ring.write(0, MARK);
    must("SYNC of coherent memory", dev_node.sync(rings.handle, SYNC_FOR_CPU, 0, 4096))?;
    ensure(ring.read(0) == MARK, "a sync of coherent memory has changed it")?;
    refused("export of coherent memory", dev_node.export(rings.handle), Errno::EOPNOTSUPP)?;

    let plain = must("ALLOC", dev_node.alloc(8192, 0))?;
    let private = must("mmap", dev_node.map_memory(plain.mmap_offset, 8192))?;
    private.write(8191, MARK);

    // It stays while it is mapped: behind its handle, its file, and its device's driver. What has
    // no dma-buf is a copy from then on.
    must("RELEASE", dev_node.release(memory.handle))?;
    refused("mmap of what was released", map(at, 4096, MapFlags::MAP_SHARED), Errno::EINVAL)?;
    let unbound = subject.unbind()?;
    refused("ALLOC", dev_node.alloc(4096, 0), Errno::ENODEV)?;
    let bytes = [pages.read(LEN_BYTES - 1), ring.read(0), private.read(8191), private.read(0)];
    same("bytes after the device's end", bytes, [MARK, MARK, MARK, 0])?;
    private.write(0, MARK);
    ensure(private.read(0) == MARK, "its device is gone, and it cannot be written")?;
    pages.write(0, MARK);
    let is_shared = shared.as_ref().is_none_or(|shared| shared.read(0) == MARK);
    ensure(is_shared, "the dma-buf has other bytes")?;
    unbound.bind()?;
    drop((pages, last, ring, private, shared, dev_node));
    let next = subject.open()?;
    let again = must("ALLOC of the next user", next.alloc(len_bytes, 0))?;
    let pages = must("mmap", next.map_memory(again.mmap_offset, len_bytes))?;
    ensure(pages.is_filled(LEN_BYTES, 0), "the next user sees another one's bytes")?;
    seen.push_str("; there while it is mapped");
    Ok(seen)
}

fn written_by_edu(
    dev_node: &RawDevNode,
    handle: u32,
    addr: u64,
    pages: &Map,
) -> Result<&'static str, Wrong> {
    let registers = must("mmap", dev_node.map())?;
    pages.fill(edu::LEN as usize, MARK);
    must("SYNC", dev_node.sync(handle, SYNC_FOR_DEVICE, 0, u64::from(edu::LEN)))?;
    must("ARM", dev_node.arm(&edu::STOP))?;
    edu::begin(&registers, addr);
    sleep(Duration::from_millis(250));
    must("SYNC", dev_node.sync(handle, SYNC_FOR_CPU, 0, u64::from(edu::LEN)))?;
    ensure(!pages.is_filled(edu::LEN as usize, MARK), "what the device wrote did not arrive")?;
    Ok(", and the device has written it")
}

pub(crate) fn read_only(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    let buffer = match pages::block_for(&subject.heap, 1 << 16, libc::O_RDONLY) {
        Err(contigo::Error::Os { errno: libc::EACCES, .. }) => {
            return skip("this user may not open the heap");
        }
        made => made?,
    };
    refused("a read-only buffer, to be written", dev_node.import(&buffer, 0), Errno::EACCES)?;
    same("buffers kept by a refusal", must("GET_INFO", dev_node.info())?.buffers, 0)?;
    let mapped = must("imported for reading", dev_node.import(&buffer, import::READ_ONLY))?;
    let flags = must("GET_INFO", dev_node.info())?.flags;
    let has_iommu = subject.is_edu() && flags & info::IOMMU != 0;
    let kept = if has_iommu { unwritten(subject, &dev_node)? } else { "" };
    must("RELEASE", dev_node.release(mapped.handle))?;
    let unknown = 1 << 31 | import::READ_ONLY;
    refused("an unknown flag", dev_node.import(&buffer, unknown), Errno::EINVAL)?;
    let (len_bytes, addr) = (mapped.len_bytes, mapped.addr);
    Ok(format!("EACCES for writing; {len_bytes} bytes at {addr:#x} for reading{kept}"))
}

/// A buffer that this program may write and the device may not: what the device writes arrives
/// only when it is imported for writing.
fn unwritten(subject: &Subject, dev_node: &RawDevNode) -> Result<&'static str, Wrong> {
    let block = pages::block(&subject.heap, 1 << 16)?;
    let bytes = must("mmap of the block", Map::shared(&block, 1 << 16))?;
    let registers = must("mmap", dev_node.map())?;
    must("ARM", dev_node.arm(&edu::STOP))?;
    for (flags, arrives) in [(import::READ_ONLY, false), (0, true)] {
        bytes.fill(edu::LEN as usize, MARK);
        let place = must("IMPORT", dev_node.import(&block, flags))?;
        edu::begin(&registers, place.addr);
        sleep(Duration::from_millis(250));
        must("RELEASE", dev_node.release(place.handle))?;
        let arrived = !bytes.is_filled(edu::LEN as usize, MARK);
        same(&format!("flags {flags}: the device's bytes arrived"), arrived, arrives)?;
    }
    Ok(", and the IOMMU keeps the device to it")
}

const WORK: Duration = Duration::from_millis(150);

pub(crate) fn fences(subject: &Subject) -> Verdict {
    let exporter = Exporter::open()?;
    let buffer = |properties| must("LAB_EXPORT", exporter.buffer(4, properties));
    let dev_node = subject.open()?;

    let written = buffer(property::WRITER)?;
    let import = must("IMPORT under a writer", dev_node.import(&written, 0))?;
    refused("imported twice", dev_node.import(&written, 0), Errno::EBUSY)?;
    let seen = if must("GET_INFO", dev_node.info())?.flags & info::COHERENT != 0 {
        "a device that snoops needs no sync".to_owned()
    } else {
        let sync = || dev_node.sync(import.handle, SYNC_FOR_CPU, 0, import.len_bytes);
        interrupt_me_after(Duration::from_millis(50))?;
        refused("a wait that a signal ends", sync(), Errno::EINTR)?;
        let waited = while_at_work(&exporter, sync)?;
        format!("a sync waited {waited:?} for a writer, and EINTR")
    };
    must("RELEASE", dev_node.release(import.handle))?;

    let short = buffer(property::SHORT)?;
    refused("a list that is too short", dev_node.import(&short, 0), Errno::ERANGE)?;
    same("buffers", must("GET_INFO", dev_node.info())?.buffers, 0)?;
    Ok(format!("{seen}; ERANGE for a list that is too short"))
}

/// Syncs while something is at work for a while, which it must have waited for.
fn while_at_work(
    exporter: &Exporter,
    sync: impl FnOnce() -> Result<(), Errno>,
) -> Result<Duration, Wrong> {
    let begun = Instant::now();
    let (done, ended, over) = scope(|scope| {
        let work = scope.spawn(|| {
            sleep(WORK);
            let over = Instant::now();
            exporter.signal();
            over
        });
        // On a busy machine the sync may begin late, and so be shorter than the work.
        (sync(), Instant::now(), work.join())
    });
    must("SYNC", done)?;
    let over = over.map_err(|_| Wrong::Failed("the work on the buffer panicked".to_owned()))?;
    ensure(ended >= over, format!("synchronised {:?} before the work's end", over - ended))?;
    Ok(begun.elapsed())
}

/// One SIGALRM for this process, whose handler does nothing. Without SA_RESTART it ends a wait.
fn interrupt_me_after(time: Duration) -> Result<(), Wrong> {
    extern "C" fn nothing(_: libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    let once = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: 0, tv_usec: time.subsec_micros() as _ },
    };
    // SAFETY: the handler does nothing; the timer's struct lives until the call returns.
    let armed = unsafe {
        must("sigaction", sigaction(Signal::SIGALRM, &action))?;
        libc::setitimer(libc::ITIMER_REAL, &raw const once, std::ptr::null_mut())
    };
    must("setitimer", Errno::result(armed)).map(drop)
}

#![allow(unsafe_code, reason = "a heap borrows its board or its kernel port, and is borrowed by its buffers, for as long as leases say")]
//! A heap: one region of DMA memory, and what it stands on.

use super::{BoundMaster, KERNEL_PORTS, SIMS, device::Held, gpu};
use crate::{
    fault::Fault,
    handle::Kind,
    limits,
    table::{Lease, Object, Table},
};
use contigo::{
    Align, Carve, DmaHeap, Error, Region, Requirements, UDmaBuf,
    names::{AnyMemory, MemoryName},
    sim::SimBoard,
};
use core::ffi::c_int;
use std::{
    io,
    os::fd::{AsFd, IntoRawFd},
};

/// Heaps.
pub(crate) static HEAPS: Table<Heap, { limits::HEAPS }> = Table::new();

impl Object for Heap {
    const KIND: Kind = Kind::Heap;
}

/// One region, and what it borrows from. The fields are dropped in this order.
pub(crate) struct Heap {
    region: Region<AnyMemory<'static>>,
    /// INVARIANT: `region` borrows from it.
    _ground: Ground,
}

/// What a heap's memory belongs to.
enum Ground {
    Nothing,
    Sim(#[allow(dead_code, reason = "it keeps the board")] Lease<SimBoard>),
    KernelPort(#[allow(dead_code, reason = "it keeps the port")] Lease<BoundMaster>),
    Device(#[allow(dead_code, reason = "it keeps the device")] Held),
}

/// Which memory.
pub(crate) enum Source {
    /// By its name; of an opened device, where there is one.
    Named { name: MemoryName, device: Option<u64>, len_bytes: usize },
    /// The u-dma-buf of that name behind a translation, by the word of `contigo_heap_open`'s
    /// caller.
    Translated { name: MemoryName },
    /// A block of a simulated board.
    Sim { sim: u64, len_bytes: usize },
    /// `/dev/dma_heap/<name>`, for a kernel port.
    DmaHeap { name: MemoryName, len_bytes: usize, kernel_port: u64 },
    /// Memory that CUDA pins for a GPU.
    Cuda { ordinal: u32, len_bytes: usize, write_combined: bool },
}

impl Heap {
    /// Opens memory, checks it, and makes it a heap.
    pub(crate) fn open(source: &Source, needs: Requirements) -> Result<u64, Fault> {
        // First: a full table opens no device.
        let mut claimed = HEAPS.claim()?;
        let (memory, ground): (AnyMemory<'static>, _) = match *source {
            Source::Named { name, device, len_bytes } => {
                let refused = |error| Fault::Memory { name, error };
                // What it belongs to is in a table of its own: the heap's lease is the last once
                // the program has closed it. What it belongs to is opened for this heap alone,
                // where the program has not opened it.
                let held = match (device, name.device()) {
                    (Some(device), _) => Some(Held::of(device)?),
                    (None, Some(owner)) => Some(Held::open(owner)?),
                    (None, None) => None,
                };
                match held {
                    Some(held) => {
                        // SAFETY: the block is in the same `Heap` as what holds the device, before
                        // it, and so dropped before it.
                        let block = unsafe { held.for_ever() }.memory(&name, len_bytes).map_err(refused)?;
                        (block, Ground::Device(held))
                    }
                    None => (name.open(len_bytes).map_err(refused)?, Ground::Nothing),
                }
            }
            // SAFETY: the promise of `contigo_heap_open`'s caller.
            Source::Translated { name } => (unsafe { UDmaBuf::open_translated(name.argument())? }.into(), Ground::Nothing),
            Source::Sim { sim, len_bytes } => {
                let board = SIMS.lease(sim)?;
                // SAFETY: as above.
                let block = unsafe { board.for_ever() }.memory(len_bytes)?;
                (block.into(), Ground::Sim(board))
            }
            Source::DmaHeap { name, len_bytes, kernel_port } => {
                let port = KERNEL_PORTS.lease(kernel_port)?;
                // SAFETY: as above.
                let block = DmaHeap::allocate_for(unsafe { port.for_ever() }, name.argument(), len_bytes)?;
                (block.into(), Ground::KernelPort(port))
            }
            Source::Cuda { ordinal, len_bytes, write_combined } => {
                (gpu::pinned(ordinal, len_bytes, needs.align.max(Align::PAGE), write_combined)?, Ground::Nothing)
            }
        };
        let region = Region::with(memory, needs)?;
        claimed.guard.put(Self { region, _ground: ground });
        Ok(claimed.raw())
    }

    pub(crate) const fn region(&self) -> &Region<AnyMemory<'static>> {
        &self.region
    }

    /// A descriptor of a dma-buf that holds the whole block. It is the caller's, who closes it.
    ///
    /// # Safety
    /// As `Region::export`.
    pub(crate) unsafe fn export(&self) -> Result<c_int, Fault> {
        // SAFETY: the caller's promise.
        let exported = unsafe { self.region.export()? };
        // The runtime's own is closed when this ends.
        let owned = exported.as_fd().try_clone_to_owned();
        let os = |error: io::Error| Error::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno: error.raw_os_error().unwrap_or(0) };
        Ok(owned.map_err(os)?.into_raw_fd())
    }

    /// Gives the memory back. Refused while anything of it is out.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        HEAPS.lock(raw)?.clear();
        Ok(())
    }
}

/// A piece of a heap.
///
/// # Safety
/// The piece, and everything made of it, is gone or forgotten for ever before `heap` is dropped.
pub(crate) unsafe fn carve(heap: &Lease<Heap>, len_bytes: usize, align: Align) -> Result<Carve<'static>, Fault> {
    // SAFETY: the caller's promise.
    Ok(unsafe { heap.for_ever() }.region.carve(len_bytes, align)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::*;
    use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
    use std::{fs, os::unix::fs::FileExt};

    /// A heap on a u-dma-buf that is a file.
    fn heap(fake: &FakeUDmaBuf) -> contigo_heap {
        let region = Region::new(fake.open().unwrap().into()).unwrap();
        HEAPS.insert(Heap { region, _ground: Ground::Nothing }).unwrap()
    }

    fn export(heap: contigo_heap) -> (contigo_status, c_int) {
        let mut fd = 7;
        // SAFETY: the pointer is a reference; nobody imports the block.
        (unsafe { contigo_heap_export(heap, &raw mut fd) }, fd)
    }

    #[test]
    fn an_exported_heap_is_the_same_memory_and_the_programs_file() {
        let fake = FakeUDmaBuf::new(Config::default());
        let heap = heap(&fake);
        let (status, fd) = export(heap);
        assert_eq!((status, fd > 2), (CONTIGO_OK, true), "{fd}");
        let flags = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:").map(str::trim)).unwrap();
        assert_ne!(u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000, 0, "O_CLOEXEC: no program that is started gets it");

        let mut buf = 0;
        let word = [0x3C_u8; 64];
        // SAFETY: the pointers are references, and so many bytes are there.
        let wrote = unsafe { [contigo_carve(heap, 64, 0, &raw mut buf), contigo_buf_write(buf, word.as_ptr().cast(), 64)] };
        assert_eq!((wrote, contigo_buf_release(buf)), ([CONTIGO_OK; 2], CONTIGO_OK));
        assert_eq!(contigo_heap_close(heap), CONTIGO_OK);
        // SAFETY: it was given to this test, which closes it by dropping the file.
        let file = unsafe { <fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd) };
        let mut bytes = [0; 64];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, word, "the pages live as long as the descriptor");
        assert_eq!(export(heap), (CONTIGO_E_STALE, -1));
    }

    #[test]
    fn what_the_kernel_does_not_give_back_stays_a_devices() {
        // Two syncs when the region is made, and one for the device; then the device is gone.
        let fake = FakeUDmaBuf::new(Config { vanish_after: 3, ..Config::default() });
        let (heap, mut port, mut buf) = (heap(&fake), 0, 0);
        // SAFETY: the pointers are references, and the name is a text.
        let made = unsafe { [contigo_carve(heap, 64, 0, &raw mut buf), contigo_port_find(c"zynq-hp0".as_ptr(), &raw mut port)] };
        assert_eq!(made, [CONTIGO_OK; 2]);
        let (mut addr, mut again, mut len_bytes) = (0, 0, 0);
        // SAFETY: as above; no device is told the address.
        let given = unsafe { contigo_buf_to_device(buf, port, 0, 64, CONTIGO_FROM_DEVICE, &raw mut addr) };
        assert_eq!((given, contigo_buf_to_cpu(buf)), (CONTIGO_OK, CONTIGO_E_OS));
        // SAFETY: as above.
        let told = unsafe { contigo_buf_dev_addr(buf, &raw mut again, &raw mut len_bytes) };
        assert_eq!((told, again, len_bytes), (CONTIGO_OK, addr, 64));
        assert_eq!((contigo_port_close(port), contigo_heap_close(heap)), (CONTIGO_OK, CONTIGO_E_STILL_USED));
    }

    #[test]
    fn what_the_kernel_says_is_passed_on() {
        let fake = FakeUDmaBuf::new(Config { ioctls: false, class: "udmabuf", ..Config::default() });
        let heap = heap(&fake);
        assert_eq!(export(heap), (CONTIGO_E_OS, -1));
        let text = crate::last_error::with_text(|text| String::from_utf8_lossy(text).into_owned());
        assert!(text.is_some_and(|text| text.contains("U_DMA_BUF_IOCTL_EXPORT") && text.contains("errno 25")));
        assert_eq!(contigo_heap_close(heap), CONTIGO_OK);
    }
}

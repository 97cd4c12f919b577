#![allow(unsafe_code, reason = "a heap borrows its board or its kernel port, and is borrowed by its buffers, for as long as leases say")]
//! A heap: one region of DMA memory, and what it stands on.

use super::{KERNEL_PORTS, SIMS, memory::Memory};
use crate::{
    fault::Fault,
    handle::Kind,
    limits,
    table::{Lease, Object, Table},
};
use contigo::{Align, Carve, DmaHeap, HugeTlb, KernelPort, Region, Requirements, UDmaBuf, sim::SimBoard};

/// Heaps.
pub(crate) static HEAPS: Table<Heap, { limits::HEAPS }> = Table::new();

impl Object for Heap {
    const KIND: Kind = Kind::Heap;
}

/// One region, and what it borrows from. The fields are dropped in this order.
pub(crate) struct Heap {
    region: Region<Memory>,
    /// INVARIANT: `region` borrows from it.
    _ground: Ground,
}

/// What a heap's memory belongs to.
enum Ground {
    Nothing,
    Sim(#[allow(dead_code, reason = "it keeps the board")] Lease<SimBoard>),
    KernelPort(#[allow(dead_code, reason = "it keeps the port")] Lease<KernelPort>),
}

/// Which memory.
pub(crate) enum Source<'a> {
    /// A block of a simulated board.
    Sim { sim: u64, len_bytes: usize },
    /// `/dev/<name>`, whose address is physical or, translated, the accelerator's own.
    UDmaBuf { name: &'a str, translated: bool },
    /// `/dev/dma_heap/<name>`, by pagemap or for a kernel port.
    DmaHeap { name: &'a str, len_bytes: usize, kernel_port: Option<u64> },
    /// Huge pages.
    HugePages { len_bytes: usize },
}

impl Heap {
    /// Opens memory, checks it, and makes it a heap.
    pub(crate) fn open(source: &Source<'_>, needs: Requirements) -> Result<u64, Fault> {
        // First: a full table opens no device.
        let mut claimed = HEAPS.claim()?;
        let (memory, ground) = match *source {
            Source::Sim { sim, len_bytes } => {
                let board = SIMS.lease(sim)?;
                // SAFETY: the block is in the same `Heap` as the lease, before it, and so dropped before it.
                let block = unsafe { board.for_ever() }.memory(len_bytes)?;
                (Memory::Sim(block), Ground::Sim(board))
            }
            Source::UDmaBuf { name, translated: false } => (Memory::UDmaBuf(UDmaBuf::open(name)?), Ground::Nothing),
            Source::UDmaBuf { name, translated: true } => (Memory::UDmaBuf(UDmaBuf::open_translated(name)?), Ground::Nothing),
            Source::DmaHeap { name, len_bytes, kernel_port: None } => {
                (Memory::DmaHeap(DmaHeap::allocate(name, len_bytes)?), Ground::Nothing)
            }
            Source::DmaHeap { name, len_bytes, kernel_port: Some(kernel_port) } => {
                let port = KERNEL_PORTS.lease(kernel_port)?;
                // SAFETY: as for the board's block.
                let block = DmaHeap::allocate_for(unsafe { port.for_ever() }, name, len_bytes)?;
                (Memory::DmaHeapFor(block), Ground::KernelPort(port))
            }
            Source::HugePages { len_bytes } => (Memory::HugePages(HugeTlb::new(len_bytes)?), Ground::Nothing),
        };
        let region = Region::with(memory, needs)?;
        claimed.guard.put(Self { region, _ground: ground });
        Ok(claimed.raw())
    }

    pub(crate) const fn region(&self) -> &Region<Memory> {
        &self.region
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

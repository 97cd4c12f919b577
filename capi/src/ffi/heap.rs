#![allow(unsafe_code, reason = "functions that C calls")]
//! Heaps: blocks of DMA memory.

use super::{
    device::contigo_device,
    port::{contigo_kernel_port, contigo_port, flag},
    raw::{self, Versioned},
    sim::contigo_sim,
};
use crate::{
    fault::{Fault, Misuse},
    last_error::call,
    limits,
    object::{
        heap::{HEAPS, Heap, Source},
        port::get,
    },
    status::contigo_status,
};
use contigo::{Align, DevAddr, Requirements, names::MemoryName};
use core::{
    ffi::{c_char, c_int, c_void},
    mem, ptr,
};

/// A heap: one block of DMA memory, contiguous on the bus, aligned, and checked. Carve it once,
/// when the program begins.
pub type contigo_heap = u64;

/// A block of a simulated board: `sim`, `len_bytes`.
pub const CONTIGO_HEAP_SIM: u32 = 1;
/// A u-dma-buf: `name` is that in `/dev`, whose addresses are physical ones. Its size is in the
/// device tree.
pub const CONTIGO_HEAP_U_DMA_BUF: u32 = 2;
/// A u-dma-buf of a node behind `dma-ranges` or an IOMMU: its address is the accelerator's own.
/// `contigo_heap_open` says what the caller promises.
pub const CONTIGO_HEAP_U_DMA_BUF_TRANSLATED: u32 = 3;
/// A block of a dma-heap: `name` is that in `/dev/dma_heap`, `len_bytes`. With `kernel_port` its
/// address and its caches are the kernel's business; without, the kernel is older than 6.9 and the
/// program has `CAP_SYS_ADMIN`.
pub const CONTIGO_HEAP_DMA_HEAP: u32 = 4;
/// Huge pages of 2 MiB: `len_bytes`. Needs reserved pages and `CAP_SYS_ADMIN`.
pub const CONTIGO_HEAP_HUGE_PAGES: u32 = 5;
/// Memory of the CPU's that CUDA pins and maps for a GPU: `gpu`, `len_bytes`, `write_combined`.
/// Zeroed; both views begin at a multiple of 4096 bytes, or of `align_bytes` where that is more.
/// CPU and GPU share it with no copy and no cache maintenance. Its port is `contigo_port_find("
/// cuda:0")`.
pub const CONTIGO_HEAP_CUDA: u32 = 6;

/// Memory by its name, as `contigo_region_open` has it: `name`, `len_bytes`, and `device` where it
/// is for an opened device.
pub const CONTIGO_HEAP_NAMED: u32 = 7;

/// Which memory, and what it must be. What is 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_heap_options {
    /// `sizeof(contigo_heap_options)`.
    pub struct_size: usize,
    /// `CONTIGO_HEAP_...`.
    pub kind: u32,
    /// The block's last byte must be reachable with so many address bits; 0: 64.
    pub addr_bits: u32,
    /// The block's size in bytes, where it is made here; otherwise how large it must be at least.
    pub len_bytes: usize,
    /// What the block's address must be a multiple of, a power of two; 0: 64.
    pub align_bytes: usize,
    /// The device's or the heap's name. It is not kept.
    pub name: *const c_char,
    /// The simulated board.
    pub sim: contigo_sim,
    /// For whom a dma-heap's block is; 0: for nobody.
    pub kernel_port: contigo_kernel_port,
    /// For `CONTIGO_HEAP_CUDA`: which GPU, as CUDA counts them (`CUDA_VISIBLE_DEVICES`).
    pub gpu: u32,
    /// For `CONTIGO_HEAP_CUDA`: 1, write-combined, for what the CPU only writes, front to back. A
    /// card reads it faster; the CPU reads it very slowly.
    pub write_combined: u32,
    /// For `CONTIGO_HEAP_NAMED`: the device whose memory it is; 0: the memory is opened alone.
    pub device: contigo_device,
}

// SAFETY: integers and a pointer, `struct_size` first.
unsafe impl Versioned for contigo_heap_options {
    const NAME: &'static str = "contigo_heap_options";
    const LEAST: usize = mem::offset_of!(Self, kernel_port);
}

/// What a heap is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_heap_info {
    /// `sizeof(contigo_heap_info)`.
    pub struct_size: usize,
    /// The block's size in bytes.
    pub len_bytes: usize,
    /// How many bytes can still be carved, before alignment.
    pub free_bytes: usize,
    /// The cache line: what a pool's slots must be multiples of.
    pub line_bytes: usize,
    /// Where the block lies, as the memory knows it; a port may add its offset.
    pub base: u64,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_heap_info {
    const NAME: &'static str = "contigo_heap_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// What a heap has done since it was opened.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_heap_stats {
    /// `sizeof(contigo_heap_stats)`.
    pub struct_size: usize,
    /// Cache maintenance calls.
    pub syncs: u64,
    /// Bytes made visible to devices, rounded out to whole lines where devices write.
    pub bytes_synced_for_device: u64,
    /// Bytes taken back for the CPU.
    pub bytes_synced_for_cpu: u64,
    /// Bytes that `contigo_buf_write` copied: the only copy in this library.
    pub bytes_copied: u64,
    /// Pieces carved.
    pub carves: u64,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_heap_stats {
    const NAME: &'static str = "contigo_heap_stats";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Opens memory: maps it, checks that it is contiguous, aligned and low enough, and cleans its
/// caches once. Close it with `contigo_heap_close`.
///
/// For `CONTIGO_HEAP_CUDA` as `contigo_port_find` says; and `CONTIGO_E_CUDA` with
/// `CUDA_ERROR_OUT_OF_MEMORY` where no more can be pinned.
///
/// # Safety
/// `options` points to an initialised structure whose name is NULL or NUL-terminated; `heap` is
/// writable. With `CONTIGO_HEAP_U_DMA_BUF_TRANSLATED`: every device that is given the heap's
/// addresses is behind the same `iommus` or `dma-ranges` as the node; to another one they are
/// physical addresses, of memory that is somebody else's. Of a write-combined heap: a thread that
/// has written to a buffer calls `atomic_thread_fence(memory_order_seq_cst)` before another thread
/// of the CPU gets it; jobs and hand-overs need nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_heap_open(options: *const contigo_heap_options, heap: *mut contigo_heap) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(heap, "heap", || {
            let options = raw::read(options)?;
            let contigo_heap_options { kind, addr_bits, len_bytes, align_bytes, name, sim, kernel_port, .. } = options;
            let name = || raw::text(name, "contigo_heap_options.name");
            let source = match kind {
                CONTIGO_HEAP_SIM => Source::Sim { sim, len_bytes },
                CONTIGO_HEAP_U_DMA_BUF => named("u-dma-buf:", name()?, None, len_bytes)?,
                CONTIGO_HEAP_U_DMA_BUF_TRANSLATED => Source::Translated { name: whole("u-dma-buf:", name()?)? },
                CONTIGO_HEAP_DMA_HEAP if kernel_port == 0 => named("dma-heap:", name()?, None, len_bytes)?,
                CONTIGO_HEAP_DMA_HEAP => Source::DmaHeap { name: whole("dma-heap:", name()?)?, len_bytes, kernel_port },
                CONTIGO_HEAP_HUGE_PAGES => named("", "hugetlb", None, len_bytes)?,
                CONTIGO_HEAP_NAMED => named("", name()?, (options.device != 0).then_some(options.device), len_bytes)?,
                CONTIGO_HEAP_CUDA => {
                    let write_combined = flag(options.write_combined, "contigo_heap_options.write_combined")?;
                    Source::Cuda { ordinal: options.gpu, len_bytes, write_combined }
                }
                value => return Err(Fault::from(Misuse::Value { what: "contigo_heap_options.kind", value: value.into() })),
            };
            let mut needs = Requirements { len_bytes: len_bytes.max(1), ..Requirements::default() };
            if align_bytes != 0 {
                needs.align = Align::new(align_bytes)?;
            }
            if addr_bits != 0 {
                needs.addr_bits = addr_bits;
            }
            Heap::open(&source, needs)
        })
    }
}

/// The name of one kind of memory, from the name that the kind's number has.
fn whole(kind: &str, name: &str) -> Result<MemoryName, Fault> {
    let mut text = heapless::String::<{ limits::NAME_BYTES + 32 }>::new();
    let long = Misuse::Text { what: "contigo_heap_options.name", max_bytes: limits::NAME_BYTES };
    text.push_str(kind).and_then(|()| text.push_str(name)).map_err(|_| long)?;
    Ok(text.parse()?)
}

fn named(kind: &str, name: &str, device: Option<u64>, len_bytes: usize) -> Result<Source, Fault> {
    Ok(Source::Named { name: whole(kind, name)?, device, len_bytes })
}

/// Closes a heap and gives its memory back. `CONTIGO_E_STILL_USED` while a buffer, a pool or an
/// engine has a piece of it; for ever, where a device would not stop: leak, never free, what a
/// device may own. Memory that CUDA pinned goes back to the driver, which may wait for what the GPU
/// is doing; beside a kernel that does not end it stays pinned.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_heap_close(heap: contigo_heap) -> contigo_status {
    call(|| Heap::close(heap))
}

/// A descriptor of a dma-buf that holds the heap's whole block, for another importer: a camera's or
/// a display's driver (V4L2, DRM) then writes or reads the same bytes, with no copy. It is the
/// program's, which closes it; the pages live as long as the last descriptor of them. -1 where it
/// is refused.
///
/// `CONTIGO_E_UNSUITABLE`: this memory is no dma-buf (huge pages, the simulated board).
/// `CONTIGO_E_OS`: what the kernel says; errno 25, the module u-dma-buf cannot export.
///
/// # Safety
/// `fd` is writable.
///
/// The program, for every importer: from the moment when one maps the block to the moment when it
/// has unmapped it, no buffer of this heap is mapped (`contigo_buf_map`), a job's, a device's
/// (`contigo_buf_to_device`), or out as a tensor, because the importer reads, writes, and maintains
/// the caches of all of it.
///
/// Of a u-dma-buf, whoever has the descriptor: it is closed, and every importer has let go, before
/// `contigo_heap_close` and before the program ends, because then another program may open the
/// device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_heap_export(heap: contigo_heap, fd: *mut c_int) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(-1, fd, "fd", || HEAPS.lease(heap)?.export()) }
}

/// What the heap is.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_heap_get_info(heap: contigo_heap, info: *mut contigo_heap_info) -> contigo_status {
    call(|| {
        let heap = HEAPS.lease(heap)?;
        let region = heap.region();
        let value = contigo_heap_info {
            struct_size: 0,
            len_bytes: region.len_bytes(),
            free_bytes: region.free_bytes(),
            line_bytes: region.line().bytes(),
            base: region.base().raw(),
        };
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}

/// What the heap has done so far. Any thread may ask at any time.
///
/// # Safety
/// `stats` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_heap_get_stats(heap: contigo_heap, stats: *mut contigo_heap_stats) -> contigo_status {
    call(|| {
        let done = HEAPS.lease(heap)?.region().stats();
        let value = contigo_heap_stats {
            struct_size: 0,
            syncs: done.syncs,
            bytes_synced_for_device: done.bytes_synced_for_device,
            bytes_synced_for_cpu: done.bytes_synced_for_cpu,
            bytes_copied: done.bytes_copied,
            carves: done.carves,
        };
        // SAFETY: the caller's promise.
        unsafe { raw::fill(stats, &value) }
    })
}

/// The bus address through `port` of `len_bytes` bytes at `ptr`, any pointer into the heap. It is a
/// number, and gives no right to the bytes: who may touch them is still what the buffer's owner
/// says. `CONTIGO_E_NOT_OURS` where not all of them are the heap's.
///
/// # Safety
/// `addr` is writable. `ptr` may be any number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_dev_addr_of(
    heap: contigo_heap,
    port: contigo_port,
    ptr: *const c_void,
    len_bytes: usize,
    addr: *mut u64,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer(addr, "addr", || Ok(HEAPS.lease(heap)?.region().dev_addr_of(&get(port)?, ptr.cast(), len_bytes)?.0)) }
}

/// Where the CPU finds the byte at bus address `addr` of `port`. The byte may be a device's at this
/// moment: do not touch it then.
///
/// # Safety
/// `ptr` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_host_ptr_of(heap: contigo_heap, port: contigo_port, addr: u64, ptr: *mut *mut c_void) -> contigo_status {
    let find = || Ok(HEAPS.lease(heap)?.region().host_ptr_of(&get(port)?, DevAddr(addr))?.as_ptr().cast());
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(ptr::null_mut(), ptr, "ptr", find) }
}

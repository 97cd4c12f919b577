#![allow(unsafe_code, reason = "functions that C calls")]
//! Regions: blocks of DMA memory.

use super::raw::{self, Versioned, flag};
use crate::fault::Fault;
use crate::handles::{contigo_port, contigo_region};
use crate::last_error::call;
use crate::object::port_of;
use crate::object::region::{REGIONS, Region, RegionOptions, contigo_region_options};
use crate::status::contigo_status;
use contigo::mem::Requirements;
use contigo::{Align, DevAddr};
use core::ffi::{c_char, c_int, c_void};
use core::{mem, ptr};
use std::os::fd::IntoRawFd as _;

/// A region's size, its cache line, where it lies, and counts of its work.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_region_info {
    /// `sizeof(contigo_region_info)`.
    pub struct_size: usize,
    /// The block's size in bytes.
    pub len_bytes: usize,
    /// How many bytes can still be carved, before alignment.
    pub free_bytes: usize,
    /// The size of a cache line. The size of a pool's slots must be a multiple of it.
    pub line_bytes: usize,
    /// Where the block lies, as the memory knows it; a port may add its offset.
    pub base: u64,
    /// Cache maintenance calls since it was opened.
    pub syncs: u64,
    /// Bytes made visible to devices since then, rounded out to whole lines where devices write.
    pub bytes_synced_for_device: u64,
    /// Bytes taken back for the CPU.
    pub bytes_synced_for_cpu: u64,
    /// Bytes that `contigo_buf_write` copied.
    pub bytes_copied: u64,
    /// How often memory was allocated, for a buffer or a pool.
    pub carves: u64,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_region_info {
    const NAME: &'static str = "contigo_region_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Opens `len_bytes` of memory by its name: maps it, checks that it is contiguous, and cleans its
/// caches once. Close it with `contigo_region_close`.
///
/// The names are `contigo:f8003000`, `u-dma-buf:udmabuf0`, `dma-heap:linux,cma`, `hugetlb`,
/// `vfio:0000:01:00.0`, `cuda:0`, `sim:7`; `contigo_inventory` and `contigo info` list
/// those of this machine. A device that the memory belongs to is opened and closed with it. A
/// program that drives this device too opens it, and calls `contigo_device_memory`.
/// `contigo_region_open_with` can ask more of the memory.
///
/// `CONTIGO_E_BAD_NAME`: it is no name; the text says at which byte, and how to write it. Where the
/// name is not there, the text lists the names of this machine.
///
/// # Safety
/// `name` is NUL-terminated; `region` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_region_open(
    name: *const c_char,
    len_bytes: usize,
    region: *mut contigo_region,
) -> contigo_status {
    // SAFETY: the caller's promise; nothing is translated, and nothing write-combined.
    unsafe {
        raw::opened(region, "region", || {
            let options = contigo_region_options { len_bytes, ..contigo_region_options::default() };
            open(raw::text(name, "name")?, &options)
        })
    }
}

/// As `contigo_region_open`, with properties that only the program can say.
///
/// `CONTIGO_E_VALUE`: an option does not fit the name. `CONTIGO_E_NEEDS_DEVICE`: the memory belongs
/// to another device or board. `CONTIGO_E_MISALIGNED`, `CONTIGO_E_TOO_HIGH`,
/// `CONTIGO_E_BLOCK_SIZE`: the memory is not as the options ask. The refusals of `cuda` are those
/// of `contigo_port_find`, and `CONTIGO_E_CUDA` with `CUDA_ERROR_OUT_OF_MEMORY` where no more can
/// be pinned.
///
/// # Safety
/// `name` is NUL-terminated; `options` points to an initialised structure; `region` is writable.
///
/// Of memory that is `translated`: every device that is given the region's addresses is behind the
/// same `iommus` or `dma-ranges` as the node. To another device they are physical addresses, of
/// memory that is not the region's.
///
/// Of `write_combined` memory: a thread that has written to a buffer calls
/// `atomic_thread_fence(memory_order_seq_cst)` before another thread of the CPU gets it; jobs and
/// hand-overs need nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_region_open_with(
    name: *const c_char,
    options: *const contigo_region_options,
    region: *mut contigo_region,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(region, "region", || open(raw::text(name, "name")?, &raw::read(options)?))
    }
}

/// # Safety
/// As `contigo_region_open_with`.
pub(super) unsafe fn open(name: &str, options: &contigo_region_options) -> Result<u64, Fault> {
    let contigo_region_options { len_bytes, align_bytes, addr_bits, .. } = *options;
    let options = RegionOptions {
        name: name.parse()?,
        translated: flag(options.translated, "contigo_region_options.translated")?,
        write_combined: flag(options.write_combined, "contigo_region_options.write_combined")?,
        given: *options,
    };
    let mut needs = Requirements { len_bytes: len_bytes.max(1), ..Requirements::default() };
    if align_bytes != 0 {
        needs.align = Align::new(align_bytes)?;
    }
    if addr_bits != 0 {
        needs.addr_bits = addr_bits;
    }
    // SAFETY: the caller's promise.
    unsafe { Region::open(&options, needs) }
}

/// Closes a region and gives its memory back. `CONTIGO_E_STILL_USED` while a buffer, a pool or an
/// engine has a piece of it. Where a device would not stop, this is so for ever: memory that a
/// device may own is leaked and never freed. Memory that CUDA pinned goes back to the driver, which
/// may wait for the GPU's work; beside a kernel that does not end it stays pinned.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_region_close(region: contigo_region) -> contigo_status {
    call(|| Ok(REGIONS.close(region)?))
}

/// Answers a descriptor of a dma-buf that holds the region's whole block, for another importer. The
/// driver of a camera or a display (V4L2, DRM) then writes or reads the same bytes, with no copy.
/// The program owns the descriptor and closes it; the pages live as long as their last descriptor.
/// -1 where the call is refused.
///
/// `CONTIGO_E_UNSUPPORTED`: this memory is no dma-buf (huge pages, the simulated board).
/// `CONTIGO_E_OS`: the kernel refused. With errno 25 the module u-dma-buf cannot export.
///
/// # Safety
/// `fd` is writable.
///
/// An importer reads, writes, and maintains the caches of the whole block while it has the block
/// mapped. As long as any importer has it mapped, the program uses no buffer of this region. None
/// is mapped (`contigo_buf_map`), in a job, given to a device (`contigo_buf_give`), or out as a
/// tensor.
///
/// Of a u-dma-buf, every copy of the descriptor is closed, and every importer has let go, before
/// `contigo_region_close` and before the program ends. After that another program may open the
/// device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_region_export(
    region: contigo_region,
    fd: *mut c_int,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer_or(-1, fd, "fd", || Ok(REGIONS.lease(region)?.memory().export()?.into_raw_fd()))
    }
}

/// Fills `info` with the region's size, its cache line, where it lies, and counts of its work so
/// far. Any thread may ask at any time.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_region_get_info(
    region: contigo_region,
    info: *mut contigo_region_info,
) -> contigo_status {
    call(|| {
        let region = REGIONS.lease(region)?;
        let region = region.memory();
        let done = region.stats();
        let value = contigo_region_info {
            struct_size: 0,
            len_bytes: region.len_bytes(),
            free_bytes: region.free_bytes(),
            line_bytes: region.line().bytes(),
            base: region.base().raw(),
            syncs: done.syncs,
            bytes_synced_for_device: done.bytes_synced_for_device,
            bytes_synced_for_cpu: done.bytes_synced_for_cpu,
            bytes_copied: done.bytes_copied,
            carves: done.carves,
        };
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}

/// Answers the bus address through `port` of `len_bytes` bytes at `ptr`, any pointer into the
/// region. The address is a number and gives no right to the bytes: the buffer's owner still says
/// who may touch them. `CONTIGO_E_NOT_OURS` where not all of them lie in the region.
///
/// # Safety
/// `addr` is writable. `ptr` may be any number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_dev_addr_of(
    region: contigo_region,
    port: contigo_port,
    ptr: *const c_void,
    len_bytes: usize,
    addr: *mut u64,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(addr, "addr", || {
            Ok(REGIONS
                .lease(region)?
                .memory()
                .dev_addr_of(&port_of(port)?, ptr.cast(), len_bytes)?
                .0)
        })
    }
}

/// Answers where the CPU finds the byte at bus address `addr` of `port`. A device may own the byte
/// at this moment: do not touch it then. Write through a mapping of the buffer (`contigo_buf_map`):
/// only what was written there is cleaned for a device.
///
/// # Safety
/// `ptr` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_host_ptr_of(
    region: contigo_region,
    port: contigo_port,
    addr: u64,
    ptr: *mut *mut c_void,
) -> contigo_status {
    let find = || {
        Ok(REGIONS
            .lease(region)?
            .memory()
            .host_ptr_of(&port_of(port)?, DevAddr(addr))?
            .as_ptr()
            .cast())
    };
    // SAFETY: the caller's promise.
    unsafe { raw::answer_or(ptr::null_mut(), ptr, "ptr", find) }
}

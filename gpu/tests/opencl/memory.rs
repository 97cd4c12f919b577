//! The block: whose bytes they are, and what is refused.

use super::{device, in_place, module, region, run_there};
use contigo::job::Launch;
use contigo::mem::{Api, Handle, Holder, Mapping, SyncScope};
use contigo::types::BaseAddr;
use contigo::{Backend, Bus, Direction, Error, Queue, Region, Result};
use contigo_gpu::Pages;
use contigo_gpu::opencl::{OpenClGpu, OpenClMemory};
use core::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Some bytes of another backend; it counts how many of its kind were dropped.
pub(super) struct Part {
    pages: Pages,
    skip: usize,
    len_bytes: usize,
    dropped: &'static AtomicUsize,
}

impl Part {
    pub(super) fn new(skip: usize, len_bytes: usize, dropped: &'static AtomicUsize) -> Self {
        Self { pages: Pages::new(1 << 16).unwrap(), skip, len_bytes, dropped }
    }
}

// SAFETY: the bytes are of the pages, which have 64 KiB.
unsafe impl Backend for Part {
    fn name(&self) -> &'static str {
        "part"
    }
    fn mapping(&self) -> Mapping {
        let whole = self.pages.mapping();
        // SAFETY: inside the pages.
        Mapping { cpu: unsafe { whole.cpu.add(self.skip) }, len_bytes: self.len_bytes, ..whole }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        panic!("this backend's caches are not maintained any more")
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        panic!("this backend's caches are not maintained any more")
    }
    fn held_by(&self, _: Range<usize>, _: Holder<'_>) {}
}

impl Drop for Part {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// How many parts of a block are mapped.
pub(super) fn mapped(raw: u64) -> u32 {
    let buffer = std::ptr::with_exposed_provenance_mut(usize::try_from(raw).unwrap());
    cl3::memory::get_mem_object_info(buffer, cl3::memory::CL_MEM_MAP_COUNT).unwrap().into()
}

#[test]
fn an_import_uses_the_very_bytes() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let Some(gpu) = device() else { return };
    let module = module(gpu);
    let backend = Part::new(4096, 8192, &DROPPED);
    let cpu = backend.mapping().cpu;
    let memory = OpenClMemory::import(gpu, backend).unwrap();
    let mapping = memory.mapping();
    let granule_bytes = gpu.align().bytes();
    assert_eq!(
        (mapping.cpu, mapping.len_bytes, mapping.scope),
        (cpu, 8192, SyncScope::Range { granule_bytes })
    );
    assert!(matches!((mapping.bus, mapping.base), (Bus::Objects(_), BaseAddr::Dev(_))));
    assert!(matches!(memory.handle(), Some(Handle { api: Api::OpenCl, raw: 1.., device_id: 0 })));
    let raw = memory.handle().unwrap().raw;
    let region = Region::new(memory).unwrap();
    assert_eq!(mapped(raw), 0, "the region's first look left nothing mapped");
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    assert_eq!(buf.as_mut_ptr(), cpu.as_ptr());
    buf.view_mut::<u8>().unwrap().fill(0x55);
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let [done] = run_there(&mut queue, [buf.in_out(..)], &Launch::of(64, 64).with(&[]));
    // The device's output is in the very bytes of the other backend: on pocl before any mapping.
    // SAFETY: no job is under way, and there is no view.
    assert_eq!(unsafe { cpu.as_ptr().read_volatile() }, 0xAA);
    drop(done);
    drop(region);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 1, "the driver let go of it");
}

#[test]
fn what_no_device_takes_comes_back() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let Some(gpu) = device() else { return };
    let align_bytes = gpu.align().bytes();
    let refused = |skip, len_bytes| {
        let refused = OpenClMemory::import(gpu, Part::new(skip, len_bytes, &DROPPED)).unwrap_err();
        (refused.error, refused.into_returned().mapping().cpu)
    };
    let (error, cpu) = refused(align_bytes / 2, align_bytes);
    assert_eq!(error, Error::Misaligned { addr: cpu.addr().get() as u64, align_bytes });
    for len_bytes in [0, 1, align_bytes - 1, align_bytes + 64 % align_bytes] {
        let (error, _) = refused(0, len_bytes);
        assert_eq!(
            error,
            Error::BlockSize { len_bytes, need_bytes: align_bytes, line_bytes: align_bytes }
        );
    }
    let most = usize::try_from(gpu.facts().max_alloc_bytes).unwrap();
    let too_long = (most + 1).next_multiple_of(align_bytes);
    assert!(
        matches!(refused(0, too_long).0, Error::Argument { value, max, .. } if value == too_long as u64 && max == most as u64)
    );
    assert_eq!(DROPPED.load(Ordering::SeqCst), 6, "each came back, and none was leaked");
    assert!(matches!(
        OpenClMemory::allocate(gpu, 0),
        Err(Error::Argument { name: "len_bytes", .. })
    ));
}

#[test]
fn only_this_device_takes_its_memory() {
    let Some(gpu) = device() else { return };
    let region = region(gpu, 1 << 16);
    assert_eq!(
        (region.line(), gpu.port().coherent, gpu.port().name),
        (gpu.align(), false, "opencl")
    );
    let board = contigo::sim::SimBoard::new(1);
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    let (ours, mut theirs) = (buf.as_mut_ptr(), [0_u8; 64]);
    assert_eq!(region.dev_addr_of(&gpu.port(), ours, 4096).unwrap().0, region.base().raw());
    // A host pointer that is not ours.
    let (addr, len_bytes) = (theirs.as_mut_ptr().addr() as u64, 64);
    assert_eq!(
        region.dev_addr_of(&gpu.port(), theirs.as_ptr(), 64),
        Err(Error::NotOurs { addr, len_bytes })
    );
    // An FPGA's port, which would take the address for a physical one.
    // SAFETY: no device receives the address.
    let refused = unsafe { buf.hand_over(&board.port(), 64, .., Direction::ToDevice) }.unwrap_err();
    assert_eq!(refused.error, Error::WrongBus { port: board.port().name, memory: gpu.bus() });
}

/// A block that is gone has no addresses, and more blocks than fit the table are refused.
#[test]
fn blocks_come_and_go() {
    let Some(gpu) = device() else { return };
    for _ in 0..600 {
        let memory = OpenClMemory::allocate(gpu, 1).unwrap();
        assert_eq!(memory.mapping().len_bytes, Pages::GRANULE_BYTES);
    }
}

#[test]
fn the_facts_are_the_devices() {
    let Some(gpu) = device() else { return };
    let (count, list) = (OpenClGpu::count().unwrap(), OpenClGpu::list().unwrap());
    assert_eq!((usize::try_from(count).unwrap(), list.first()), (list.len(), Some(gpu.facts())));
    let facts = gpu.facts();
    assert!(
        !facts.name.is_empty()
            && !facts.platform.is_empty()
            && facts.version.starts_with("OpenCL ")
    );
    assert!(
        facts.version_number >= (1, 1) && facts.max_group_items > 0 && facts.max_alloc_bytes > 0
    );
    assert!(gpu.align().bytes() >= facts.base_addr_align_bytes.max(64));
    assert!(std::ptr::eq(gpu, OpenClGpu::open(0).unwrap()), "the same device again");
    println!("{facts:?}");
}

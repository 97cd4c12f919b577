#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; the driver is none"
)]
//! A driver that does wrong, and all that is asked of it.

use super::{
    VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule,
    fake::{self, Command, Range, live, state},
    gpu::Object,
    spirv::MAGIC,
};
use crate::Pages;
use ash::vk::{
    self, AccessFlags as Access, ExternalMemoryFeatureFlags as Feature, Handle as _, MemoryPropertyFlags as Memory,
    PipelineStageFlags as Stage,
};
use contigo::{
    Align, Backend, BaseAddr, CpuBuf, DevAddr, DevSlice, DmaHeap, Driver, Engine, Error, Export as _, JobError, OperandSpec, Region,
    SyncScope,
    kernel::{
        Launch,
        Parameter::{Operand, Words},
        Signature,
    },
};
use contigo_testkit::{
    fake_dma_heap,
    fake_dma_heap::{FakeHeap, HEAP},
};
use std::{
    fs,
    os::fd::{AsFd as _, AsRawFd as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

const COHERENT: Memory = Memory::from_raw(Memory::HOST_VISIBLE.as_raw() | Memory::HOST_COHERENT.as_raw());
const LIMIT: Duration = Duration::from_millis(5);

fn gpu() -> &'static VulkanGpu {
    fake::gpu(COHERENT, Feature::IMPORTABLE, false)
}

fn module(gpu: &'static VulkanGpu) -> Result<VulkanModule, Error> {
    let entry = [5 << 16 | 15, 5, 4, u32::from_le_bytes(*b"main"), 0, 6 << 16 | 16, 4, 17, 64, 1, 1];
    // One of another stage beside it: nobody compares what a kernel is made with. And a function's
    // end.
    let entry = [&entry[..5], &[4 << 16 | 15, 0, 5, 0], &entry[5..], &[1 << 16 | 56]].concat();
    let words = [MAGIC, 0x1_0000, 0, 8, 0].into_iter().chain(entry);
    // SAFETY: the driver does not look at it.
    unsafe { VulkanModule::load(gpu, &words.flat_map(u32::to_ne_bytes).collect::<Vec<_>>()) }
}

fn kernel(module: &VulkanModule) -> Result<VulkanKernel<'_>, Error> {
    let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
    let signature = Signature::new("moved", &[Words(1), from, to, Words(2)]).unwrap();
    // SAFETY: the driver computes nothing.
    Ok(unsafe { VulkanKernel::new(module, c"main", signature, [64, 1, 1]) }?.stopping_within(LIMIT))
}

fn buffers_of<'r>(region: &'r Region<VulkanMemory>) -> [CpuBuf<'r>; 2] {
    [(); 2].map(|()| region.carve(4_096, Align::DLPACK).unwrap().into_buf())
}

const NOTHING: [&str; 0] = [];

/// Nothing is left, and nothing wrong was done.
fn clean() {
    assert_eq!((live(), state(|state| state.wrong.clone())), (NOTHING.to_vec(), vec![]));
}

#[test]
fn a_job_has_its_barriers_its_words_and_its_workgroups() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let mut engine = Engine::new(kernel(&module).unwrap()).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let [from, to] = buffers_of(&region);
    let launch = Launch { grid: [3, 2, 1], block: [64, 1, 1], shared_bytes: 0 }.with(&[0x0403_0201, 5, 6]);
    let [from, to] = engine.start([from.to_device(256..512), to.from_device(..100)], &launch).unwrap().wait(LIMIT).unwrap().buffers;
    let families = (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED);
    let range = |from, to, at| Range { accesses: [from, to].map(Access::as_raw), families, at };
    let (first, second) = ((256, 256), (4_096, 100));
    let host = Access::HOST_READ | Access::HOST_WRITE;
    let before = Access::HOST_WRITE | Access::SHADER_WRITE;
    let words: Vec<_> = [0x0403_0201_u32, 5, 6].into_iter().flat_map(u32::to_ne_bytes).collect();
    let expected = [
        Command::Barrier(
            [Stage::HOST | Stage::COMPUTE_SHADER, Stage::COMPUTE_SHADER].map(Stage::as_raw),
            vec![range(before, Access::SHADER_READ, first), range(before, Access::SHADER_WRITE, second)],
        ),
        Command::Push(words),
        Command::Dispatch([3, 2, 1]),
        Command::Barrier(
            [Stage::COMPUTE_SHADER, Stage::HOST].map(Stage::as_raw),
            vec![range(Access::empty(), host, first), range(Access::SHADER_WRITE, host, second)],
        ),
        Command::Submit,
    ];
    assert_eq!(state(|state| state.commands.clone()), expected);
    drop((from, to));
    drop(engine);
    drop(region);
    drop(module);
    clean();
}

/// A dma-buf belongs to somebody else between two jobs.
#[test]
fn a_dma_buf_is_acquired_and_released() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let mut kernel = kernel(&module).unwrap();
    let object = Object { buffer: vk::Buffer::from_raw(77), owner: vk::QUEUE_FAMILY_FOREIGN_EXT };
    let base = gpu.objects.add(object, 8_192).unwrap();
    let operand = |at| DevSlice { addr: DevAddr(base.0 + at), offset_bytes: 0, len_bytes: 4_096 };
    let (operands, words) = ([operand(0), operand(4_096)], Launch::of(1, 64).with(&[1, 2, 3]));
    kernel.check(&operands, &words).unwrap();
    // SAFETY: the driver computes nothing.
    unsafe { kernel.submit(0, &operands, &words) }.unwrap();
    let families: Vec<_> = state(|state| {
        let ranges =
            state.commands.iter().filter_map(|command| if let Command::Barrier(_, ranges) = command { Some(ranges) } else { None });
        ranges.flatten().map(|range| range.families).collect()
    });
    let foreign = vk::QUEUE_FAMILY_FOREIGN_EXT;
    assert_eq!(families, [(foreign, 0), (foreign, 0), (0, foreign), (0, foreign)]);
    assert!(kernel.poll(Duration::ZERO).unwrap().is_some());
    drop(kernel);
    drop(module);
    clean();
}

#[test]
fn what_fails_on_the_way_is_told_and_leaves_nothing_behind() {
    let oom = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    let fails = |call, at| {
        let gpu = gpu();
        state(|state| state.failing = Some((call, at, oom)));
        let memory = VulkanMemory::allocate(gpu, 1);
        let made = memory.and_then(|_| module(gpu)).and_then(|module| kernel(&module).map(drop));
        clean();
        state(|state| *state = fake::State::default());
        assert!(!gpu.is_hung());
        made.unwrap_err()
    };
    for (call, name) in [
        ("create_buffer", "vkCreateBuffer"),
        ("allocate_memory", "vkAllocateMemory"),
        ("bind_memory", "vkBindBufferMemory"),
        ("create_shader_module", "vkCreateShaderModule"),
        ("create_set_layout", "vkCreateDescriptorSetLayout"),
        ("create_layout", "vkCreatePipelineLayout"),
        ("create_pipelines", "vkCreateComputePipelines"),
        ("create_command_pool", "vkCreateCommandPool"),
        ("create_descriptor_pool", "vkCreateDescriptorPool"),
        ("allocate_commands", "vkAllocateCommandBuffers"),
        ("allocate_sets", "vkAllocateDescriptorSets"),
        ("create_fence", "vkCreateFence"),
    ] {
        assert_eq!(fails(call, 1), Error::Gpu { call: name, code: -2, name: "VK_ERROR_OUT_OF_DEVICE_MEMORY" });
    }
    assert!(matches!(fails("create_fence", 8), Error::Gpu { call: "vkCreateFence", .. }));
}

#[test]
fn memory_that_the_driver_refuses_comes_back() {
    let refused = |gpu| {
        let pages = Pages::new(1).unwrap();
        let before = pages.mapping().cpu;
        let refused = VulkanMemory::import(gpu, pages).unwrap_err();
        assert_eq!(refused.returned.mapping().cpu, before);
        clean();
        refused.error
    };
    state(|state| state.failing = Some(("host_pointer", 1, vk::Result::ERROR_INVALID_EXTERNAL_HANDLE)));
    let error = refused(gpu());
    let (call, name) = ("vkGetMemoryHostPointerPropertiesEXT", "VK_ERROR_INVALID_EXTERNAL_HANDLE");
    assert_eq!(error, Error::Gpu { call, code: -1_000_072_003, name });
    let error = refused(fake::gpu(Memory::HOST_VISIBLE, Feature::IMPORTABLE, false));
    assert!(matches!(error, Error::Unsupported { what, .. } if what.contains("HOST_COHERENT")), "{error}");
    let error = refused(fake::gpu(COHERENT, Feature::EXPORTABLE, false));
    assert!(matches!(error, Error::Unsupported { what, .. } if what.contains("imports no such memory")), "{error}");
    state(|state| state.more_bytes = 64);
    assert_eq!(refused(gpu()), Error::BlockSize { len_bytes: 65_536, need_bytes: 65_600, line_bytes: 64 });
}

/// How many descriptors of this file the process has.
fn descriptors(file: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link == file).count()
}

#[test]
fn a_dma_buf_is_the_driver_s_once_it_was_imported_and_closed_where_it_was_not() {
    let gpu = fake::gpu(COHERENT, Feature::IMPORTABLE | Feature::DEDICATED_ONLY, true);
    let heap = || DmaHeap::allocate_from(Arc::new(FakeHeap::new(fake_dma_heap::Pages::Contiguous)), HEAP, 64 << 10).unwrap();
    let memory = heap();
    // SAFETY: nobody writes there.
    let exported = unsafe { memory.export() }.unwrap();
    let file = fs::read_link(format!("/proc/self/fd/{}", exported.as_fd().as_raw_fd())).unwrap();
    drop(exported);
    if memory.mapping().scope != SyncScope::Coherent {
        // So on Arm: its caches would have to be maintained.
        let refused = VulkanMemory::import_dma_buf(gpu, memory).unwrap_err();
        assert!(matches!(refused.error, Error::Unsupported { what, .. } if what.contains("not coherent")), "{refused:?}");
        return;
    }
    let mut memory = memory;
    let before = descriptors(&file);
    for (call, name) in [
        ("fd_properties", "vkGetMemoryFdPropertiesKHR"),
        ("create_buffer", "vkCreateBuffer"),
        ("allocate_memory", "vkAllocateMemory"),
        ("bind_memory", "vkBindBufferMemory"),
    ] {
        state(|state| *state = fake::State::default());
        state(|state| state.failing = Some((call, 1, vk::Result::ERROR_INVALID_EXTERNAL_HANDLE)));
        let refused = VulkanMemory::import_dma_buf(gpu, memory).unwrap_err();
        assert!(matches!(refused.error, Error::Gpu { call, .. } if call == name), "{refused:?}");
        memory = refused.returned;
        clean();
        assert_eq!(descriptors(&file), before, "{name}");
    }
    let imported = VulkanMemory::import_dma_buf(gpu, memory).unwrap();
    assert_eq!((descriptors(&file), live()), (before + 1, vec!["Buffer", "DeviceMemory"]));
    let BaseAddr::Dev(addr) = imported.mapping().base else { panic!("{:?}", imported.mapping()) };
    let (object, _) = gpu.objects.find(&DevSlice { addr, offset_bytes: 0, len_bytes: 64 << 10 }).unwrap();
    assert_eq!(object.owner, vk::QUEUE_FAMILY_FOREIGN_EXT);
    drop(imported);
    clean();
    assert_eq!(descriptors(&file), 0);
    assert!(VulkanMemory::import_dma_buf(self::gpu(), heap()).is_err());
}

/// Memory that may still be written stays mapped, and so does all else of that device.
fn stays(gpu: &'static VulkanGpu, end: impl FnOnce(Engine<VulkanKernel<'_>, 2>, [CpuBuf<'_>; 2])) {
    let module = module(gpu).unwrap();
    let engine = Engine::new(kernel(&module).unwrap()).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let before = live();
    let BaseAddr::Dev(base) = region.base() else { panic!("{:?}", region.base()) };
    let first = region.host_ptr_of(&gpu.port(), base).unwrap();
    end(engine, buffers_of(&region));
    drop((region, module));
    assert_eq!((live(), state(|state| state.wrong.clone())), (before, vec![]));
    // SAFETY: it was leaked.
    assert_eq!(unsafe { first.read_volatile() }, 0);
}

#[test]
fn a_lost_device_is_told_and_keeps_everything() {
    let gpu = gpu();
    stays(gpu, |mut engine, [from, to]| {
        let job = engine.start([from.to_device(..), to.from_device(..)], &Launch::of(1, 64).with(&[0; 3])).unwrap();
        state(|state| state.fences = vk::Result::ERROR_DEVICE_LOST);
        let failed = job.wait(LIMIT).unwrap_err();
        assert_eq!(failed.cause, Error::Gpu { call: "vkGetFenceStatus", code: -4, name: "VK_ERROR_DEVICE_LOST" });
        assert!(matches!(failed.error, Error::WillNotStop { device: "moved", status: 0xFFFF_FFFC, .. }), "{failed:?}");
        assert!(failed.buffers.is_none() && gpu.is_hung());
        // It does not come back, whatever a fence says later.
        state(|state| state.fences = vk::Result::SUCCESS);
        assert!(matches!(engine.recover(), Err(Error::WillNotStop { .. })));
    });
}

/// A fence of a lost device may be signalled, and no other kernel's job is told as ended by it.
#[test]
fn a_fence_of_a_lost_device_is_not_believed() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let [mut first, mut second] = [(); 2].map(|()| Engine::new(kernel(&module).unwrap()).unwrap());
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let ([a, b], [c, d]) = (buffers_of(&region), buffers_of(&region));
    let words = Launch::of(1, 64).with(&[0; 3]);
    let one = first.start([a.to_device(..), b.from_device(..)], &words).unwrap();
    let two = second.start([c.to_device(..), d.from_device(..)], &words).unwrap();
    state(|state| state.fences = vk::Result::ERROR_DEVICE_LOST);
    assert!(one.wait(LIMIT).is_err() && gpu.is_hung());
    state(|state| state.fences = vk::Result::SUCCESS);
    let failed = two.wait(LIMIT).unwrap_err();
    assert_eq!(failed.cause, Error::Gpu { call: "vkGetFenceStatus", code: -4, name: "VK_ERROR_DEVICE_LOST" });
    assert!(matches!(failed.error, Error::WillNotStop { status: 0xFFFF_FFFC, .. }) && failed.buffers.is_none(), "{failed:?}");
}

#[test]
fn a_queue_that_refuses_a_job_gives_it_back_or_is_lost() {
    let words = Launch::of(1, 64).with(&[0; 3]);
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let mut engine = Engine::new(kernel(&module).unwrap()).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let [from, to] = buffers_of(&region);
    state(|state| state.failing = Some(("submit", 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY)));
    let JobError { error, buffers, .. } = engine.start([from.to_device(..), to.from_device(..)], &words).unwrap_err();
    assert_eq!(error, Error::Gpu { call: "vkQueueSubmit", code: -1, name: "VK_ERROR_OUT_OF_HOST_MEMORY" });
    drop(buffers.unwrap());
    let [from, to] = buffers_of(&region);
    drop(engine.start([from.to_device(..), to.from_device(..)], &words).unwrap().wait(LIMIT).unwrap());
    drop(engine);
    drop(region);
    drop(module);
    clean();

    for answer in [vk::Result::ERROR_DEVICE_LOST, vk::Result::ERROR_UNKNOWN] {
        let gpu = self::gpu();
        state(|state| *state = fake::State::default());
        state(|state| state.failing = Some(("submit", 1, answer)));
        stays(gpu, |mut engine, [from, to]| {
            let refused = engine.start([from.to_device(..), to.from_device(..)], &words).unwrap_err();
            assert!(matches!(refused.error, Error::WillNotStop { .. }) && refused.buffers.is_none(), "{refused:?}");
            assert!(gpu.is_hung());
        });
    }
}

#[test]
fn a_job_that_does_not_end_is_waited_for_in_bounded_time() {
    let gpu = gpu();
    stays(gpu, |mut engine, [from, to]| {
        state(|state| state.fences = vk::Result::NOT_READY);
        let job = engine.start([from.to_device(..), to.from_device(..)], &Launch::of(1, 64).with(&[0; 3])).unwrap();
        let failed = job.wait(LIMIT).unwrap_err();
        assert!(matches!(failed.error, Error::WillNotStop { device: "moved", status: 1, waited_us: 5_000.. }), "{failed:?}");
        assert!(gpu.is_hung());
    });
}

/// A kernel that was dropped with a job in the queue that somebody forgot.
fn forget(module: &VulkanModule, region: &Region<VulkanMemory>) {
    let mut engine = Engine::new(kernel(module).unwrap()).unwrap();
    let [from, to] = buffers_of(region);
    std::mem::forget(engine.start([from.to_device(..), to.from_device(..)], &Launch::of(1, 64).with(&[0; 3])).unwrap());
}

#[test]
fn a_forgotten_job_that_ends_late_leaks_nothing_that_is_dropped_later() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    state(|state| state.fences = vk::Result::NOT_READY);
    forget(&module, &region);
    forget(&module, &region);
    assert!(gpu.is_hung());
    let before = live();
    drop(VulkanMemory::allocate(gpu, 1).unwrap());
    assert_eq!(live().len(), before.len() + 2, "memory was freed beside a job that goes on");
    state(|state| state.fences = vk::Result::SUCCESS);
    assert!(!gpu.is_hung());
    for _ in 0..2 * 256 {
        drop(VulkanMemory::allocate(gpu, 1).unwrap());
    }
    assert_eq!((live().len(), state(|state| state.wrong.clone())), (before.len() + 2, vec![]));
}

/// 16 forgotten kernels are looked at again, whose places are free then. One more hangs for ever.
#[test]
fn more_forgotten_kernels_than_there_are_places_hang_for_ever() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 128 * 4_096).unwrap()).unwrap();
    for (count, hangs) in [(16, false), (1, false), (17, true)] {
        state(|state| state.fences = vk::Result::NOT_READY);
        (0..count).for_each(|_| forget(&module, &region));
        assert!(gpu.is_hung());
        state(|state| state.fences = vk::Result::SUCCESS);
        assert_eq!(gpu.is_hung(), hangs, "{count}");
    }
    let before = live().len();
    drop(VulkanMemory::allocate(gpu, 1).unwrap());
    assert_eq!(live().len(), before + 2);
}

/// An import that fails beside such a job gives the memory back, and frees nothing of the driver's.
#[test]
fn an_import_that_fails_beside_a_hang_leaks_the_driver_s_part() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let mut engine = Engine::new(kernel(&module).unwrap()).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let [from, to] = buffers_of(&region);
    state(|state| state.fences = vk::Result::NOT_READY);
    let job = engine.start([from.to_device(..), to.from_device(..)], &Launch::of(1, 64).with(&[0; 3])).unwrap();
    drop(job.wait(LIMIT).unwrap_err());
    let before = live().len();
    state(|state| state.failing = Some(("bind_memory", 2, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)));
    let refused = VulkanMemory::import(gpu, Pages::new(1).unwrap()).unwrap_err();
    assert!(matches!(refused.error, Error::Gpu { call: "vkBindBufferMemory", .. }), "{refused:?}");
    // A full table refuses what was imported.
    let full = std::iter::repeat_with(|| VulkanMemory::allocate(gpu, 1)).find_map(Result::err);
    assert!(matches!(full, Some(Error::TooMany { most: 256, .. })), "{full:?}");
    // Beside the region 255 blocks and the two that were refused: a buffer and its memory each.
    assert_eq!((live().len() - before, state(|state| state.wrong.clone())), (2 * (255 + 2), vec![]));
}

/// It ends after all: then nothing was lost.
#[test]
fn a_job_that_ends_late_frees_everything() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let mut engine = Engine::new(kernel(&module).unwrap()).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let [from, to] = buffers_of(&region);
    state(|state| state.fences = vk::Result::NOT_READY);
    let job = engine.start([from.to_device(..), to.from_device(..)], &Launch::of(1, 64).with(&[0; 3])).unwrap();
    drop(job.wait(LIMIT).unwrap_err());
    assert!(gpu.is_hung());
    state(|state| state.fences = vk::Result::SUCCESS);
    engine.recover().unwrap();
    assert!(!gpu.is_hung());
    drop(engine);
    drop(module);
    // The job's buffers stayed with the engine, for whoever dropped its error: a region keeps them.
    let kept = live();
    drop(region);
    assert_eq!((live(), state(|state| state.wrong.clone())), (kept, vec![]));
}

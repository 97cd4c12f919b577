#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; the driver is none"
)]
//! A driver that does wrong, and all that is asked of it.

mod fake;
mod functions;
mod hangs;

use self::fake::{Command, Range, live, state};
use self::functions::function;
use super::facts::tests::least;
use super::object::Object;
use super::spirv::MAGIC;
use super::{VulkanFacts, VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use crate::Pages;
use ash::vk::{
    self, AccessFlags as Access, ExternalMemoryFeatureFlags as Feature, Handle as _,
    MemoryPropertyFlags as Memory, PipelineStageFlags as Stage,
};
use ash::{ext, khr};
use contigo::job::Parameter::{Operand, Words};
use contigo::job::{Launch, Signature};
use contigo::linux::memory::DmaHeap;
use contigo::mem::{DevSlice, SyncScope};
use contigo::types::BaseAddr;
use contigo::{Align, Backend, CpuBuf, DevAddr, Driver, Error, OperandSpec, Queue, Region};
use contigo_testkit::fake_dma_heap;
use contigo_testkit::fake_dma_heap::{FakeHeap, HEAP};
use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const COHERENT: Memory =
    Memory::from_raw(Memory::HOST_VISIBLE.as_raw() | Memory::HOST_COHERENT.as_raw());
const LIMIT: Duration = Duration::from_millis(5);

/// A device of this driver, which has memory of these properties as its second type. Does it import
/// dma-bufs?
fn gpu_with(properties: Memory, features: Feature, has_dma_buf: bool) -> &'static VulkanGpu {
    let mut memory_types =
        vk::PhysicalDeviceMemoryProperties { memory_type_count: 2, ..Default::default() };
    memory_types.memory_types = [vk::MemoryType { property_flags: properties, heap_index: 0 }; 32];
    // SAFETY: each function is as Vulkan declares the one of its name, except that pointers to
    // callbacks, which are null, are of no type.
    let device = unsafe { ash::Device::load_with(function, vk::Device::from_raw(1)) };
    let (queue, host) =
        (vk::Queue::from_raw(1), ext::external_memory_host::DeviceFn::load(function));
    let fd = has_dma_buf.then(|| khr::external_memory_fd::DeviceFn::load(function));
    let driver =
        super::gpu::Driver { device, queue, host, fd, memory_types, features: [features; 2] };
    let facts =
        VulkanFacts { max_storage_buffers: 16, has_dma_buf, has_foreign_owners: true, ..least() };
    Box::leak(Box::new(VulkanGpu::of(facts, driver).unwrap()))
}

fn gpu() -> &'static VulkanGpu {
    gpu_with(COHERENT, Feature::IMPORTABLE, false)
}

fn module(gpu: &'static VulkanGpu) -> Result<VulkanModule, Error> {
    let entry =
        [5 << 16 | 15, 5, 4, u32::from_le_bytes(*b"main"), 0, 6 << 16 | 16, 4, 17, 64, 1, 1];
    // One of another stage beside it: what a kernel is made with is not compared. And a function's
    // end.
    let entry = [&entry[..5], &[4 << 16 | 15, 0, 5, 0], &entry[5..], &[1 << 16 | 56]].concat();
    let words = [MAGIC, 0x1_0000, 0, 8, 0].into_iter().chain(entry);
    // SAFETY: the driver does not look at it.
    unsafe { VulkanModule::load(gpu, &words.flat_map(u32::to_ne_bytes).collect::<Vec<_>>()) }
}

fn kernel(module: &VulkanModule) -> Result<VulkanKernel, Error> {
    let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
    let signature = Signature::new("moved", &[Words(1), from, to, Words(2)]).unwrap();
    // SAFETY: the driver computes nothing.
    Ok(unsafe { VulkanKernel::new(module, c"main", signature, [64, 1, 1]) }?.stopping_within(LIMIT))
}

fn buffers_of(region: &Region) -> [CpuBuf; 2] {
    [(); 2].map(|()| region.alloc(4_096, Align::DLPACK).unwrap())
}

const NOTHING: [&str; 0] = [];

/// Nothing is left, and nothing wrong was done.
fn clean() {
    assert_eq!((live(), state(|state| state.wrong.clone())), (NOTHING.to_vec(), vec![]));
}

#[test]
fn job_has_barriers_words_and_workgroups() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let mut queue = Queue::new(kernel(&module).unwrap(), 1).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1).unwrap()).unwrap();
    let [from, to] = buffers_of(&region);
    let launch =
        Launch { grid: [3, 2, 1], block: [64, 1, 1], shared_bytes: 0 }.with(&[0x0403_0201, 5, 6]);
    let [from, to] = queue
        .run([from.to_device(256..512), to.from_device(..100)], &launch, LIMIT)
        .unwrap()
        .buffers;
    let families = (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED);
    let range = |from, to, at| Range { accesses: [from, to].map(Access::as_raw), families, at };
    let (first, second) = ((256, 256), (4_096, 100));
    let host = Access::HOST_READ | Access::HOST_WRITE;
    let before = Access::HOST_WRITE | Access::SHADER_WRITE;
    let words: Vec<_> = [0x0403_0201_u32, 5, 6].into_iter().flat_map(u32::to_ne_bytes).collect();
    let expected = [
        Command::Barrier(
            [Stage::HOST | Stage::COMPUTE_SHADER, Stage::COMPUTE_SHADER].map(Stage::as_raw),
            vec![
                range(before, Access::SHADER_READ, first),
                range(before, Access::SHADER_WRITE, second),
            ],
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
    drop(queue);
    drop(region);
    drop(module);
    clean();
}

/// A dma-buf belongs to a foreign queue family between two jobs.
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
        let ranges = state.commands.iter().filter_map(|command| {
            if let Command::Barrier(_, ranges) = command { Some(ranges) } else { None }
        });
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
fn failed_calls_are_told_and_leave_nothing() {
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
        assert_eq!(
            fails(call, 1),
            Error::Gpu { call: name, code: -2, name: "VK_ERROR_OUT_OF_DEVICE_MEMORY" }
        );
    }
    assert!(matches!(fails("create_fence", 8), Error::Gpu { call: "vkCreateFence", .. }));
}

#[test]
fn memory_that_the_driver_refuses_comes_back() {
    let refused = |gpu| {
        let pages = Pages::new(1).unwrap();
        let before = pages.mapping().cpu;
        let (error, pages) = VulkanMemory::import(gpu, pages).unwrap_err().into_parts();
        assert_eq!(pages.mapping().cpu, before);
        clean();
        error
    };
    state(|state| {
        state.failing = Some(("host_pointer", 1, vk::Result::ERROR_INVALID_EXTERNAL_HANDLE))
    });
    let error = refused(gpu());
    let (call, name) = ("vkGetMemoryHostPointerPropertiesEXT", "VK_ERROR_INVALID_EXTERNAL_HANDLE");
    assert_eq!(error, Error::Gpu { call, code: -1_000_072_003, name });
    let error = refused(gpu_with(Memory::HOST_VISIBLE, Feature::IMPORTABLE, false));
    assert!(
        matches!(error, Error::Unsupported { what, .. } if what.contains("HOST_COHERENT")),
        "{error}"
    );
    let error = refused(gpu_with(COHERENT, Feature::EXPORTABLE, false));
    assert!(
        matches!(error, Error::Unsupported { what, .. } if what.contains("imports no such memory")),
        "{error}"
    );
    state(|state| state.more_bytes = 64);
    assert_eq!(
        refused(gpu()),
        Error::BlockSize { len_bytes: 65_536, need_bytes: 65_600, line_bytes: 64 }
    );
}

/// How many descriptors of this file the process has.
fn descriptors(file: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link == file).count()
}

#[test]
fn dma_buf_is_owned_on_import_else_closed() {
    let gpu = gpu_with(COHERENT, Feature::IMPORTABLE | Feature::DEDICATED_ONLY, true);
    let heap = || {
        DmaHeap::allocate_from(
            Arc::new(FakeHeap::new(fake_dma_heap::Pages::Contiguous)),
            HEAP,
            64 << 10,
        )
        .unwrap()
    };
    let memory = heap();
    // SAFETY: no code writes there.
    let exported = unsafe { memory.export() }.unwrap();
    let file = fs::read_link(format!("/proc/self/fd/{}", exported.as_fd().as_raw_fd())).unwrap();
    drop(exported);
    if memory.mapping().scope != SyncScope::Coherent {
        // So on Arm: its caches would have to be maintained.
        let refused = VulkanMemory::import_dma_buf(gpu, memory).unwrap_err();
        assert!(
            matches!(refused.error, Error::Unsupported { what, .. } if what.contains("not coherent")),
            "{refused:?}"
        );
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
        memory = refused.into_returned();
        clean();
        assert_eq!(descriptors(&file), before, "{name}");
    }
    let imported = VulkanMemory::import_dma_buf(gpu, memory).unwrap();
    assert_eq!((descriptors(&file), live()), (before + 1, vec!["Buffer", "DeviceMemory"]));
    let BaseAddr::Dev(addr) = imported.mapping().base else { panic!("{:?}", imported.mapping()) };
    let (object, _) =
        gpu.objects.find(&DevSlice { addr, offset_bytes: 0, len_bytes: 64 << 10 }).unwrap();
    assert_eq!(object.owner, vk::QUEUE_FAMILY_FOREIGN_EXT);
    drop(imported);
    clean();
    assert_eq!(descriptors(&file), 0);
    let refused = VulkanMemory::import_dma_buf(self::gpu(), heap()).unwrap_err();
    assert!(
        matches!(refused.error, Error::Unsupported { what, .. } if what.contains("does not import")),
        "{refused:?}"
    );
}

/// A kernel keeps its module in any order of drops; one that was forgotten keeps it for ever.
#[test]
fn last_of_module_and_kernels_destroys_it() {
    let gpu = gpu();
    let module = module(gpu).unwrap();
    let [first, second] = [module.clone(), module.clone()].map(|module| kernel(&module).unwrap());
    drop(module);
    drop(first);
    assert!(live().contains(&"ShaderModule"));
    drop(second);
    clean();
    std::mem::forget(self::module(gpu).and_then(|module| kernel(&module)).unwrap());
    assert!(live().contains(&"ShaderModule"));
}

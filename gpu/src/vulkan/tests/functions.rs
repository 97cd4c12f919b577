#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a driver's functions, for tests; a test that panics has failed"
)]
//! The hostile driver's functions, by their names.

use super::fake::{Command, Range, asked, gone, made, state};
use ash::vk;
use ash::vk::Handle as _;
use std::ffi::{CStr, c_void};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::{ptr, slice};

/// The objects that are made and destroyed alike: a test's name for the call, and the kind.
const ALIKE: [(&str, &str); 8] = [
    ("create_buffer", "Buffer"),
    ("create_shader_module", "ShaderModule"),
    ("create_set_layout", "DescriptorSetLayout"),
    ("create_layout", "PipelineLayout"),
    ("create_command_pool", "CommandPool"),
    ("create_descriptor_pool", "DescriptorPool"),
    ("create_fence", "Fence"),
    ("create_pipelines", "Pipeline"),
];

/// Each of these handles is a number of 64 bits.
unsafe extern "system" fn create<const AT: usize>(
    _: vk::Device,
    _: *const c_void,
    _: *const c_void,
    out: *mut u64,
) -> vk::Result {
    let (call, kind) = ALIKE[AT];
    let answer = asked(call);
    if answer == vk::Result::SUCCESS {
        // SAFETY: the caller has room for it.
        unsafe { out.write(made(kind)) }
    }
    answer
}

unsafe extern "system" fn destroy<const AT: usize>(_: vk::Device, raw: u64, _: *const c_void) {
    gone(ALIKE[AT].1, raw);
}

unsafe extern "system" fn allocate_memory(
    _: vk::Device,
    allocate: *const vk::MemoryAllocateInfo<'_>,
    _: *const c_void,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    let answer = asked("allocate_memory");
    if answer != vk::Result::SUCCESS {
        return answer;
    }
    let raw = made("DeviceMemory");
    let mut next = allocate.cast::<vk::BaseInStructure<'_>>();
    while !next.is_null() {
        // SAFETY: each structure of the chain begins as this one.
        let base = unsafe { next.read() };
        if base.s_type == vk::StructureType::IMPORT_MEMORY_FD_INFO_KHR {
            // SAFETY: it is of this type, and the descriptor belongs to the driver from here on.
            let fd =
                unsafe { OwnedFd::from_raw_fd((*next.cast::<vk::ImportMemoryFdInfoKHR<'_>>()).fd) };
            state(|state| state.fds.insert(raw, fd));
        }
        next = base.p_next;
    }
    // SAFETY: the caller has room for it.
    unsafe { out.write(vk::DeviceMemory::from_raw(raw)) }
    answer
}

unsafe extern "system" fn free_memory(_: vk::Device, handle: vk::DeviceMemory, _: *const c_void) {
    gone("DeviceMemory", handle.as_raw());
    state(|state| state.fds.remove(&handle.as_raw()));
}

unsafe extern "system" fn fd_properties(
    _: vk::Device,
    _: vk::ExternalMemoryHandleTypeFlags,
    _: i32,
    out: *mut vk::MemoryFdPropertiesKHR<'_>,
) -> vk::Result {
    // SAFETY: the structure is a reference.
    unsafe { (*out).memory_type_bits = 0b10 }
    asked("fd_properties")
}

unsafe extern "system" fn create_pipelines(
    device: vk::Device,
    _: vk::PipelineCache,
    _: u32,
    _: *const vk::ComputePipelineCreateInfo<'_>,
    _: *const c_void,
    out: *mut vk::Pipeline,
) -> vk::Result {
    // SAFETY: the caller has room for one.
    unsafe {
        out.write(vk::Pipeline::null());
        create::<7>(device, ptr::null(), ptr::null(), out.cast())
    }
}

/// Handles from 1 on.
///
/// # Safety
/// There is room for so many.
unsafe fn number<T: vk::Handle>(out: *mut T, count: u32) {
    for (at, raw) in (0..usize::try_from(count).unwrap()).zip(1..) {
        // SAFETY: the caller's promise.
        unsafe { out.add(at).write(T::from_raw(raw)) }
    }
}

unsafe extern "system" fn allocate_commands(
    _: vk::Device,
    allocate: *const vk::CommandBufferAllocateInfo<'_>,
    out: *mut vk::CommandBuffer,
) -> vk::Result {
    // SAFETY: the structure is a reference, and the caller has room for as many.
    unsafe { number(out, (*allocate).command_buffer_count) }
    asked("allocate_commands")
}

unsafe extern "system" fn allocate_sets(
    _: vk::Device,
    allocate: *const vk::DescriptorSetAllocateInfo<'_>,
    out: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: as above.
    unsafe { number(out, (*allocate).descriptor_set_count) }
    asked("allocate_sets")
}

unsafe extern "system" fn requirements(
    _: vk::Device,
    _: vk::Buffer,
    out: *mut vk::MemoryRequirements,
) {
    let size = 65_536 + state(|state| state.more_bytes);
    // SAFETY: the caller has room for it.
    unsafe { out.write(vk::MemoryRequirements { size, alignment: 64, memory_type_bits: 0b11 }) }
}

unsafe extern "system" fn host_pointer(
    _: vk::Device,
    _: vk::ExternalMemoryHandleTypeFlags,
    _: *const c_void,
    out: *mut vk::MemoryHostPointerPropertiesEXT<'_>,
) -> vk::Result {
    // SAFETY: the structure is a reference.
    unsafe { (*out).memory_type_bits = 0b10 }
    asked("host_pointer")
}

unsafe extern "system" fn bind_memory(
    _: vk::Device,
    _: vk::Buffer,
    _: vk::DeviceMemory,
    _: u64,
) -> vk::Result {
    asked("bind_memory")
}

unsafe extern "system" fn reset_fences(
    _: vk::Device,
    _: u32,
    fences: *const vk::Fence,
) -> vk::Result {
    // SAFETY: one fence, or more.
    let raw = unsafe { fences.read() }.as_raw();
    state(|state| {
        if state.pending.contains(&raw) {
            state.wrong.push(format!("fence {raw} was reset under its job"));
        }
    });
    asked("reset_fences")
}

unsafe extern "system" fn fence_status(_: vk::Device, fence: vk::Fence) -> vk::Result {
    state(|state| {
        if state.fences == vk::Result::SUCCESS {
            state.pending.remove(&fence.as_raw());
        }
        state.fences
    })
}

unsafe extern "system" fn submit(
    _: vk::Queue,
    _: u32,
    _: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let answer = asked("submit");
    if answer == vk::Result::SUCCESS {
        state(|state| {
            state.pending.insert(fence.as_raw());
            state.commands.push(Command::Submit);
        });
    }
    answer
}

unsafe extern "system" fn begin(
    _: vk::CommandBuffer,
    _: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    asked("begin")
}

unsafe extern "system" fn end(_: vk::CommandBuffer) -> vk::Result {
    asked("end")
}

unsafe extern "system" fn update_sets(
    _: vk::Device,
    _: u32,
    _: *const vk::WriteDescriptorSet<'_>,
    _: u32,
    _: *const vk::CopyDescriptorSet<'_>,
) {
}

unsafe extern "system" fn bind_pipeline(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::Pipeline,
) {
}

#[allow(clippy::too_many_arguments, reason = "Vulkan's")]
unsafe extern "system" fn bind_sets(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::PipelineLayout,
    _: u32,
    _: u32,
    _: *const vk::DescriptorSet,
    _: u32,
    _: *const u32,
) {
}

unsafe extern "system" fn push(
    _: vk::CommandBuffer,
    _: vk::PipelineLayout,
    _: vk::ShaderStageFlags,
    _: u32,
    size: u32,
    values: *const c_void,
) {
    // SAFETY: so many bytes are there.
    let bytes =
        unsafe { slice::from_raw_parts(values.cast::<u8>(), usize::try_from(size).unwrap()) };
    state(|state| state.commands.push(Command::Push(bytes.to_vec())));
}

unsafe extern "system" fn dispatch(_: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    state(|state| state.commands.push(Command::Dispatch([x, y, z])));
}

#[allow(clippy::too_many_arguments, reason = "Vulkan's")]
unsafe extern "system" fn barrier(
    _: vk::CommandBuffer,
    from: vk::PipelineStageFlags,
    to: vk::PipelineStageFlags,
    _: vk::DependencyFlags,
    _: u32,
    _: *const vk::MemoryBarrier<'_>,
    count: u32,
    barriers: *const vk::BufferMemoryBarrier<'_>,
    _: u32,
    _: *const vk::ImageMemoryBarrier<'_>,
) {
    // SAFETY: so many are there.
    let barriers = unsafe { slice::from_raw_parts(barriers, usize::try_from(count).unwrap()) };
    let range = |barrier: &vk::BufferMemoryBarrier<'_>| Range {
        accesses: [barrier.src_access_mask, barrier.dst_access_mask].map(vk::AccessFlags::as_raw),
        families: (barrier.src_queue_family_index, barrier.dst_queue_family_index),
        at: (barrier.offset, barrier.size),
    };
    state(|state| {
        state.commands.push(Command::Barrier(
            [from, to].map(vk::PipelineStageFlags::as_raw),
            barriers.iter().map(range).collect(),
        ))
    });
}

/// The functions, by their names. Any other one ends the test when it is called.
pub(super) fn function(name: &CStr) -> *const c_void {
    match name.to_bytes() {
        b"vkCreateBuffer" => create::<0> as *const c_void,
        b"vkDestroyBuffer" => destroy::<0> as *const c_void,
        b"vkAllocateMemory" => allocate_memory as *const c_void,
        b"vkFreeMemory" => free_memory as *const c_void,
        b"vkCreateShaderModule" => create::<1> as *const c_void,
        b"vkDestroyShaderModule" => destroy::<1> as *const c_void,
        b"vkCreateDescriptorSetLayout" => create::<2> as *const c_void,
        b"vkDestroyDescriptorSetLayout" => destroy::<2> as *const c_void,
        b"vkCreatePipelineLayout" => create::<3> as *const c_void,
        b"vkDestroyPipelineLayout" => destroy::<3> as *const c_void,
        b"vkCreateCommandPool" => create::<4> as *const c_void,
        b"vkDestroyCommandPool" => destroy::<4> as *const c_void,
        b"vkCreateDescriptorPool" => create::<5> as *const c_void,
        b"vkDestroyDescriptorPool" => destroy::<5> as *const c_void,
        b"vkCreateFence" => create::<6> as *const c_void,
        b"vkDestroyFence" => destroy::<6> as *const c_void,
        b"vkCreateComputePipelines" => create_pipelines as *const c_void,
        b"vkDestroyPipeline" => destroy::<7> as *const c_void,
        b"vkAllocateCommandBuffers" => allocate_commands as *const c_void,
        b"vkAllocateDescriptorSets" => allocate_sets as *const c_void,
        b"vkGetBufferMemoryRequirements" => requirements as *const c_void,
        b"vkBindBufferMemory" => bind_memory as *const c_void,
        b"vkGetMemoryHostPointerPropertiesEXT" => host_pointer as *const c_void,
        b"vkGetMemoryFdPropertiesKHR" => fd_properties as *const c_void,
        b"vkResetFences" => reset_fences as *const c_void,
        b"vkGetFenceStatus" => fence_status as *const c_void,
        b"vkQueueSubmit" => submit as *const c_void,
        b"vkBeginCommandBuffer" => begin as *const c_void,
        b"vkEndCommandBuffer" => end as *const c_void,
        b"vkUpdateDescriptorSets" => update_sets as *const c_void,
        b"vkCmdBindPipeline" => bind_pipeline as *const c_void,
        b"vkCmdBindDescriptorSets" => bind_sets as *const c_void,
        b"vkCmdPushConstants" => push as *const c_void,
        b"vkCmdDispatch" => dispatch as *const c_void,
        b"vkCmdPipelineBarrier" => barrier as *const c_void,
        _ => ptr::null(),
    }
}

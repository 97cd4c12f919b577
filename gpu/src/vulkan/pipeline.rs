#![allow(
    unsafe_code,
    reason = "Vulkan's functions are called, with objects that are destroyed once"
)]
//! A pipeline and what its jobs need, made once; and the commands of a job.

use super::object::Bound;
use super::{VulkanGpu, VulkanModule};
use ash::vk;
use contigo::Result;
use contigo::job::MAX_OPERANDS;
use core::ffi::CStr;

/// How many jobs are in the queue at once.
pub(super) const DEPTH: usize = 8;
/// [`DEPTH`] and [`MAX_OPERANDS`], as Vulkan counts.
const DEPTH_U32: u32 = 8;
const _: () = assert!(DEPTH_U32 as usize == DEPTH && MAX_OPERANDS == 16, "counts in two types");

/// The objects of a job in one slot. Null where it was not made.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    pub(super) commands: vk::CommandBuffer,
    set: vk::DescriptorSet,
    pub(super) fence: vk::Fence,
}

/// A pipeline, and what its jobs need. Its owner destroys it.
pub(super) struct Pipeline {
    pub(super) module: VulkanModule,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    command_pool: vk::CommandPool,
    descriptor_pool: vk::DescriptorPool,
    pub(super) slots: [Slot; DEPTH],
}

impl Pipeline {
    /// Before it is made.
    pub(super) fn none(module: &VulkanModule) -> Self {
        Self {
            module: module.clone(),
            set_layout: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            command_pool: vk::CommandPool::null(),
            descriptor_pool: vk::DescriptorPool::null(),
            slots: [Slot::default(); DEPTH],
        }
    }

    fn gpu(&self) -> &'static VulkanGpu {
        self.module.gpu()
    }

    /// Makes it, of the entry point `entry`, which the module has. After an error, what was made
    /// before is to be destroyed all the same.
    pub(super) fn make(&mut self, entry: &CStr, operands: usize, push_bytes: u32) -> Result<()> {
        self.make_pipeline(entry, operands, push_bytes)?;
        self.make_slots(operands)
    }

    fn make_pipeline(&mut self, entry: &CStr, operands: usize, push_bytes: u32) -> Result<()> {
        let (gpu, device) = (self.gpu(), self.gpu().device());
        let binding = |binding| {
            let kind = vk::DescriptorType::STORAGE_BUFFER;
            let at =
                vk::DescriptorSetLayoutBinding::default().binding(binding).descriptor_type(kind);
            at.descriptor_count(1).stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings: Vec<_> = (0..).map(binding).take(operands).collect();
        let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the structures are whole, and live until the call returns; so below.
        self.set_layout = gpu.check("vkCreateDescriptorSetLayout", unsafe {
            device.create_descriptor_set_layout(&create, None)
        })?;
        let (sets, range) = (
            [self.set_layout],
            vk::PushConstantRange::default()
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .size(push_bytes),
        );
        let ranges = [range];
        // A range of no bytes is none (VUID-VkPushConstantRange-size-00296).
        let ranges = if push_bytes == 0 { &[][..] } else { &ranges[..] };
        let create =
            vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(ranges);
        // SAFETY: the layout is this device's.
        self.layout = gpu.check("vkCreatePipelineLayout", unsafe {
            device.create_pipeline_layout(&create, None)
        })?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(self.module.raw())
            .name(entry);
        let create = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
        // SAFETY: the module has the entry point, and resources as in the layout (the contract of
        // `VulkanKernel::new`).
        let made =
            unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &create, None) };
        let made = made
            .map_err(|(_, result)| result)
            .and_then(|made| made.first().copied().ok_or(vk::Result::ERROR_UNKNOWN));
        self.pipeline = gpu.check("vkCreateComputePipelines", made)?;
        Ok(())
    }

    fn make_slots(&mut self, operands: usize) -> Result<()> {
        let (gpu, device) = (self.module.gpu(), self.module.gpu().device());
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        let create =
            vk::CommandPoolCreateInfo::default().flags(flags).queue_family_index(gpu.family);
        // SAFETY: the structures are whole, and live until the call returns; so below.
        self.command_pool =
            gpu.check("vkCreateCommandPool", unsafe { device.create_command_pool(&create, None) })?;
        // 16 operands at most.
        let count = DEPTH_U32.saturating_mul(u32::try_from(operands).unwrap_or(u32::MAX));
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(count)];
        let create = vk::DescriptorPoolCreateInfo::default().max_sets(DEPTH_U32).pool_sizes(&sizes);
        // SAFETY: as above.
        self.descriptor_pool = gpu.check("vkCreateDescriptorPool", unsafe {
            device.create_descriptor_pool(&create, None)
        })?;
        let level = vk::CommandBufferLevel::PRIMARY;
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.command_pool)
            .level(level)
            .command_buffer_count(DEPTH_U32);
        // SAFETY: the pool is this value's alone.
        let commands = gpu.check("vkAllocateCommandBuffers", unsafe {
            device.allocate_command_buffers(&allocate)
        })?;
        let layouts = [self.set_layout; DEPTH];
        let allocate = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(self.descriptor_pool)
            .set_layouts(&layouts);
        // SAFETY: as above; the pool has room for so many sets.
        let sets = gpu.check("vkAllocateDescriptorSets", unsafe {
            device.allocate_descriptor_sets(&allocate)
        })?;
        for ((slot, commands), set) in self.slots.iter_mut().zip(commands).zip(sets) {
            // SAFETY: as above.
            let fence = gpu.check("vkCreateFence", unsafe {
                device.create_fence(&vk::FenceCreateInfo::default(), None)
            })?;
            *slot = Slot { commands, set, fence };
        }
        Ok(())
    }

    /// Records a job into a slot, with its fence reset. Nothing of the heap is taken here.
    ///
    /// # Safety
    /// The slot is one of these, and nothing of it is in the queue. The shader has the operands, as
    /// many, and the words.
    pub(super) unsafe fn record(
        &self,
        slot: Slot,
        grid: [u32; 3],
        operands: &[Bound],
        words: &[u8],
    ) -> Result<()> {
        let Slot { commands, set, fence } = slot;
        let (gpu, device) = (self.gpu(), self.gpu().device());
        // SAFETY: nothing of the slot is in the queue (the caller's promise), and its objects are
        // its owner's alone; so below.
        gpu.check("vkResetFences", unsafe { device.reset_fences(&[fence]) })?;
        Self::bind(gpu, set, operands);
        let begin = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // This resets what was recorded before (Vulkan 1.3, "Command Buffer Recording").
        // SAFETY: as above; the pool lets a buffer be reset.
        gpu.check("vkBeginCommandBuffer", unsafe {
            device.begin_command_buffer(commands, &begin)
        })?;
        // SAFETY: the buffer is being recorded, and each object is this device's.
        unsafe { self.commands(commands, set, grid, operands, words) }
        // SAFETY: as above.
        gpu.check("vkEndCommandBuffer", unsafe { device.end_command_buffer(commands) })
    }

    /// Says where the operands are.
    fn bind(gpu: &VulkanGpu, set: vk::DescriptorSet, operands: &[Bound]) {
        for (binding, operand) in (0..).zip(operands) {
            let at = [vk::DescriptorBufferInfo {
                buffer: operand.object.buffer,
                offset: operand.offset,
                range: operand.len_bytes,
            }];
            let kind = vk::DescriptorType::STORAGE_BUFFER;
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(binding)
                .descriptor_type(kind)
                .buffer_info(&at);
            // SAFETY: the set is in no command buffer that is pending. Offset and range are inside
            // the buffer (`Objects::find`), aligned and not too long (`check`).
            unsafe { gpu.device().update_descriptor_sets(&[write], &[]) }
        }
    }

    /// The commands of a job.
    ///
    /// # Safety
    /// The buffer is being recorded.
    unsafe fn commands(
        &self,
        commands: vk::CommandBuffer,
        set: vk::DescriptorSet,
        grid: [u32; 3],
        operands: &[Bound],
        words: &[u8],
    ) {
        use vk::{AccessFlags as Access, PipelineStageFlags as Stage};
        let (gpu, device, point) =
            (self.gpu(), self.gpu().device(), vk::PipelineBindPoint::COMPUTE);
        let mut barriers = [vk::BufferMemoryBarrier::default(); MAX_OPERANDS];
        let mut barrier =
            |stages: (Stage, Stage), of: &dyn Fn(&Bound) -> vk::BufferMemoryBarrier<'static>| {
                barriers
                    .iter_mut()
                    .zip(operands)
                    .for_each(|(barrier, operand)| *barrier = of(operand));
                let these = barriers.get(..operands.len()).unwrap_or(&barriers);
                // SAFETY: the buffer is being recorded, outside a render pass; the ranges are
                // inside their buffers.
                unsafe {
                    device.cmd_pipeline_barrier(
                        commands,
                        stages.0,
                        stages.1,
                        vk::DependencyFlags::empty(),
                        &[],
                        these,
                        &[],
                    )
                }
            };
        // This shader sees the writes of the host, and of jobs before this one. For a dma-buf it is
        // the acquire from its owner, whose accesses are named nowhere (Vulkan 1.3, "Queue Family
        // Ownership Transfer").
        barrier((Stage::HOST | Stage::COMPUTE_SHADER, Stage::COMPUTE_SHADER), &|operand| {
            let (from, to) = operand.families(gpu.family);
            operand.barrier(Access::HOST_WRITE | Access::SHADER_WRITE, operand.accesses(), from, to)
        });
        // SAFETY: the pipeline computes.
        unsafe { device.cmd_bind_pipeline(commands, point, self.pipeline) }
        // SAFETY: the set is of the layout's.
        unsafe { device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[set], &[]) }
        if !words.is_empty() {
            // SAFETY: the layout has a range of so many bytes.
            unsafe {
                device.cmd_push_constants(
                    commands,
                    self.layout,
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    words,
                )
            }
        }
        let [x, y, z] = grid;
        // SAFETY: the counts are within the device's (`check`), and all that the shader uses is
        // bound.
        unsafe { device.cmd_dispatch(commands, x, y, z) }
        // The host sees the shader's writes, and may read or write there next. A fence alone makes
        // nothing visible to it ("Host Access to Device Memory Objects").
        barrier((Stage::COMPUTE_SHADER, Stage::HOST), &|operand| {
            let (to, from) = operand.families(gpu.family);
            operand.barrier(
                operand.accesses() & Access::SHADER_WRITE,
                Access::HOST_READ | Access::HOST_WRITE,
                from,
                to,
            )
        });
    }

    /// Destroys all of it that was made: each `vkDestroy*` takes null for nothing.
    ///
    /// # Safety
    /// Nothing of it is in the queue, and it is destroyed once.
    pub(super) unsafe fn destroy(&self) {
        let device = self.gpu().device();
        // SAFETY: each object is this device's or null, in no use, and is destroyed once. A pool
        // takes its buffers or sets with it.
        unsafe {
            self.slots.iter().for_each(|slot| device.destroy_fence(slot.fence, None));
            device.destroy_descriptor_pool(self.descriptor_pool, None);
            device.destroy_command_pool(self.command_pool, None);
            device.destroy_pipeline(self.pipeline, None);
            device.destroy_pipeline_layout(self.layout, None);
            device.destroy_descriptor_set_layout(self.set_layout, None);
        }
    }
}

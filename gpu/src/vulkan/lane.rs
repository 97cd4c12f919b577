#![allow(
    unsafe_code,
    reason = "Vulkan's functions are called, with objects that are destroyed once"
)]
//! A pipeline with some jobs in the device's queue, and a fence behind each.

use super::{VulkanGpu, VulkanModule, object::Bound};
use ash::vk;
use contigo::{
    Error, Result, Wait,
    hw::poll_until,
    job::MAX_OPERANDS,
    linux::{Spin, same_process},
};
use core::{ffi::CStr, mem, time::Duration};
use std::collections::VecDeque;

/// How many jobs are in the queue at once.
pub(super) const DEPTH: usize = 8;
/// [`DEPTH`] and [`MAX_OPERANDS`], as Vulkan counts.
const DEPTH_U32: u32 = 8;
const _: () = assert!(DEPTH_U32 as usize == DEPTH && MAX_OPERANDS == 16, "counts in two types");
/// How long the drop of a kernel waits for the end of its jobs: a job that was forgotten may be
/// about to end.
const DROP_LIMIT: Duration = Duration::from_millis(100);

/// The objects of a job in one slot. Null where it was not made.
#[derive(Clone, Copy, Default)]
struct Slot {
    commands: vk::CommandBuffer,
    set: vk::DescriptorSet,
    fence: vk::Fence,
}

/// A pipeline, and what its jobs need: all of it is made once.
pub(super) struct Lane {
    /// Dropped behind the pipeline, which is destroyed in `drop`.
    module: VulkanModule,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    command_pool: vk::CommandPool,
    descriptor_pool: vk::DescriptorPool,
    slots: [Slot; DEPTH],
    /// The slots whose fence was given to the queue and not told, oldest first.
    in_flight: VecDeque<usize>,
    /// All that is in flight has ended, and the next job begins anew.
    stopped: bool,
    pub(super) stop_limit: Duration,
    /// It did not end when it should have, and no call has seen its end since.
    hung: bool,
}

impl Lane {
    /// The pipeline of the entry point `entry`, which the module has.
    ///
    /// # Errors
    /// [`Error::Gpu`]. [`Error::Forked`].
    pub(super) fn new(
        module: &VulkanModule,
        entry: &CStr,
        operands: usize,
        push_bytes: u32,
        stop_limit: Duration,
    ) -> Result<Self> {
        same_process()?;
        // From here on dropping destroys what was made: each vkDestroy* takes null for nothing.
        let mut this = Self {
            module: module.clone(),
            set_layout: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            command_pool: vk::CommandPool::null(),
            descriptor_pool: vk::DescriptorPool::null(),
            slots: [Slot::default(); DEPTH],
            in_flight: VecDeque::with_capacity(DEPTH),
            stopped: false,
            stop_limit,
            hung: false,
        };
        this.make_pipeline(entry, operands, push_bytes)?;
        this.make_slots(operands)?;
        Ok(this)
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

    /// The device.
    pub(super) fn gpu(&self) -> &'static VulkanGpu {
        self.module.gpu()
    }

    /// Records a job into `slot`, and puts it into the queue. Nothing of the heap is taken here.
    ///
    /// # Errors
    /// [`Error::QueueFull`]; [`Error::Contended`]; [`Error::Gpu`]; [`Error::Forked`]. Jobs that
    /// were put there before stay there.
    ///
    /// # Safety
    /// The shader has the operands, as many, and the words. Its bytes belong to the device until
    /// `poll` tells of the slot, or `stop` returns `Ok`.
    pub(super) unsafe fn submit(
        &mut self,
        slot: usize,
        grid: [u32; 3],
        operands: &[Bound],
        words: &[u8],
    ) -> Result<()> {
        same_process()?;
        if self.stopped {
            self.in_flight.clear();
            self.stopped = false;
        }
        let full = Error::QueueFull { depth: DEPTH };
        let free = !self.in_flight.contains(&slot) && self.in_flight.len() < DEPTH;
        let Slot { commands, set, fence } =
            self.slots.get(slot).copied().filter(|_| free).ok_or(full)?;
        let (gpu, device) = (self.gpu(), self.gpu().device());
        // SAFETY: the slot's last job has ended, so that nothing of it is in the queue. Its objects
        // are this value's alone (`&mut`); so below.
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
        unsafe { self.record(commands, set, grid, operands, words) }
        // SAFETY: as above.
        gpu.check("vkEndCommandBuffer", unsafe { device.end_command_buffer(commands) })?;
        // SAFETY: the fence was reset and is in no queue; both stay until it is signalled (`drop`).
        // The commands touch the operands, which belong to the device.
        unsafe { gpu.submit(commands, fence) }?;
        // There is room: the heap is left alone.
        self.in_flight.push_back(slot);
        Ok(())
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
    unsafe fn record(
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
                // SAFETY: the buffer is being recorded, outside a render pass; the ranges are inside
                // their buffers.
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

    /// The slot of the oldest job, where it has ended. `None`: it goes on, or there is none.
    ///
    /// # Errors
    /// [`Error::Gpu`]. [`Error::Forked`].
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Option<usize>> {
        same_process()?;
        let Some((slot, fence)) =
            self.in_flight.front().and_then(|slot| Some((*slot, self.slots.get(*slot)?.fence)))
        else {
            return Ok(None);
        };
        let (gpu, mut answer) = (self.gpu(), Ok(false));
        poll_until(&Spin, timeout, |_| {
            // SAFETY: the fence is this device's.
            answer = unsafe { gpu.is_signalled(fence) };
            answer != Ok(false)
        })?;
        if !gpu.check("vkGetFenceStatus", answer)? {
            return Ok(None);
        }
        self.in_flight.pop_front();
        Ok(Some(slot))
    }

    /// Waits for the end of all that is in the queue of this kernel: a dispatch cannot be stopped.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]. [`Error::Forked`]: the jobs are the parent's.
    pub(super) fn stop(&mut self, device: &'static str) -> Result<()> {
        same_process()?;
        let since_us = Spin.now_us();
        self.ended(self.stop_limit).map_err(|code| {
            let waited_us =
                u32::try_from(Spin.now_us().saturating_sub(since_us)).unwrap_or(u32::MAX);
            Error::WillNotStop { device, status: code.as_raw().cast_unsigned(), waited_us }
        })?;
        self.stopped = true;
        Ok(())
    }

    /// Waits until every job has ended, and keeps in mind where one has not. `Err` is the last
    /// answer.
    fn ended(&mut self, timeout: Duration) -> core::result::Result<(), vk::Result> {
        let gpu = self.gpu();
        let mut answer = vk::Result::NOT_READY;
        let fences = || {
            self.in_flight.iter().filter_map(|slot| self.slots.get(*slot)).map(|slot| slot.fence)
        };
        // A limit that is too long is an error, and the answer stays.
        let _ = poll_until(&Spin, timeout, |_| {
            // SAFETY: the fences are this device's.
            let all = fences()
                .try_fold(true, |all, fence| Ok(all && unsafe { gpu.is_signalled(fence) }?));
            answer = match all {
                // Of a lost device nothing is believed any more.
                _ if gpu.is_lost() => vk::Result::ERROR_DEVICE_LOST,
                Ok(true) => vk::Result::SUCCESS,
                Ok(false) => vk::Result::NOT_READY,
                Err(result) => result,
            };
            matches!(answer, vk::Result::SUCCESS | vk::Result::ERROR_DEVICE_LOST)
        });
        let ended = answer == vk::Result::SUCCESS;
        if self.hung == ended {
            self.hung = !ended;
            gpu.hung().change(self.hung);
        }
        if ended { Ok(()) } else { Err(answer) }
    }

    /// Can all of it be destroyed? Where a job goes on, the device looks at its fence from here on.
    fn can_go(&mut self) -> bool {
        if same_process().is_err() {
            return false;
        }
        if self.ended(DROP_LIMIT).is_err() {
            if let Some(slot) = self.in_flight.back().and_then(|slot| self.slots.get(*slot)) {
                self.gpu().hung().forget(slot.fence);
            }
            return false;
        }
        !self.gpu().is_hung()
    }
}

impl Drop for Lane {
    /// Destroys all of it; or keeps it, with the module, where a job has not ended, and in a child
    /// of fork.
    fn drop(&mut self) {
        if !self.can_go() {
            mem::forget(self.module.clone());
            return;
        }
        let device = self.gpu().device();
        for slot in self.slots {
            // SAFETY: each object is this device's or null, in no use, and is destroyed once; so
            // below. A pool takes its buffers or sets with it.
            unsafe { device.destroy_fence(slot.fence, None) }
        }
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_pool(self.descriptor_pool, None) }
        // SAFETY: as above.
        unsafe { device.destroy_command_pool(self.command_pool, None) }
        // SAFETY: as above.
        unsafe { device.destroy_pipeline(self.pipeline, None) }
        // SAFETY: as above.
        unsafe { device.destroy_pipeline_layout(self.layout, None) }
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) }
    }
}

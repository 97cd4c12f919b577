#![allow(unsafe_code, reason = "Vulkan's functions are called")]
//! One Vulkan device, opened for the life of the program.

use super::VulkanFacts;
use super::error::error;
use super::object::Object;
use crate::common::{Hung, acquire};
use crate::objects::Objects;
use ash::prelude::VkResult;
use ash::{ext, khr, vk};
use contigo::linux::same_process;
use contigo::{Align, Bus, Error, Port, Result};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use spin::Mutex;

/// One Vulkan device, with one queue that computes. It is opened once and stays open until the
/// program ends, so that what a job may still write is never taken from it. Any thread may use it.
///
/// A child of fork uses nothing of it, because Vulkan's drivers do not survive a fork. There
/// [`open`](Self::open), imports, modules and jobs answer [`Error::Forked`], and drops leak
/// everything. A child opens devices of its own only where its parent has neither used this module
/// nor called [`contigo::linux::same_process`].
///
/// ```no_run
/// use contigo::Region;
/// use contigo_gpu::vulkan::{VulkanGpu, VulkanMemory};
/// let gpu = VulkanGpu::open(0)?;
/// println!("{}: operands begin at multiples of {}", gpu.facts().name, gpu.align().bytes());
/// let region = Region::new(VulkanMemory::allocate(gpu, 1 << 20)?)?;
/// let frame = region.alloc(4096, gpu.align())?;
/// # drop(frame);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct VulkanGpu {
    facts: VulkanFacts,
    pub(super) driver: Driver,
    pub(super) objects: Objects<Object>,
    pub(super) family: u32,
    /// vkQueueSubmit wants one thread at a time (Vulkan 1.3, "Threading Behavior").
    queue: Mutex<vk::Queue>,
    pub(super) port: Port,
    /// Kernels with jobs that did not end when they should have. Of one that was dropped it is the
    /// newest job's fence, which is never destroyed. It is signalled when the kernel's older jobs
    /// have ended too (Vulkan 1.3, "Fences").
    pub(super) hung: Hung<vk::Fence>,
    /// A call said that the device is lost.
    lost: AtomicBool,
}

/// The driver's functions for one device, and what it says of its memory: all that a test puts in
/// the place of a real one.
pub(super) struct Driver {
    pub(super) device: ash::Device,
    pub(super) queue: vk::Queue,
    pub(super) host: ext::external_memory_host::DeviceFn,
    /// Where it imports dma-bufs.
    pub(super) fd: Option<khr::external_memory_fd::DeviceFn>,
    pub(super) memory_types: vk::PhysicalDeviceMemoryProperties,
    /// The features of buffers over the CPU's memory, and over a dma-buf.
    pub(super) features: [vk::ExternalMemoryFeatureFlags; 2],
}

/// The uses of a block: by a kernel, or by a copy of the GPU.
pub(super) const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// Memory by its pointer, and as a dma-buf.
pub(super) const HOST: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
pub(super) const DMA_BUF: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT;

impl VulkanGpu {
    pub(super) fn new(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        facts: VulkanFacts,
    ) -> Result<Self> {
        if let Some(refusal) = facts.refusal() {
            return Err(refusal);
        }
        let family = facts.compute_family.unwrap_or(0);
        let mut extensions = vec![ext::external_memory_host::NAME.as_ptr()];
        if facts.has_dma_buf {
            extensions.extend([
                khr::external_memory_fd::NAME.as_ptr(),
                ext::external_memory_dma_buf::NAME.as_ptr(),
            ]);
        }
        if facts.has_foreign_owners {
            extensions.push(ext::queue_family_foreign::NAME.as_ptr());
        }
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let features =
            vk::PhysicalDeviceFeatures::default().robust_buffer_access(facts.has_robust_access);
        let mut features_1_2 = vk::PhysicalDeviceVulkan12Features::default()
            .storage_buffer8_bit_access(facts.has_8bit_storage)
            .shader_int8(facts.has_8bit_integers);
        let mut create = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .enabled_features(&features);
        if facts.api_version >= (1, 2, 0) {
            create = create.push_next(&mut features_1_2);
        }
        // SAFETY: the device is one of this instance, which is never destroyed. It has the family,
        // the extensions and the features, as it said itself. The structures live until the call
        // returns.
        let device = unsafe { instance.create_device(physical, &create, None) };
        let device = device.map_err(|result| error("vkCreateDevice", result))?;
        // SAFETY: the device has one queue of this family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        // SAFETY: as for the device.
        let memory_types = unsafe { instance.get_physical_device_memory_properties(physical) };
        let features = [HOST, DMA_BUF].map(|handle| features_over(instance, physical, handle));
        let host = ext::external_memory_host::Device::new(instance, &device).fp().clone();
        let fd = facts
            .has_dma_buf
            .then(|| khr::external_memory_fd::Device::new(instance, &device).fp().clone());
        Self::of(facts, Driver { device, queue, host, fd, memory_types, features })
    }

    /// A device by its driver's functions.
    pub(super) fn of(facts: VulkanFacts, driver: Driver) -> Result<Self> {
        let (objects, family, queue) =
            (Objects::new()?, facts.compute_family.unwrap_or(0), Mutex::new(driver.queue));
        Ok(Self {
            port: objects.port("vulkan"),
            facts,
            driver,
            objects,
            family,
            queue,
            hung: Hung::none(),
            lost: AtomicBool::new(false),
        })
    }

    pub(super) const fn device(&self) -> &ash::Device {
        &self.driver.device
    }

    /// The facts that it tells of itself.
    #[must_use]
    pub const fn facts(&self) -> &VulkanFacts {
        &self.facts
    }

    /// The bus that its addresses are on: an address is one of its blocks and an offset in that.
    #[must_use]
    pub const fn bus(&self) -> Bus {
        self.objects.bus()
    }

    /// Its way to its own memory.
    #[must_use]
    pub const fn port(&self) -> Port {
        self.port
    }

    /// The alignment that a program allocates with: a multiple of a line, and of
    /// `minStorageBufferOffsetAlignment`. A kernel refuses an operand that begins elsewhere.
    #[must_use]
    pub fn align(&self) -> Align {
        // A power of two, 256 at most (Vulkan 1.3, "Limit Requirements").
        let bytes =
            usize::try_from(self.facts.min_storage_buffer_offset_alignment).unwrap_or(usize::MAX);
        Align::new(bytes).unwrap_or(Align::DLPACK).max(Align::LINE)
    }

    /// Puts a recorded job into the queue. `fence` is signalled behind it.
    ///
    /// # Safety
    /// Command buffer and fence are this device's, and stay until the fence is signalled. The fence
    /// is not signalled and in no queue. The commands touch only what they may.
    pub(super) unsafe fn submit(
        &self,
        commands: vk::CommandBuffer,
        fence: vk::Fence,
    ) -> Result<()> {
        let commands = [commands];
        let batch = [vk::SubmitInfo::default().command_buffers(&commands)];
        let queue = acquire(&self.queue)?;
        // SAFETY: the lock keeps other threads from the queue; the rest is the caller's promise.
        let answer = unsafe { self.driver.device.queue_submit(*queue, &batch, fence) };
        // Without memory the queue is as it was. Behind any other answer the device counts as lost:
        // it may or may not have the job (Vulkan 1.3, "Lost Device").
        const AS_BEFORE: [vk::Result; 2] =
            [vk::Result::ERROR_OUT_OF_HOST_MEMORY, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY];
        if answer.is_err_and(|result| !AS_BEFORE.contains(&result)) {
            self.lost.store(true, Ordering::Release);
        }
        self.check("vkQueueSubmit", answer)
    }

    /// Was `fence` signalled? Nothing is believed of a lost device, whose fences may be signalled
    /// with no job behind them (Vulkan 1.3, "Lost Device").
    ///
    /// # Safety
    /// The fence is this device's.
    pub(super) unsafe fn is_signalled(&self, fence: vk::Fence) -> VkResult<bool> {
        const LOST: VkResult<bool> = Err(vk::Result::ERROR_DEVICE_LOST);
        if self.is_lost() {
            return LOST;
        }
        // SAFETY: the caller's promise.
        let answer = unsafe { self.driver.device.get_fence_status(fence) };
        if answer == LOST {
            self.lost.store(true, Ordering::Release);
        }
        // Another thread may have been told of the loss since.
        if self.is_lost() { LOST } else { answer }
    }

    /// The result of `call`. A lost device is kept in mind: nothing of it is freed from then on.
    pub(super) fn check<T>(&self, call: &'static str, result: VkResult<T>) -> Result<T, Error> {
        result.map_err(|result| {
            if result == vk::Result::ERROR_DEVICE_LOST {
                self.lost.store(true, Ordering::Release);
            }
            error(call, result)
        })
    }

    /// Has a call said that the device is lost?
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Does a job not end, or is the device lost? Then it may still write, and everything stays. A
    /// kernel with a job that does not end keeps its buffers, and all memory of its device. So does
    /// a child of fork, to which nothing of the device belongs.
    ///
    /// A kernel whose jobs were forgotten counts too: dropping it waits 100 ms for them. Their ends
    /// are seen here, by a look at the driver, for 16 such kernels at once. With more of them the
    /// device hangs for ever. Memory that was dropped in between stays leaked.
    #[must_use]
    pub fn is_hung(&self) -> bool {
        if same_process().is_err() || self.is_lost() {
            return true;
        }
        // SAFETY: the fence is this device's, and is never destroyed.
        let has_ended = |fence: &vk::Fence| unsafe { self.is_signalled(*fence) } == Ok(true);
        // The look may have told of a loss.
        !self.hung.is_empty(has_ended) || self.is_lost()
    }
}

/// The features of a buffer over such memory, as the driver says.
fn features_over(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    handle: vk::ExternalMemoryHandleTypeFlags,
) -> vk::ExternalMemoryFeatureFlags {
    let ask = vk::PhysicalDeviceExternalBufferInfo::default().usage(USAGE).handle_type(handle);
    let mut answer = vk::ExternalBufferProperties::default();
    // SAFETY: the device is one of this instance; both structures are references.
    unsafe { instance.get_physical_device_external_buffer_properties(physical, &ask, &mut answer) }
    answer.external_memory_properties.external_memory_features
}

impl fmt::Debug for VulkanGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanGpu")
            .field("facts", &self.facts)
            .field("bus", &self.bus())
            .finish_non_exhaustive()
    }
}

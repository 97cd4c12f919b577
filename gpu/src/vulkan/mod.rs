//! Any memory of this process as a Vulkan device's, and a compute shader as a driver.
//!
//! ```text
//!   VulkanGpu::open ──► VulkanMemory::allocate, ::import ──► Region ──► Pool, Operand, Queue …
//!   one device          a Backend: bytes of this process,                              ▲
//!        │              and a VkBuffer over them                                       │
//!        └────────────► VulkanModule ──► VulkanKernel ─────────────────────────────────┘
//!                       SPIR-V           a Driver: 8 jobs in flight
//! ```
//!
//! **Nothing is copied.** The device imports the process's own pages
//! (`VK_EXT_external_memory_host`), or a dma-buf where its driver can. A GPU that shares the CPU's
//! memory then reads and writes the very same bytes; a card does so across the bus.
//!
//! **Owners.** A buffer belongs to the CPU or to a device, as everywhere here. Each job's commands
//! begin with a barrier from the host's writes to the shader's accesses. They end with one from the
//! shader's writes to the host's reads (Vulkan 1.3, "Pipeline Barriers"). Behind that its fence
//! says that the job has ended ("Fences"). The memory is always `HOST_COHERENT`, so no cache
//! needs maintenance.
//!
//! To import a host pointer "shares ownership of the memory between the host and the Vulkan
//! implementation" (`VkImportMemoryHostPointerInfoEXT`): no queue family takes it over, and the
//! host's barriers are enough. A dma-buf belongs to an owner outside Vulkan. So a job acquires
//! its operands there from `VK_QUEUE_FAMILY_FOREIGN_EXT` and releases them to it again ("Queue
//! Family Ownership Transfer").
//!
//! **What never ends.** No call waits for ever: fences are looked at, and never waited for. A job
//! that goes on after [`VulkanKernel::STOP_LIMIT`], and a lost device, keep their memory for ever
//! ([`VulkanGpu::is_hung`]).
//!
//! **The heap.** Vulkan's drivers allocate as they please, also in a job. This code takes nothing
//! of the heap in a job: what it needs was made with the kernel, or is on the stack.

mod error;
mod facts;
mod gpu;
mod import;
mod interface;
mod kernel;
mod lane;
mod launch;
mod loader;
mod memory;
mod module;
mod names;
mod object;
mod pipeline;
mod spirv;
#[cfg(test)]
mod tests;

pub use facts::{VulkanDeviceType, VulkanFacts};
pub use gpu::VulkanGpu;
pub use kernel::VulkanKernel;
pub use memory::VulkanMemory;
pub use module::VulkanModule;
pub use names::KIND;

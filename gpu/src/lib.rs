//! Contigo's memory as a GPU's, through Vulkan and OpenCL. On a GPU that shares the CPU's memory
//! (an APU, a Mali, an Adreno, a Jetson) nothing is copied.
//!
//! ```text
//!   VulkanGpu::open ──► VulkanMemory::allocate, ::import ──► Region ──► Pool, Operand, Queue …
//!   OpenClGpu::open     OpenClMemory::allocate, ::import
//!        └────────────► VulkanKernel, OpenClKernel: a Driver for that Queue
//! ```
//!
//! **No addresses.** A GPU behind these interfaces takes objects. So its memory is on a bus of its
//! own ([`Bus::Objects`](contigo::Bus::Objects)), on which an address is an object and an offset in
//! it. Nothing else understands that address: an FPGA's driver refuses it. A tensor of such memory
//! has the object as its handle, and keeps its byte offset.
//!
//! **By names.** [`register`] brings `vulkan`, `vulkan:1`, `opencl` and `opencl:1` to
//! [`contigo::names`], for memory and for devices, in every language of that program.
//!
//! **The heap.** The interfaces' bindings and their drivers allocate as they please, so this is a
//! crate of its own.
mod common;
mod objects;
#[cfg(feature = "opencl")]
pub mod opencl;
mod pages;
#[cfg(feature = "vulkan")]
pub mod vulkan;

pub use pages::Pages;

/// Brings the names of both interfaces to [`contigo::names`], for the rest of the program's life.
/// Neither library is loaded before a name is opened.
///
/// # Errors
/// [`Error::Contended`](contigo::Error::Contended).
pub fn register() -> contigo::Result<()> {
    #[cfg(feature = "vulkan")]
    contigo::names::provide(&vulkan::KIND)?;
    #[cfg(feature = "opencl")]
    contigo::names::provide(&opencl::KIND)?;
    Ok(())
}

#![allow(unsafe_code, reason = "Vulkan's functions are called, with memory that a backend owns")]
//! How bytes that a backend has already become a device's memory, with a buffer over all of them.

use super::VulkanGpu;
use super::gpu::{DMA_BUF, HOST, USAGE};
use super::object::Object;
use ash::vk;
use contigo::linux::same_process;
use contigo::mem::{Mapping, SyncScope};
use contigo::{Align, Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// A device's memory, and one buffer over all of it. Its owner frees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Imported {
    pub(super) memory: vk::DeviceMemory,
    pub(super) object: Object,
}

impl Imported {
    /// Takes both from the device, once; or leaks them beside a job that does not end, because a
    /// driver may wait for it here. No job can name a buffer that was leaked, so that the bytes
    /// behind it are free all the same.
    ///
    /// # Safety
    /// No job uses them any more, and they are freed once.
    pub(super) unsafe fn free(&self, gpu: &VulkanGpu) {
        if gpu.is_hung() {
            return;
        }
        // SAFETY: made of this device, in no use, and freed once (the caller's promise). The buffer
        // goes before its memory, and null memory is none (vkFreeMemory).
        unsafe {
            gpu.device().destroy_buffer(self.object.buffer, None);
            gpu.device().free_memory(self.memory, None);
        }
    }
}

/// Do pointer and length begin and end where the driver asks for it?
/// (VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749,
/// VUID-VkMemoryAllocateInfo-allocationSize-01745.)
pub(super) fn aligned(addr: u64, len_bytes: u64, align: Align, most: u64) -> Result<()> {
    let align_bytes = align.bytes();
    if !align.divides(addr) {
        return Err(Error::Misaligned { addr, align_bytes });
    }
    let min = align_bytes as u64;
    if !align.divides(len_bytes) || len_bytes == 0 || len_bytes > most {
        return Err(Error::Argument {
            name: "len_bytes",
            value: len_bytes,
            min,
            max: most,
            multiple_of: min,
        });
    }
    Ok(())
}

/// The type of memory, among those whose bits are in `allowed`: one that the host sees coherently,
/// cached where there is one. `None`: there is no such type.
pub(super) fn memory_type(types: &[vk::MemoryType], allowed: u32) -> Option<u32> {
    const COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
        vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
            | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
    );
    let found = |wanted: vk::MemoryPropertyFlags| {
        (0..32)
            .zip(types)
            .find(|(at, kind)| allowed >> at & 1 == 1 && kind.property_flags.contains(wanted))
            .map(|(at, _)| at)
    };
    found(COHERENT | vk::MemoryPropertyFlags::HOST_CACHED).or_else(|| found(COHERENT))
}

/// Imports the bytes of `mapping` by their pointer.
///
/// # Safety
/// The bytes are mapped until the result is freed. No other code reads or writes what a job has.
pub(super) unsafe fn host(gpu: &VulkanGpu, mapping: &Mapping) -> Result<Imported> {
    same_process()?;
    let facts = gpu.facts();
    let asked = usize::try_from(facts.min_imported_host_pointer_alignment).unwrap_or(usize::MAX);
    let unexpected =
        |_| Error::Unexpected { name: "minImportedHostPointerAlignment", value: asked as u64 };
    let align = Align::new(asked).map_err(unexpected)?;
    aligned(
        mapping.cpu.as_ptr().addr() as u64,
        mapping.len_bytes as u64,
        align,
        facts.max_allocation_bytes,
    )?;

    let pointer = mapping.cpu.as_ptr().cast();
    let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
    let ask = gpu.driver.host.get_memory_host_pointer_properties_ext;
    // SAFETY: the extension is enabled, the pointer is aligned, and is what the handle type says
    // (the caller's promise). The result is a reference.
    let answer = unsafe { ask(gpu.device().handle(), HOST, pointer, &raw mut properties) };
    gpu.check("vkGetMemoryHostPointerPropertiesEXT", answer.result())?;
    let import =
        vk::ImportMemoryHostPointerInfoEXT::default().handle_type(HOST).host_pointer(pointer);
    // SAFETY: pointer and length are aligned and mapped.
    unsafe {
        bound(
            gpu,
            HOST,
            mapping.len_bytes,
            properties.memory_type_bits,
            vk::QUEUE_FAMILY_IGNORED,
            import,
            None,
        )
    }
}

/// Imports a dma-buf that holds the bytes of `mapping`.
///
/// # Safety
/// The dma-buf holds `mapping.len_bytes`. No other code reads or writes what a job has.
pub(super) unsafe fn dma_buf(
    gpu: &VulkanGpu,
    mapping: &Mapping,
    fd: BorrowedFd<'_>,
) -> Result<Imported> {
    let importer = can_import_dma_buf(gpu, mapping)?;
    let mut properties = vk::MemoryFdPropertiesKHR::default();
    let duplicate = fd.try_clone_to_owned();
    let os = |error: std::io::Error| Error::Os {
        call: "fcntl(F_DUPFD_CLOEXEC)",
        errno: error.raw_os_error().unwrap_or(0),
    };
    let duplicate = duplicate.map_err(os)?;
    let raw = duplicate.as_raw_fd();
    // SAFETY: the extension is enabled, and the descriptor is a dma-buf's (`Backend`, 7).
    let asked = unsafe {
        (importer.get_memory_fd_properties_khr)(
            gpu.device().handle(),
            DMA_BUF,
            raw,
            &raw mut properties,
        )
    };
    gpu.check("vkGetMemoryFdPropertiesKHR", asked.result())?;
    let owner = if gpu.facts().has_foreign_owners {
        vk::QUEUE_FAMILY_FOREIGN_EXT
    } else {
        vk::QUEUE_FAMILY_EXTERNAL
    };
    let import = vk::ImportMemoryFdInfoKHR::default().handle_type(DMA_BUF).fd(raw);
    // SAFETY: the dma-buf holds so many bytes.
    unsafe {
        bound(
            gpu,
            DMA_BUF,
            mapping.len_bytes,
            properties.memory_type_bits,
            owner,
            import,
            Some(duplicate),
        )
    }
}

/// The functions for a dma-buf, where it can be imported.
pub(super) fn can_import_dma_buf<'g>(
    gpu: &'g VulkanGpu,
    mapping: &Mapping,
) -> Result<&'g ash::khr::external_memory_fd::DeviceFn> {
    same_process()?;
    // The kernel's word (`coherent`) is about another device, and says nothing about this one.
    if mapping.scope != SyncScope::Coherent {
        let (what, fix) = (
            "the CPU's view of this dma-buf is not coherent",
            "import it by its pointer, which the driver keeps coherent",
        );
        return Err(Error::Unsupported { what, fix });
    }
    gpu.driver.fd.as_ref().ok_or(Error::Unsupported {
        what: "this Vulkan device does not import dma-bufs (VK_EXT_external_memory_dma_buf)",
        fix: "import the memory by its pointer, or use another device",
    })
}

/// Makes a buffer of `len_bytes`, imports memory for it, and binds the two. `fd` is the descriptor
/// in `import`: the driver owns it once it was imported (`VkImportMemoryFdInfoKHR`); before that an
/// error closes it.
///
/// # Safety
/// `import` is of the handle type, and describes so many bytes, of which `allowed` are the types.
unsafe fn bound<I: vk::ExtendsMemoryAllocateInfo>(
    gpu: &VulkanGpu,
    handle: vk::ExternalMemoryHandleTypeFlags,
    len_bytes: usize,
    allowed: u32,
    owner: u32,
    mut import: I,
    fd: Option<OwnedFd>,
) -> Result<Imported> {
    let size = len_bytes as u64;
    let dedicated = is_dedicated(gpu, handle)?;
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(handle);
    let create = vk::BufferCreateInfo::default()
        .size(size)
        .usage(USAGE)
        .sharing_mode(vk::SharingMode::EXCLUSIVE)
        .push_next(&mut external);
    // SAFETY: the size is not 0, and the handle type can be imported for this usage
    // (VUID-VkBufferCreateInfo-pNext-00920).
    let buffer =
        gpu.check("vkCreateBuffer", unsafe { gpu.device().create_buffer(&create, None) })?;
    let object = Object { buffer, owner };
    // From here on an error frees what there is, unless the device hangs. Null memory is no memory.
    let mut made = Imported { memory: vk::DeviceMemory::null(), object };
    let bind = || {
        // SAFETY: the buffer was just made.
        let needs = unsafe { gpu.device().get_buffer_memory_requirements(buffer) };
        if needs.size > size {
            let line_bytes = usize::try_from(needs.alignment).unwrap_or(usize::MAX);
            let need_bytes = usize::try_from(needs.size).unwrap_or(usize::MAX);
            return Err(Error::BlockSize { len_bytes, need_bytes, line_bytes });
        }
        let types = gpu.driver.memory_types.memory_types_as_slice();
        let kind = memory_type(types, allowed & needs.memory_type_bits).ok_or(Error::Unsupported {
            what: "this Vulkan device has no coherent type of memory (HOST_VISIBLE, HOST_COHERENT) \
                   for these bytes",
            fix: "import other memory, or use another device",
        })?;
        let mut alone = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let mut allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(size)
            .memory_type_index(kind)
            .push_next(&mut import);
        if dedicated {
            allocate = allocate.push_next(&mut alone);
        }
        // SAFETY: the import is whole (the caller's promise), of a type that both sides allow.
        made.memory = gpu
            .check("vkAllocateMemory", unsafe { gpu.device().allocate_memory(&allocate, None) })?;
        let _ = fd.map(IntoRawFd::into_raw_fd);
        // SAFETY: both were just made, of the same handle type, and the memory has as many bytes as
        // the buffer needs (VUID-vkBindBufferMemory-memory-02985).
        gpu.check("vkBindBufferMemory", unsafe {
            gpu.device().bind_buffer_memory(buffer, made.memory, 0)
        })
    };
    let done = bind();
    // SAFETY: no job has seen them, and no other code frees them.
    done.inspect_err(|_| unsafe { made.free(gpu) }).map(|()| made)
}

/// Does a buffer of such memory need an allocation of its own?
fn is_dedicated(gpu: &VulkanGpu, handle: vk::ExternalMemoryHandleTypeFlags) -> Result<bool> {
    let [host, dma_buf] = gpu.driver.features;
    let features = if handle == HOST { host } else { dma_buf };
    if !features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE) {
        let (what, fix) = (
            "this Vulkan device imports no such memory for a shader's buffers",
            "use another device, or its newer driver",
        );
        return Err(Error::Unsupported { what, fix });
    }
    Ok(features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vk::MemoryPropertyFlags as Flags;

    #[test]
    fn misaligned_import_tells_its_numbers() {
        let align = Align::PAGE;
        let refused = |addr, len| aligned(addr, len, align, 1 << 20).err();
        assert_eq!(refused(0x1_0000, 0x1000), None);
        assert_eq!(
            refused(0x1_0040, 0x1000),
            Some(Error::Misaligned { addr: 0x1_0040, align_bytes: 4096 })
        );
        for value in [0, 0x1001, 0x20_0000] {
            let expected = Error::Argument {
                name: "len_bytes",
                value,
                min: 4096,
                max: 1 << 20,
                multiple_of: 4096,
            };
            assert_eq!(refused(0x1_0000, value), Some(expected));
        }
    }

    #[test]
    fn memory_type_prefers_coherent_and_cached() {
        let kind = |property_flags| vk::MemoryType { property_flags, heap_index: 0 };
        let coherent = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        let types = [
            kind(Flags::DEVICE_LOCAL),
            kind(Flags::HOST_VISIBLE | Flags::HOST_CACHED),
            kind(coherent),
            kind(coherent | Flags::HOST_CACHED),
        ];
        assert_eq!(memory_type(&types, 0b1111), Some(3));
        assert_eq!(memory_type(&types, 0b0111), Some(2));
        assert_eq!(
            (memory_type(&types, 0b0011), memory_type(&types, 0), memory_type(&[], u32::MAX)),
            (None, None, None)
        );
    }
}

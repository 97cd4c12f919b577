//! Memory of every kind, imported: the very same bytes, and what comes back.

use super::{
    LIMIT, gpu, kernel,
    shaders::{XOR, xor},
    skipped, with_shader,
};
use contigo::{
    Backend, Bus, Direction, Error, Queue, Region,
    dlpack::{ByteOffset, DataType, Shape, TensorSpec, TensorTable},
    job::Launch,
    linux::memory::HugeTlb,
    mem::{Api, Mapping},
    names::{DeviceName, MemoryName},
    sim::SimBoard,
    types::{BaseAddr, TensorRule},
};
use contigo_gpu::{
    Pages,
    vulkan::{VulkanGpu, VulkanKernel, VulkanMemory},
};
use std::{os::fd::OwnedFd, ptr::NonNull};

/// A shader writes `0..` XOR 1 into memory that was imported, and it is read by the pointer that
/// the backend had before.
fn the_same_bytes<B: Backend + 'static>(
    gpu: &'static VulkanGpu,
    queue: &mut Queue<VulkanKernel>,
    backend: B,
) {
    let Mapping { cpu, len_bytes, .. } = backend.mapping();
    let imported = VulkanMemory::import(gpu, backend).unwrap();
    let mapping = imported.mapping();
    assert_eq!((mapping.cpu, mapping.len_bytes, mapping.bus), (cpu, len_bytes, gpu.bus()));
    let handle = imported.handle().unwrap();
    assert_eq!((handle.api, handle.device_id), (Api::Vulkan, 0));
    assert_ne!(handle.raw, 0);
    let region = Region::new(imported).unwrap();
    let [mut input, output] = [(); 2].map(|()| region.alloc(4_096, gpu.align()).unwrap());
    input.view_mut::<u32>().unwrap().iter_mut().zip(0..).for_each(|(word, value)| *word = value);
    let words = Launch::of(16, 64).with(&[1_024, 1]);
    let [input, output] =
        queue.run([input.to_device(..), output.from_device(..)], &words, LIMIT).unwrap().buffers;
    // SAFETY: no code writes while the buffer is the CPU's.
    let seen = |at| unsafe { cpu.cast::<u32>().add(at).read_volatile() };
    for index in 0..1_024_u32 {
        let at = usize::try_from(index).unwrap();
        assert_eq!((seen(at), seen(1_024 + at)), (index, index ^ 1), "word {index}");
    }
    drop((input, output));
}

#[test]
fn an_import_is_the_very_same_bytes() {
    let Some((gpu, module)) = with_shader("memory::an_import_is_the_very_same_bytes", XOR) else {
        return;
    };
    let mut queue = Queue::new(kernel(&module, xor()), 1).unwrap();
    the_same_bytes(gpu, &mut queue, Pages::new(1).unwrap());
    let board = SimBoard::new(1);
    the_same_bytes(gpu, &mut queue, board.memory(64 << 10).unwrap());
    // A second device of the same bytes.
    the_same_bytes(gpu, &mut queue, VulkanMemory::allocate(gpu, 64 << 10).unwrap());
    match HugeTlb::new(2 << 20) {
        Ok(huge) => the_same_bytes(gpu, &mut queue, huge),
        Err(error) => {
            skipped("memory::an_import_is_the_very_same_bytes, of a huge page", &error.to_string())
        }
    }
}

#[test]
fn block_addresses_are_unique_and_reused() {
    let Some(gpu) = gpu("memory::block_addresses_are_unique_and_reused") else {
        return;
    };
    let [one, two] = [(); 2].map(|()| VulkanMemory::allocate(gpu, 1).unwrap());
    let (first, second) = (one.mapping(), two.mapping());
    assert!(matches!((first.base, first.bus), (BaseAddr::Dev(_), Bus::Objects(_))));
    assert_ne!(first.base, second.base);
    assert_eq!(
        (first.len_bytes, one.name(), gpu.port().name),
        (Pages::GRANULE_BYTES, "vulkan", "vulkan")
    );
    // SAFETY: so many bytes are mapped, and no code writes.
    assert!((0..first.len_bytes).all(|at| unsafe { first.cpu.add(at).read_volatile() } == 0));
    for _ in 0..600 {
        drop(VulkanMemory::allocate(gpu, 1).unwrap());
    }
}

/// A part of another block: what no driver imports by itself.
struct Part<B> {
    whole: B,
    skip: usize,
    len_bytes: usize,
}

// SAFETY: the bytes are those of the block, from `skip` on.
unsafe impl<B: Backend> Backend for Part<B> {
    fn name(&self) -> &'static str {
        "part"
    }
    fn mapping(&self) -> Mapping {
        let whole = self.whole.mapping();
        // SAFETY: `skip` is inside the block.
        Mapping { cpu: unsafe { whole.cpu.add(self.skip) }, len_bytes: self.len_bytes, ..whole }
    }
    contigo::forward!(|this| this.whole => sync_for_device, sync_for_cpu);
}

#[test]
fn what_is_misaligned_comes_back_unharmed() {
    let Some(gpu) = gpu("memory::what_is_misaligned_comes_back_unharmed") else { return };
    let align = gpu.facts().min_imported_host_pointer_alignment;
    let step = usize::try_from(align).unwrap();
    let part = |skip, len_bytes| Part { whole: Pages::new(8 * step).unwrap(), skip, len_bytes };
    for (skip, len_bytes) in
        [(64, step), (step / 2, step), (0, step + 64), (0, step / 2), (step, 64)]
    {
        let (error, returned) =
            VulkanMemory::import(gpu, part(skip, len_bytes)).unwrap_err().into_parts();
        let addr = returned.mapping().cpu.as_ptr().addr() as u64;
        let expected = if skip % step != 0 {
            Error::Misaligned { addr, align_bytes: step }
        } else {
            let max = gpu.facts().max_allocation_bytes;
            Error::Argument {
                name: "len_bytes",
                value: len_bytes as u64,
                min: align,
                max,
                multiple_of: align,
            }
        };
        assert_eq!(error, expected);
        assert_eq!((returned.skip, returned.len_bytes), (skip, len_bytes));
        // SAFETY: it is as it was, and no other code has it.
        unsafe { returned.mapping().cpu.write_volatile(7) }
    }
    // At whole pages it is taken.
    drop(VulkanMemory::import(gpu, part(step, 2 * step)).unwrap());
    assert!(matches!(
        VulkanMemory::allocate(gpu, 0),
        Err(Error::Argument { name: "len_bytes", .. })
    ));
}

/// A backend that lies: no byte of it is there. A driver that pins pages refuses it at the import,
/// by `VK_ERROR_INVALID_EXTERNAL_HANDLE` or for lack of memory. Lavapipe looks at nothing, as the
/// documentation of `import` says: it takes the pointer, and nothing touches it here.
#[test]
fn pointer_to_nothing_is_never_touched() {
    let Some(gpu) = gpu("memory::pointer_to_nothing_is_never_touched") else {
        return;
    };
    struct Nothing(NonNull<u8>, Pages);
    // SAFETY: it lies, and no code reads, writes or runs a job in it.
    unsafe impl Backend for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }
        fn mapping(&self) -> Mapping {
            Mapping { cpu: self.0, ..self.1.mapping() }
        }
        contigo::forward!(|this| this.1 => sync_for_device, sync_for_cpu);
    }
    // SAFETY: the pointer is the Backend's, which does not touch it.
    unsafe impl Send for Nothing {}
    // SAFETY: as above.
    unsafe impl Sync for Nothing {}
    // SAFETY: pages that no code may touch, at an address of the kernel's choice.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            Pages::GRANULE_BYTES,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    let nothing = Nothing(NonNull::new(mapped.cast()).unwrap(), Pages::new(1).unwrap());
    let taken = VulkanMemory::import(gpu, nothing);
    if gpu.facts().driver_name == "llvmpipe" {
        assert!(taken.is_ok());
    } else if let Err(refused) = taken {
        assert!(
            matches!(refused.error, Error::Gpu { .. } | Error::Unsupported { .. }),
            "{refused:?}"
        );
    }
}

/// A block that says that it is a dma-buf.
struct NoDmaBuf(Pages);
// SAFETY: every method is the backend's inside; it exports nothing.
unsafe impl Backend for NoDmaBuf {
    contigo::forward!(|this| this.0 => mapping, sync_for_device, sync_for_cpu);
    fn name(&self) -> &'static str {
        "wrapped"
    }
    unsafe fn export(&self) -> contigo::Result<OwnedFd> {
        Err(Error::Os { call: "export", errno: 95 })
    }
}

#[test]
fn a_dma_buf_is_taken_where_the_driver_can() {
    let Some(gpu) = gpu("memory::a_dma_buf_is_taken_where_the_driver_can") else { return };
    let refused = VulkanMemory::import_dma_buf(gpu, NoDmaBuf(Pages::new(1).unwrap())).unwrap_err();
    if gpu.facts().has_dma_buf {
        // The kernel has no such dma-buf here: its error comes first.
        assert_eq!(refused.error, Error::Os { call: "export", errno: 95 });
        skipped(
            "memory::a_dma_buf_is_taken_where_the_driver_can, a real one",
            "it takes u-dma-buf or a dma-heap",
        );
    } else {
        assert!(
            matches!(refused.error, Error::Unsupported { what, .. } if what.contains("VK_EXT_external_memory_dma_buf")),
            "{refused:?}"
        );
        skipped(
            "memory::a_dma_buf_is_taken_where_the_driver_can",
            "this driver lacks VK_EXT_external_memory_dma_buf",
        );
    }
    assert_eq!(refused.into_returned().mapping().len_bytes, Pages::GRANULE_BYTES);
}

/// Names open the same device and its memory, which is freed when it is dropped.
#[test]
fn names_open_the_device_and_its_memory() {
    let Some(gpu) = gpu("memory::names_open_the_device_and_its_memory") else { return };
    assert!(std::ptr::eq(VulkanGpu::open(0).unwrap(), gpu));
    contigo::names::provide(&contigo_gpu::vulkan::KIND).unwrap();
    let device = "vulkan:0".parse::<DeviceName>().unwrap().open().unwrap();
    assert_eq!(device.port().map(|port| (port.name, port.bus)), Some(("vulkan", gpu.bus())));
    let name = "vulkan".parse::<MemoryName>().unwrap();
    for _ in 0..600 {
        let memory = device.memory(&name, 4096).unwrap();
        assert_eq!((memory.mapping().bus, memory.name()), (gpu.bus(), "vulkan"));
        assert!(memory.handle().is_some());
    }
    let region = Region::new(device.memory(&name, 1 << 20).unwrap()).unwrap();
    assert_eq!((region.name(), region.len_bytes()), ("vulkan", 1 << 20));
    let none = "vulkan:4000000000".parse::<DeviceName>().unwrap().open().map(drop).unwrap_err();
    assert!(
        matches!(none, Error::Argument { name: "the GPU's ordinal", value: 4_000_000_000, .. }),
        "{none:?}"
    );
}

/// A tensor of it is the buffer, with its offset beside it; folded in, it would be another handle.
#[test]
fn a_tensor_is_the_buffer_and_keeps_its_offset() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let Some(gpu) = gpu("memory::a_tensor_is_the_buffer_and_keeps_its_offset") else { return };
    let memory = VulkanMemory::allocate(gpu, 1 << 16).unwrap();
    let raw = memory.handle().unwrap().raw;
    let region = Region::new(memory).unwrap();
    let [_first, second] = [(); 2].map(|()| region.alloc(4096, gpu.align()).unwrap());
    // SAFETY: no device receives its address.
    let buf = unsafe { second.hand_over(&gpu.port(), 64, .., Direction::ToDevice).unwrap() };
    let spec = TensorSpec {
        read_only: true,
        ..TensorSpec::new(DataType::U32, Shape::new(&[64]).unwrap())
    };
    let refused = TENSORS.lend(buf, &spec).unwrap_err();
    assert_eq!(refused.error, Error::Tensor { rule: TensorRule::Handle, found: 4096, need: 0 });
    let mut lent = TENSORS
        .lend(refused.into_returned(), &TensorSpec { offset: ByteOffset::Kept, ..spec })
        .unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: valid until the deleter is called, which this test does once, as the consumer.
    unsafe {
        let shown = &tensor.as_ref().tensor;
        assert_eq!((shown.device.device_type, shown.device.device_id), (7, 0));
        assert_eq!((shown.data.addr() as u64, shown.byte_offset), (raw, 4096));
        tensor.as_ref().deleter.unwrap()(tensor.as_ptr());
    }
    drop(lent.take_back().unwrap());
}

//! Memory of every kind, imported: the very same bytes, and what comes back.

use super::shaders::{XOR, xor};
use super::{LIMIT, gpu, kernel, skipped, with_shader};
use contigo::dlpack::{ByteOffset, DataType, Shape, TensorSpec, TensorTable};
use contigo::job::Launch;
use contigo::linux::memory::HugeTlb;
use contigo::mem::{Api, Mapping};
use contigo::names::{DeviceName, MemoryName};
use contigo::sim::SimBoard;
use contigo::types::{BaseAddr, TensorRule};
use contigo::{Backend, Bus, Direction, Error, Queue, Region};
use contigo_gpu::Pages;
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory};

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
    let Some((gpu, module)) = with_shader(XOR) else {
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
        Err(error) => skipped(&format!("of a huge page: {error}")),
    }
}

#[test]
fn block_addresses_are_unique_and_reused() {
    let Some(gpu) = gpu() else { return };
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
    let refused = VulkanMemory::allocate(gpu, 0).unwrap_err();
    assert!(matches!(refused, Error::Argument { name: "len_bytes", .. }), "{refused}");
}

/// Names open the same device and its memory, which is freed when it is dropped.
#[test]
fn names_open_the_device_and_its_memory() {
    let Some(gpu) = gpu() else { return };
    assert!(std::ptr::eq(VulkanGpu::open(0).unwrap(), gpu));
    contigo::names::provide(&contigo_gpu::vulkan::KIND).unwrap();
    let device = "vulkan:0".parse::<DeviceName>().unwrap().open().unwrap();
    assert_eq!(device.port().map(|port| (port.name, port.bus)), Some(("vulkan", gpu.bus())));
    let name = "vulkan".parse::<MemoryName>().unwrap();
    let memory = device.memory(&name, 4096).unwrap();
    assert_eq!((memory.mapping().bus, memory.name()), (gpu.bus(), "vulkan"));
    assert!(memory.handle().is_some());
    drop(memory);
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
    let Some(gpu) = gpu() else { return };
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

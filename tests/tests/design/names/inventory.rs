//! The lists of memory and devices, and why an entry cannot be used.

use super::{board, lines, memory};
use contigo::names::Inventory;
use contigo_testkit::fake_devices::FakeDevices;

/// There is no CUDA for 32-bit processors.
const NO_CUDA: &str = if cfg!(target_pointer_width = "64") {
    "no cuda: this machine has no file /dev/nvidiaN: NVIDIA's driver is not loaded"
} else {
    "no cuda: it is not built into this program"
};

/// Another crate brings them, which is not part of this program.
const NO_VULKAN: &str = "no vulkan: it is not built into this program";
const NO_OPENCL: &str = "no opencl: it is not built into this program";

#[test]
fn inventory_has_every_kind_in_order() {
    let tree = board();
    let inventory = Inventory::under(tree.root());
    let expected = [
        "contigo:f8003000.dma-controller",
        "u-dma-buf:udmabuf-smmu, but its node is behind an IOMMU or dma-ranges: a program opens \
         it with UDmaBuf::open_translated",
        "u-dma-buf:udmabuf0",
        "u-dma-buf:udmabuf1",
        "dma-heap:linux,cma, but from Linux 6.9 on its address needs the kernel module contigo, \
         which has memory of its own: contigo:DEVICE",
        "dma-heap:linux,cma@contigo:f8003000.dma-controller",
        "dma-heap:system, but its blocks are scattered pages: a device needs an IOMMU and the \
         kernel module contigo for them",
        "dma-heap:system@contigo:f8003000.dma-controller",
        "hugetlb, but no huge page is free, as root: echo 16 > /proc/sys/vm/nr_hugepages",
        "vfio:0000:00:01.0",
        NO_CUDA,
        NO_VULKAN,
        NO_OPENCL,
        "sim",
    ];
    assert_eq!(lines(inventory.memories()), expected);
    let expected = [
        "uio:dma-controller@f8003000",
        "uio:dma@1000, but several devices have this name: open one by its number, uio:N",
        "contigo:f8003000.dma-controller",
        "pci:0000:00:01.0, but a driver of the kernel has it: bind uio_pci_generic or vfio-pci to \
         it (driver_override)",
        "pci:0000:00:02.0, but a driver of the kernel has it: bind uio_pci_generic or vfio-pci to \
         it (driver_override)",
        "vfio:0000:00:01.0",
        NO_CUDA,
        NO_VULKAN,
        NO_OPENCL,
    ];
    // A model more is no line of this test.
    let (models, devices): (Vec<_>, Vec<_>) =
        lines(inventory.devices()).into_iter().partition(|line| line.starts_with("sim:"));
    assert_eq!(devices, expected);
    for model in ["sim:ap_ctrl", "sim:axi_dma_camera", "sim:board", "sim:zdma"] {
        assert!(models.iter().any(|line| line == model), "{models:?}");
    }
    let known =
        |name| inventory.memories().find(|entry| entry.name == Some(memory(name))).unwrap().facts;
    let facts = known("u-dma-buf:udmabuf0");
    assert_eq!((facts.len_bytes, facts.addr), (Some(1 << 20), Some(0x3000_0000)));
    assert_eq!(known("hugetlb").len_bytes, Some(0));
    let uio = inventory.devices().next().unwrap().facts;
    assert_eq!((uio.len_bytes, uio.addr), (Some(0x1000), Some(0xF800_3000)));
    let answer = inventory.memory_answer().to_string();
    let begins =
        "this machine has contigo:f8003000.dma-controller; u-dma-buf:udmabuf-smmu, but its node";
    assert!(answer.starts_with(begins) && answer.ends_with("; sim"), "{answer}");
    assert!(inventory.device_answer().to_string().contains("; contigo:f8003000.dma-controller; "));

    tree.file("proc/sys/kernel/osrelease", "5.15.0\n");
    tree.file("dev/nvidia1", "");
    let lines = lines(inventory.memories());
    assert!(lines.contains(&"dma-heap:linux,cma".into()), "{lines:?}");
    assert_eq!(lines.contains(&"cuda:1".into()), cfg!(target_pointer_width = "64"), "{lines:?}");
}

#[test]
fn an_empty_machine_says_why_of_each_kind() {
    let tree = FakeDevices::new();
    let inventory = Inventory::under(tree.root());
    let (memories, devices) = (lines(inventory.memories()), lines(inventory.devices()));
    assert!(
        memories[..8]
            .iter()
            .chain(&devices[..7])
            .all(|line| line.starts_with("no ") && line.contains(": ")),
        "{memories:?}"
    );
    assert_eq!((memories.len(), memories[8].as_str()), (9, "sim"));
    assert!(devices[7..].iter().all(|line| line.starts_with("sim:")), "{devices:?}");
    let nowhere = Inventory::under("/nowhere");
    assert_eq!(lines(nowhere.memories()), memories);
}

#[test]
fn a_list_has_an_end() {
    let tree = FakeDevices::new();
    for number in 0..300 {
        tree.file(&format!("dev/dma_heap/heap{number:03}"), "");
    }
    let heaps =
        || Inventory::under(tree.root()).memories().filter(|entry| entry.kind == "dma-heap");
    assert_eq!(heaps().count(), 256);
    assert_eq!(heaps().last().unwrap().name, Some(memory("dma-heap:heap255")));
}

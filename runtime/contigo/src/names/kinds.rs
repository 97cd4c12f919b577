//! The kinds of memory and of devices: how their names are written, and what to say of each. What
//! opens one is in `memories.rs` and `devices.rs`.

/// The text after a kind's colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// Nothing.
    Nothing,
    /// The name of one file, or of one node of the device tree.
    File,
    /// The same, or nothing.
    FileOrNothing,
    /// The name of a file, and optionally the name of the device that the memory belongs to, after
    /// `@`, the device's kind and a colon.
    FileOf(&'static str),
    /// The address of a PCI function.
    Pci,
    /// A number, or nothing.
    Number {
        /// The greatest value.
        max: u64,
    },
    /// A word, and optionally `@` and a number.
    WordAndSeed,
}

/// A kind, which begins its names.
#[derive(Debug)]
pub(super) struct Row<K> {
    pub(super) id: K,
    /// The beginning of its names.
    pub(super) kind: &'static str,
    /// What follows.
    pub(super) argument: Argument,
    /// Its names' form.
    pub(super) syntax: &'static str,
    /// One sentence about it.
    pub(super) help: &'static str,
    /// If there is none: why, and what to do.
    pub(super) missing: &'static str,
    /// The feature that builds it in.
    pub(super) feature: &'static str,
}

impl<K> Row<K> {
    /// Returns whether this program has it; Vulkan and OpenCL: if their crate provided them.
    pub(super) fn is_built_in(&self) -> bool {
        const CUDA: bool = cfg!(all(feature = "cuda", target_pointer_width = "64"));
        const SIM: bool = cfg!(feature = "sim");
        (self.feature != "cuda" || CUDA) && (self.feature != "sim" || SIM)
    }
}

/// The kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Contigo,
    UDmaBuf,
    DmaHeap,
    HugeTlb,
    Vfio,
    Cuda,
    Vulkan,
    OpenCl,
    Sim,
}

/// The kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    Uio,
    Contigo,
    Pci,
    Vfio,
    Cuda,
    Vulkan,
    OpenCl,
    Sim,
}

const NO_DEV_NODE: &str =
    "no device is bound to the kernel module contigo (kernel-helpers/README.md)";
/// The feature of a program that has the crate `contigo-gpu`.
const GPU: &str = "gpu";
const NO_VULKAN: &str = "no driver of Vulkan is installed: there is no file in \
 /usr/share/vulkan/icd.d or /etc/vulkan/icd.d";
const NO_OPENCL: &str = "no driver of OpenCL is installed: there is no file in /etc/OpenCL/vendors";

/// Every kind of memory, in the order in which a program that may choose tries them.
pub(super) static MEMORIES: [Row<MemoryKind>; 9] = [
    Row {
        id: MemoryKind::Contigo,
        kind: "contigo",
        argument: Argument::FileOrNothing,
        syntax: "contigo[:DEVICE]",
        help: "memory that the kernel allocates for a contigo device, and whose caches it \
         maintains by ranges",
        missing: NO_DEV_NODE,
        feature: "linux",
    },
    Row {
        id: MemoryKind::UDmaBuf,
        kind: "u-dma-buf",
        argument: Argument::File,
        syntax: "u-dma-buf:NAME",
        help: "a block of CMA from the kernel module u-dma-buf, by its name in /dev, with \
         physical addresses",
        missing: "load the kernel module u-dma-buf, and declare a block in the device tree",
        feature: "linux",
    },
    Row {
        id: MemoryKind::DmaHeap,
        kind: "dma-heap",
        argument: Argument::FileOf("@contigo:"),
        syntax: "dma-heap:NAME[@contigo:DEVICE]",
        help: "a block of a dma-heap, by its name in /dev/dma_heap; with a contigo device, which \
         has better memory of its own, the kernel knows its address",
        missing: "the kernel has no dma-heap: CONFIG_DMABUF_HEAPS and CONFIG_DMABUF_HEAPS_CMA",
        feature: "linux",
    },
    Row {
        id: MemoryKind::HugeTlb,
        kind: "hugetlb",
        argument: Argument::Nothing,
        syntax: "hugetlb",
        help: "huge pages of 2 MiB, contiguous page by page, for a privileged process",
        missing: "the kernel has no huge pages of 2 MiB",
        feature: "linux",
    },
    Row {
        id: MemoryKind::Vfio,
        kind: "vfio",
        argument: Argument::Pci,
        syntax: "vfio:DDDD:BB:DD.F",
        help: "ordinary pages, which an IOMMU puts in one run for this PCI function",
        missing: "no PCI function is bound to vfio-pci, which needs an IOMMU",
        feature: "linux",
    },
    Row {
        id: MemoryKind::Cuda,
        kind: "cuda",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "cuda[:N]",
        help: "memory of the CPU's that CUDA pins for a GPU, by its number",
        missing: "this machine has no file /dev/nvidiaN: NVIDIA's driver is not loaded",
        feature: "cuda",
    },
    Row {
        id: MemoryKind::Vulkan,
        kind: "vulkan",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "vulkan[:N]",
        help: "memory of the CPU's that a GPU takes through Vulkan (VK_EXT_external_memory_host), \
         by its number",
        missing: NO_VULKAN,
        feature: GPU,
    },
    Row {
        id: MemoryKind::OpenCl,
        kind: "opencl",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "opencl[:N]",
        help: "memory of the CPU's that a GPU takes through OpenCL (CL_MEM_USE_HOST_PTR), by its \
         number",
        missing: NO_OPENCL,
        feature: GPU,
    },
    Row {
        id: MemoryKind::Sim,
        kind: "sim",
        argument: Argument::Number { max: u64::MAX },
        syntax: "sim[:SEED]",
        help: "a block of a simulated board, whose seed decides what is left to chance",
        missing: "",
        feature: "sim",
    },
];

/// Every kind of device.
pub(super) static DEVICES: [Row<DeviceKind>; 8] = [
    Row {
        id: DeviceKind::Uio,
        kind: "uio",
        argument: Argument::File,
        syntax: "uio:NODE",
        help: "a device that the kernel gives to user space, by its node in the device tree, what \
         its driver calls it, or its number",
        missing: "no device tree's node is generic-uio (uio_pdrv_genirq.of_id=generic-uio on the \
         kernel's command line)",
        feature: "linux",
    },
    Row {
        id: DeviceKind::Contigo,
        kind: "contigo",
        argument: Argument::File,
        syntax: "contigo:DEVICE",
        help: "a device that is bound to the kernel module contigo, by its registers' address, \
         its node, or the kernel's name for it",
        missing: NO_DEV_NODE,
        feature: "linux",
    },
    Row {
        id: DeviceKind::Pci,
        kind: "pci",
        argument: Argument::Pci,
        syntax: "pci:DDDD:BB:DD.F",
        help: "a PCI function with no IOMMU before it, for root",
        missing: "this machine has no PCI",
        feature: "linux",
    },
    Row {
        id: DeviceKind::Vfio,
        kind: "vfio",
        argument: Argument::Pci,
        syntax: "vfio:DDDD:BB:DD.F",
        help: "a PCI function behind an IOMMU, which confines it to the memory that is opened \
         from it",
        missing: "no PCI function is bound to vfio-pci, which needs an IOMMU",
        feature: "linux",
    },
    Row {
        id: DeviceKind::Cuda,
        kind: "cuda",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "cuda[:N]",
        help: "one of NVIDIA's GPUs, by its number; it has memory, and no registers here",
        missing: "this machine has no file /dev/nvidiaN: NVIDIA's driver is not loaded",
        feature: "cuda",
    },
    Row {
        id: DeviceKind::Vulkan,
        kind: "vulkan",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "vulkan[:N]",
        help: "a GPU, by its number among Vulkan's; it has memory, and no registers here",
        missing: NO_VULKAN,
        feature: GPU,
    },
    Row {
        id: DeviceKind::OpenCl,
        kind: "opencl",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "opencl[:N]",
        help: "a GPU, by its number among OpenCL's devices; it has memory, and no registers here",
        missing: NO_OPENCL,
        feature: GPU,
    },
    Row {
        id: DeviceKind::Sim,
        kind: "sim",
        argument: Argument::WordAndSeed,
        syntax: "sim:MODEL[@SEED]",
        help: "a device of a simulated board of its own, or sim:board, a board with memory alone",
        missing: "",
        feature: "sim",
    },
];

/// Every form of a name, with a sentence about each, for a program's help.
pub(super) fn syntaxes<K>(
    rows: &'static [Row<K>],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows.iter().map(|row| (row.syntax, row.help))
}

//! The table: one row for each kind of memory, and one for each kind of device.
//!
//! **A new kind of memory is a row here**, beside its backend. The tool, C and Python then have it,
//! with its help, its errors and its place in the inventory: they name no kind but GPUs, whose code
//! they load.

use super::{
    any_memory::AnyMemory,
    device::DeviceName,
    files::Files,
    found::{self, Facts, Find},
    grammar::Argument,
    memory::MemoryName,
    open_device::OpenDevice,
    provided::OwnedMemory,
};
use contigo_core::{
    linux::{
        guard::{DmaBuf, GuardMemory},
        memory::{DmaHeap, HugeTlb, UDmaBuf},
        vfio::VfioMemory,
    },
    mem::Backend,
    types::Error,
};

/// One kind of memory.
pub(super) struct MemoryRow {
    /// The beginning of its names.
    pub(super) kind: &'static str,
    /// What follows.
    pub(super) argument: Argument,
    /// Its names' form.
    pub(super) syntax: &'static str,
    /// One sentence about it.
    pub(super) help: &'static str,
    /// Where there is some.
    pub(super) find: Find,
    /// The facts that are known of one.
    pub(super) look: fn(Files<'_>, &str) -> Facts,
    /// Where there is none: why, and what to do.
    pub(super) missing: &'static str,
    /// The device that it belongs to, where it belongs to one.
    pub(super) device: fn(&MemoryName) -> Option<DeviceName>,
    /// Opens so many bytes of it; of memory that belongs to a device, with that device. `None`: it
    /// is not built in.
    pub(super) open: Option<OpenMemory>,
    /// The feature that builds it in.
    pub(super) feature: &'static str,
}

/// Opens memory, of a device where it belongs to one.
pub(super) type OpenMemory = fn(&MemoryName, Option<&OpenDevice>, usize) -> Result<AnyMemory, Error>;

/// Opens a device, with a root before the kernel's files.
pub(super) type Open = fn(&DeviceName, &str) -> Result<OpenDevice, Error>;

/// One kind of device.
pub(super) struct DeviceRow {
    pub(super) kind: &'static str,
    pub(super) argument: Argument,
    pub(super) syntax: &'static str,
    pub(super) help: &'static str,
    pub(super) find: Find,
    pub(super) look: fn(Files<'_>, &str) -> Facts,
    pub(super) missing: &'static str,
    /// Opens it, with a root before `/sys` and `/dev` where its files can be elsewhere.
    pub(super) open: Option<Open>,
    pub(super) feature: &'static str,
}

/// The types that hold memory. Each of them becomes an [`AnyMemory`] by `From`.
macro_rules! blocks {
    ($($(#[$condition:meta])* $variant:ident($type:ty),)*) => {
        /// One of the types that hold memory.
        pub(super) enum Block {
            $($(#[$condition])* $variant($type),)*
        }

        impl Block {
            pub(super) fn backend(&self) -> &dyn Backend {
                match self {
                    $($(#[$condition])* Self::$variant(block) => block,)*
                }
            }
        }

        $($(#[$condition])*
        /// The block, for a program that chooses its memory as it runs.
        ///
        /// ```
        /// # #[cfg(feature = "sim")] {
        /// use contigo::{Region, names::AnyMemory, sim::SimBoard};
        /// let board = SimBoard::new(1);
        /// let memory: AnyMemory = board.memory(4096)?.into();
        /// assert_eq!(Region::new(memory)?.len_bytes(), 4096);
        /// # }
        /// # Ok::<(), contigo::Error>(())
        /// ```
        impl From<$type> for AnyMemory {
            fn from(block: $type) -> Self {
                Self::of(Block::$variant(block))
            }
        })*
    };
}

blocks! {
    UDmaBuf(UDmaBuf),
    DmaHeap(DmaHeap),
    Guarded(GuardMemory),
    Imported(DmaBuf),
    HugeTlb(HugeTlb),
    Vfio(VfioMemory),
    #[cfg(feature = "sim")]
    Sim(contigo_sim::Sim),
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Cuda(contigo_core::cuda::CudaHost),
    Provided(OwnedMemory),
}

/// The table of [`MemoryName`]'s documentation: a line for each row.
macro_rules! memory_lines {
    () => {
        "\
| `guard:f8003000`; `guard`, of an open one | [`Guard::allocate`](contigo_core::linux::guard::Guard::allocate), of that device |
| `u-dma-buf:udmabuf0` | [`UDmaBuf::open`](contigo_core::linux::memory::UDmaBuf::open) |
| `dma-heap:linux,cma` | [`DmaHeap::allocate`](contigo_core::linux::memory::DmaHeap::allocate) |
| `dma-heap:linux,cma@guard:f8003000` | [`DmaHeap::allocate_for`](contigo_core::linux::memory::DmaHeap::allocate_for), of that device |
| `hugetlb` | [`HugeTlb::new`](contigo_core::linux::memory::HugeTlb::new) |
| `vfio:0000:01:00.0` | [`Vfio::memory`](contigo_core::linux::vfio::Vfio::memory), of that device |
| `cuda`, `cuda:1` | `CudaHost::allocate`, of that GPU (feature `cuda`) |
| `vulkan`, `vulkan:1` | `contigo_gpu`'s, for that GPU (crate `contigo-gpu`) |
| `opencl`, `opencl:1` | the same, through OpenCL |
| `sim`, `sim:7` | `SimBoard::memory`, of a board with that seed (feature `sim`) |
"
    };
}
pub(super) use memory_lines;

const NO_GUARD: &str = "no device is bound to the kernel module contigo (kernel-helpers/README.md)";
/// The feature of a program that has the crate `contigo-gpu`.
const GPU: &str = "gpu";
const NO_VULKAN: &str = "no driver of Vulkan is installed: there is no file in /usr/share/vulkan/icd.d or /etc/vulkan/icd.d";
const NO_OPENCL: &str = "no driver of OpenCL is installed: there is no file in /etc/OpenCL/vendors";

/// Every kind of memory, in the order in which a program that may choose tries them.
pub(super) static MEMORIES: &[MemoryRow] = &[
    MemoryRow {
        kind: "guard",
        argument: Argument::FileOrNothing,
        syntax: "guard[:DEVICE]",
        help: "memory that the kernel allocates for a guarded device, and whose caches it maintains by ranges",
        find: Find::Folders(&[found::GUARDS]),
        look: found::guard_memory,
        missing: NO_GUARD,
        device: |name| name.text().parse().ok(),
        open: Some(|name, device, len_bytes| match device.and_then(OpenDevice::guard) {
            Some(guard) => Ok(guard.allocate(len_bytes)?.into()),
            None => Err(name.needs_device()),
        }),
        feature: "linux",
    },
    MemoryRow {
        kind: "u-dma-buf",
        argument: Argument::File,
        syntax: "u-dma-buf:NAME",
        help: "a block of CMA from the kernel module u-dma-buf, by its name in /dev, with physical addresses",
        find: Find::Folders(&["sys/class/u-dma-buf", "sys/class/udmabuf"]),
        look: found::u_dma_buf,
        missing: "load the kernel module u-dma-buf, and declare a block in the device tree",
        device: |_| None,
        open: Some(|name, _, len_bytes| at_least(UDmaBuf::open(name.argument())?, len_bytes)),
        feature: "linux",
    },
    MemoryRow {
        kind: "dma-heap",
        argument: Argument::FileOf("@guard:"),
        syntax: "dma-heap:NAME[@guard:DEVICE]",
        help: "a block of a dma-heap, by its name in /dev/dma_heap; with a guard, which has better memory of its own, the kernel knows its address",
        find: Find::By(found::dma_heaps),
        look: found::dma_heap,
        missing: "the kernel has no dma-heap: CONFIG_DMABUF_HEAPS and CONFIG_DMABUF_HEAPS_CMA",
        device: |name| name.more().and_then(|guard| guard.parse().ok()),
        open: Some(|name, device, len_bytes| match device.and_then(OpenDevice::guard) {
            Some(guard) => Ok(DmaHeap::allocate_for(guard, name.argument(), len_bytes)?.into()),
            None => Ok(DmaHeap::allocate(name.argument(), len_bytes)?.into()),
        }),
        feature: "linux",
    },
    MemoryRow {
        kind: "hugetlb",
        argument: Argument::Nothing,
        syntax: "hugetlb",
        help: "huge pages of 2 MiB, contiguous page by page, for a privileged process",
        find: Find::By(found::huge_pages),
        look: found::hugetlb,
        missing: "the kernel has no huge pages of 2 MiB",
        device: |_| None,
        open: Some(|_, _, len_bytes| Ok(HugeTlb::new(len_bytes)?.into())),
        feature: "linux",
    },
    MemoryRow {
        kind: "vfio",
        argument: Argument::Pci,
        syntax: "vfio:DDDD:BB:DD.F",
        help: "ordinary pages, which an IOMMU puts in one run for this PCI function",
        find: Find::By(found::vfio_functions),
        look: found::vfio,
        missing: "no PCI function is bound to vfio-pci, which needs an IOMMU",
        device: |name| name.text().parse().ok(),
        open: Some(|name, device, len_bytes| match device.and_then(OpenDevice::vfio) {
            Some(vfio) => Ok(vfio.memory(len_bytes)?.into()),
            None => Err(name.needs_device()),
        }),
        feature: "linux",
    },
    MemoryRow {
        kind: "cuda",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "cuda[:N]",
        help: "memory of the CPU's that CUDA pins for a GPU, by its number",
        find: Find::By(found::gpus),
        look: found::nothing,
        missing: "this machine has no file /dev/nvidiaN: NVIDIA's driver is not loaded",
        device: |name| name.text().parse().ok(),
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        open: Some(|name, device, len_bytes| match device.and_then(OpenDevice::gpu) {
            Some(gpu) => Ok(contigo_core::cuda::CudaHost::allocate(gpu, len_bytes, contigo_core::types::Align::PAGE)?.into()),
            None => Err(name.needs_device()),
        }),
        #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
        open: None,
        feature: "cuda",
    },
    MemoryRow {
        kind: "vulkan",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "vulkan[:N]",
        help: "memory of the CPU's that a GPU takes through Vulkan (VK_EXT_external_memory_host), by its number",
        find: Find::By(found::vulkan_drivers),
        look: found::nothing,
        missing: NO_VULKAN,
        device: |name| name.text().parse().ok(),
        open: Some(from_gpu),
        feature: GPU,
    },
    MemoryRow {
        kind: "opencl",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "opencl[:N]",
        help: "memory of the CPU's that a GPU takes through OpenCL (CL_MEM_USE_HOST_PTR), by its number",
        find: Find::By(found::opencl_drivers),
        look: found::nothing,
        missing: NO_OPENCL,
        device: |name| name.text().parse().ok(),
        open: Some(from_gpu),
        feature: GPU,
    },
    MemoryRow {
        kind: "sim",
        argument: Argument::Number { max: u64::MAX },
        syntax: "sim[:SEED]",
        help: "a block of a simulated board, whose seed decides what is left to chance",
        find: Find::Always,
        look: found::nothing,
        missing: "",
        device: |name| DeviceName::board(name.argument()),
        #[cfg(feature = "sim")]
        open: Some(|name, device, len_bytes| match device.and_then(OpenDevice::board) {
            Some(board) => Ok(board.memory(len_bytes)?.into()),
            None => Err(name.needs_device()),
        }),
        #[cfg(not(feature = "sim"))]
        open: None,
        feature: "sim",
    },
];

/// Every kind of device.
pub(super) static DEVICES: &[DeviceRow] = &[
    DeviceRow {
        kind: "uio",
        argument: Argument::File,
        syntax: "uio:NODE",
        help: "a device that the kernel gives to user space, by its node in the device tree, what its driver calls it, or its number",
        find: Find::By(found::uio_devices),
        look: found::uio,
        missing: "no device tree's node is generic-uio (uio_pdrv_genirq.of_id=generic-uio on the kernel's command line)",
        open: Some(OpenDevice::uio),
        feature: "linux",
    },
    DeviceRow {
        kind: "guard",
        argument: Argument::File,
        syntax: "guard:DEVICE",
        help: "a device that is bound to the kernel module contigo, by its registers' address, its node, or the kernel's name for it",
        find: Find::Folders(&[found::GUARDS]),
        look: found::guard,
        missing: NO_GUARD,
        open: Some(OpenDevice::guarded),
        feature: "linux",
    },
    DeviceRow {
        kind: "pci",
        argument: Argument::Pci,
        syntax: "pci:DDDD:BB:DD.F",
        help: "a PCI function with no IOMMU before it, for root",
        find: Find::Folders(&[found::FUNCTIONS]),
        look: found::pci,
        missing: "this machine has no PCI",
        open: Some(OpenDevice::pci),
        feature: "linux",
    },
    DeviceRow {
        kind: "vfio",
        argument: Argument::Pci,
        syntax: "vfio:DDDD:BB:DD.F",
        help: "a PCI function behind an IOMMU, which confines it to the memory that is opened from it",
        find: Find::By(found::vfio_functions),
        look: found::vfio,
        missing: "no PCI function is bound to vfio-pci, which needs an IOMMU",
        open: Some(OpenDevice::behind_iommu),
        feature: "linux",
    },
    DeviceRow {
        kind: "cuda",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "cuda[:N]",
        help: "one of NVIDIA's GPUs, by its number; it has memory, and no registers here",
        find: Find::By(found::gpus),
        look: found::nothing,
        missing: "this machine has no file /dev/nvidiaN: NVIDIA's driver is not loaded",
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        open: Some(OpenDevice::cuda),
        #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
        open: None,
        feature: "cuda",
    },
    DeviceRow {
        kind: "vulkan",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "vulkan[:N]",
        help: "a GPU, by its number among Vulkan's; it has memory, and no registers here",
        find: Find::By(found::vulkan_drivers),
        look: found::nothing,
        missing: NO_VULKAN,
        open: Some(OpenDevice::provided_gpu),
        feature: GPU,
    },
    DeviceRow {
        kind: "opencl",
        argument: Argument::Number { max: u32::MAX as u64 },
        syntax: "opencl[:N]",
        help: "a GPU, by its number among OpenCL's devices; it has memory, and no registers here",
        find: Find::By(found::opencl_drivers),
        look: found::nothing,
        missing: NO_OPENCL,
        open: Some(OpenDevice::provided_gpu),
        feature: GPU,
    },
    DeviceRow {
        kind: "sim",
        argument: Argument::WordAndSeed,
        syntax: "sim:MODEL[@SEED]",
        help: "a device of a simulated board of its own, or sim:board, a board with memory alone",
        #[cfg(feature = "sim")]
        find: Find::By(super::simulated::models),
        #[cfg(not(feature = "sim"))]
        find: Find::Always,
        look: found::nothing,
        missing: "",
        #[cfg(feature = "sim")]
        open: Some(OpenDevice::simulated),
        #[cfg(not(feature = "sim"))]
        open: None,
        feature: "sim",
    },
];

/// Memory of a GPU that another crate brought.
fn from_gpu(name: &MemoryName, device: Option<&OpenDevice>, len_bytes: usize) -> Result<AnyMemory, Error> {
    let gpu = device.and_then(OpenDevice::provided).ok_or(name.needs_device())?;
    Ok(gpu.memory(len_bytes)?.into())
}

/// A block whose size was fixed before, where it is large enough.
fn at_least(block: UDmaBuf, need_bytes: usize) -> Result<AnyMemory, Error> {
    let len_bytes = block.mapping().len_bytes;
    if len_bytes < need_bytes {
        return Err(Error::BlockSize { len_bytes, need_bytes, line_bytes: 1 });
    }
    Ok(block.into())
}

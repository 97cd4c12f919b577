//! Names of memory.

use super::device_name::DeviceName;
use super::error::{Form, NameError};
use super::kinds::{MEMORIES, MemoryKind};
use super::name::Name;
use core::fmt;
use core::str::FromStr;

/// The name of memory: what a user writes after `--memory`, in every language. It is copied like a
/// number. Whether this machine has such memory, only [`Inventory`](super::Inventory) and `open`
/// tell.
///
/// | name | memory |
/// |---|---|
/// | `contigo:f8003000`; `contigo`, of an open one | [`DevNode::allocate`](contigo_core::linux::dev_node::DevNode::allocate), of that device |
/// | `u-dma-buf:udmabuf0` | [`UDmaBuf::open`](contigo_core::linux::memory::UDmaBuf::open) |
/// | `dma-heap:linux,cma` | [`DmaHeap::allocate`](contigo_core::linux::memory::DmaHeap::allocate) |
/// | `dma-heap:linux,cma@contigo:f8003000` | [`DmaHeap::allocate_for`](contigo_core::linux::memory::DmaHeap::allocate_for), of that device |
/// | `hugetlb` | [`HugeTlb::new`](contigo_core::linux::memory::HugeTlb::new) |
/// | `vfio:0000:01:00.0` | [`Vfio::memory`](contigo_core::linux::vfio::Vfio::memory), of that device |
/// | `cuda`, `cuda:1` | `CudaHost::allocate`, of that GPU (feature `cuda`) |
/// | `vulkan`, `vulkan:1` | `contigo_gpu`'s, for that GPU (crate `contigo-gpu`) |
/// | `opencl`, `opencl:1` | the same, through OpenCL |
/// | `sim`, `sim:7` | `SimBoard::memory`, of a board with that seed (feature `sim`) |
///
/// ```
/// use contigo::names::MemoryName;
/// let name: MemoryName = "contigo:f8003000".parse()?;
/// assert_eq!((name.kind(), name.argument()), ("contigo", "f8003000"));
/// assert_eq!(name.device().map(|device| device.to_string()).as_deref(), Some("contigo:f8003000"));
/// # Ok::<(), contigo::names::NameError>(())
/// ```
pub type MemoryName = Name<MemoryKind>;

impl FromStr for MemoryName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::of(text, &MEMORIES, Form::Memory)
    }
}

impl fmt::Debug for MemoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryName").field(&self.text()).finish()
    }
}

impl MemoryName {
    /// The device that it belongs to, from which it is opened; `None` for memory that belongs to no
    /// device.
    #[must_use]
    pub fn device(&self) -> Option<DeviceName> {
        match self.row().id {
            MemoryKind::Contigo
            | MemoryKind::Vfio
            | MemoryKind::Cuda
            | MemoryKind::Vulkan
            | MemoryKind::OpenCl => self.text().parse().ok(),
            MemoryKind::DmaHeap => self.more()?.parse().ok(),
            MemoryKind::Sim => DeviceName::board(self.argument()),
            MemoryKind::UDmaBuf | MemoryKind::HugeTlb => None,
        }
    }

    fn more(&self) -> Option<&str> {
        self.parsed.more()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::MemoryName;
    use std::format;
    use std::string::ToString;

    #[test]
    fn a_name_has_its_parts() {
        for (text, argument, device) in [
            ("contigo", "", None),
            ("contigo:f8003000", "f8003000", Some("contigo:f8003000")),
            ("u-dma-buf:udmabuf0", "udmabuf0", None),
            ("dma-heap:linux,cma", "linux,cma", None),
            ("dma-heap:pool@70000000", "pool@70000000", None),
            ("dma-heap:linux,cma@contigo:f8003000", "linux,cma", Some("contigo:f8003000")),
            ("dma-heap:linux,cma@contigo:0000:00:02.0", "linux,cma", Some("contigo:0000:00:02.0")),
            ("dma-heap:linux,cma@contigo:soc@0:dma@1", "linux,cma", Some("contigo:soc@0:dma@1")),
            ("hugetlb", "", None),
            ("vfio:0000:01:00.0", "0000:01:00.0", Some("vfio:0000:01:00.0")),
            ("cuda", "", Some("cuda")),
            ("cuda:4294967295", "4294967295", Some("cuda:4294967295")),
            ("sim", "", Some("sim:board")),
            (
                "sim:18446744073709551615",
                "18446744073709551615",
                Some("sim:board@18446744073709551615"),
            ),
        ] {
            let name: MemoryName = text.parse().unwrap();
            assert_eq!((name.to_string().as_str(), name.argument()), (text, argument));
            assert_eq!(format!("{name:>60}").trim_start(), text);
            assert_eq!(text.split(':').next(), Some(name.kind()));
            let owner = name.device().map(|device| device.to_string());
            assert_eq!(owner.as_deref(), device, "{text}");
        }
        assert_ne!("sim".parse::<MemoryName>(), "sim:1".parse());
    }

    /// As in 32-bit builds, and in builds without the feature.
    #[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
    #[test]
    fn what_is_not_built_in_says_the_feature() {
        use super::super::Inventory;
        use super::DeviceName;
        use contigo_core::types::Error;
        let not_built_in = Error::NotBuiltIn { kind: "cuda", feature: "cuda" };
        let (memory, device): (MemoryName, DeviceName) =
            ("cuda:1".parse().unwrap(), "cuda:1".parse().unwrap());
        assert_eq!(memory.open(1).map(|_| ()), Err(not_built_in));
        assert_eq!(device.open().map(|_| ()), Err(not_built_in));
        let entry = Inventory::here().memories().find(|entry| entry.kind == "cuda").unwrap();
        assert_eq!(
            (entry.name, entry.to_string().as_str()),
            (None, "no cuda: it is not built into this program")
        );
    }
}

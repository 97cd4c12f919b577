//! This machine's memory and engines, and the reasons why some of it cannot be used. Files are
//! read; nothing is opened.

use crate::setup::VIRT_PCIE;
use contigo::Port;
use contigo::names::{DeviceName, Inventory, MemoryName};
use contigo_boards::DmaKind;
use contigo_exerciser::Ground;
use contigo_exerciser::uio::FoundEngine;
use nix::sys::utsname::uname;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Where memory comes from: a name, or a kind that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    kind: &'static str,
    name: Option<MemoryName>,
    why: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sim(DmaKind),
    /// One of a system on chip: a UIO device, or one that the module contigo has.
    Soc {
        found: FoundEngine,
        /// ZDMA by descriptors in memory, not by its registers.
        linked: bool,
        port: Port,
    },
    /// QEMU's edu with no IOMMU before it, `pci:…`, or by the module contigo, `contigo:…`.
    Edu(DeviceName),
    /// QEMU's edu behind an IOMMU: `vfio:…`.
    EduVfio(DeviceName),
    /// LitePCIe's card behind an IOMMU: `vfio:…`.
    Litepcie(DeviceName),
    /// gemm8 behind an IOMMU: `vfio:…`.
    Gemm8(DeviceName),
    /// gemm8 behind the gate, with no IOMMU: `pci:…`, or by the module contigo, `contigo:…`.
    Gated(DeviceName),
}

/// edu's vendor and device (QEMU `docs/specs/edu.rst`).
const EDU: [&str; 2] = ["0x1234", "0x11e8"];
/// The lab's card (`contigo-pci --model litepcie`).
const LITEPCIE: [&str; 2] = ["0x10ee", "0x7024"];
/// The lab's matrix engine (`contigo-pci --model gemm8`).
const GEMM8: [&str; 2] = ["0x1234", "0x474d"];
/// The same behind the gate (`contigo-pci --model gemm8-gated`).
const GATED: [&str; 2] = ["0x1234", "0x4754"];
/// The kinds of memory that an engine without an IOMMU can be given, and that no device owns.
const KINDS: [&str; 3] = ["hugetlb", "dma-heap", "u-dma-buf"];

impl Memory {
    pub(crate) fn named(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::of)
    }

    pub(crate) const fn of(name: MemoryName) -> Self {
        Self { kind: name.kind(), name: Some(name), why: None }
    }

    /// Every kind, each at least once. The system heap is scattered pages: no device without an
    /// IOMMU can use it, and `Region` refuses its blocks.
    pub(crate) fn kinds() -> Vec<Self> {
        let memories = Inventory::here().memories().filter(|entry| KINDS.contains(&entry.kind));
        let alone = memories.filter(|entry| {
            entry.name.is_none_or(|name| name.device().is_none() && name.argument() != "system")
        });
        let mut kinds: Vec<_> = alone
            .map(|entry| Self { kind: entry.kind, name: entry.name, why: entry.why })
            .collect();
        kinds.sort_by_key(|memory| KINDS.iter().position(|kind| *kind == memory.kind));
        kinds
    }

    /// The memory that the module contigo allocates for the device `contigo`.
    fn own(dev_node: &str) -> Option<Self> {
        Self::named(&format!("contigo:{dev_node}"))
    }

    /// The memory of these heaps that it imports for that device.
    fn imported(dev_node: &str, heaps: Vec<String>) -> impl Iterator<Item = Self> {
        let named = move |heap| Self::named(&format!("dma-heap:{heap}@contigo:{dev_node}"));
        heaps.into_iter().filter_map(named)
    }

    /// Why it cannot be used here, if that can be known without opening it.
    pub(crate) fn absent(&self) -> Option<String> {
        self.why.map(Into::into)
    }

    pub(crate) const fn name(&self) -> Option<&MemoryName> {
        self.name.as_ref()
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind && self.device().is_none()
    }

    pub(crate) fn device(&self) -> Option<DeviceName> {
        self.name.and_then(|name| name.device())
    }

    /// Does the module contigo say its address?
    pub(crate) fn is_imported(&self) -> bool {
        self.device().is_some_and(|device| device.kind() == "contigo")
    }

    /// How much of it a row takes. One mapping through a bounce buffer has 256 KiB at most
    /// (IO_TLB_SEGSIZE of Linux).
    pub(crate) fn region_bytes(&self) -> usize {
        const BOUNCED_BYTES: usize = 192 << 10;
        let forced =
            || fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("swiotlb=force"));
        if self.is_imported() && self.kind == "dma-heap" && forced() {
            BOUNCED_BYTES
        } else {
            Ground::REGION_BYTES
        }
    }

    pub(crate) fn label(&self) -> String {
        match self.name {
            None => format!("{}:*", self.kind),
            Some(name) if self.is_imported() => {
                let what = if name.kind() == "contigo" {
                    "memory".into()
                } else {
                    format!("dma-heap:{}", name.argument())
                };
                format!("{what} by contigo{}", if is_compat() { ", 32 bits" } else { "" })
            }
            Some(name) if name.kind() == "vfio" => "vfio".into(),
            Some(name) => name.to_string(),
        }
    }
}

impl Engine {
    pub(crate) fn all() -> Vec<Self> {
        let mut engines = Vec::new();
        for found in FoundEngine::all("") {
            let port = found.engine.port;
            engines.push(Self::Soc { found, linked: false, port });
            if found.engine.kind == DmaKind::Zdma {
                engines.push(Self::Soc { found, linked: true, port });
            }
        }
        for address in names(FUNCTIONS) {
            let [vendor, device] = ["vendor", "device"]
                .map(|file| text(&format!("{FUNCTIONS}/{address}/{file}")).unwrap_or_default());
            let ids = [vendor.as_str(), device.as_str()];
            let platform = platform_device(&address).map(|name| format!("contigo:{name}"));
            let [pci, vfio] = ["pci", "vfio"].map(|kind| format!("{kind}:{address}"));
            let (name, engine): (_, fn(DeviceName) -> Self) =
                match (ids, platform, is_behind_iommu(&address)) {
                    (EDU, Some(platform), _) => (platform, Self::Edu),
                    (EDU, None, true) => (vfio, Self::EduVfio),
                    (EDU, None, false) => (pci, Self::Edu),
                    (GATED, platform, _) => (platform.unwrap_or(pci), Self::Gated),
                    (LITEPCIE, _, true) => (vfio, Self::Litepcie),
                    (GEMM8, _, true) => (vfio, Self::Gemm8),
                    _ => continue,
                };
            engines.extend(name.parse().ok().map(engine));
        }
        engines
    }

    /// The memory that it can be given: an engine behind an IOMMU has an address space of its own.
    pub(crate) fn memories(&self) -> Vec<Memory> {
        match self {
            Self::Sim(_) => Memory::named("sim").into_iter().collect(),
            // Its tests choose their own: `gemm8/gated.rs`.
            Self::Gated(_) => Vec::new(),
            Self::EduVfio(device) | Self::Litepcie(device) | Self::Gemm8(device) => {
                Memory::named(&device.to_string()).into_iter().collect()
            }
            Self::Soc { .. } | Self::Edu(_) => {
                let mut kinds = Memory::kinds();
                if let Some(dev_node) = self.dev_node() {
                    let group = format!("/sys/class/contigo/{dev_node}/device/iommu_group");
                    if Path::new(&group).exists() {
                        // This device cannot use physical addresses; and scattered memory is in one
                        // run for it.
                        let imported = Memory::imported(&dev_node, names(HEAPS));
                        return Memory::own(&dev_node).into_iter().chain(imported).collect();
                    }
                    // The module gives a heap's blocks an address, and knows whether it snoops.
                    kinds.retain(|memory| !memory.is("dma-heap"));
                    kinds.extend(Memory::own(&dev_node));
                    // Else a block holds one buffer at a time, and the rows have many.
                    if self.port().coherent {
                        kinds.extend(Memory::imported(&dev_node, heaps()));
                    }
                }
                kinds
            }
        }
    }

    pub(crate) fn device(&self) -> Option<DeviceName> {
        match self {
            Self::Sim(kind) => format!("sim:{}", kind.name()).parse().ok(),
            Self::Soc { found, .. } => Some(found.device),
            Self::Edu(device)
            | Self::EduVfio(device)
            | Self::Litepcie(device)
            | Self::Gemm8(device)
            | Self::Gated(device) => Some(*device),
        }
    }

    /// The module's name of this engine, where it has it.
    pub(crate) fn dev_node(&self) -> Option<String> {
        let device = self.device().filter(|device| device.kind() == "contigo")?;
        Some(device.argument().to_owned())
    }

    /// Which driver it takes; `None`: edu's.
    pub(crate) const fn kind(&self) -> Option<DmaKind> {
        match self {
            Self::Sim(kind) => Some(*kind),
            Self::Soc { found, .. } => Some(found.engine.kind),
            _ => None,
        }
    }

    pub(crate) fn port(&self) -> Port {
        match self {
            Self::Soc { port, .. } => *port,
            // The port of a simulated board or of VFIO takes its place.
            _ => VIRT_PCIE,
        }
    }

    /// Does it copy from memory to memory?
    pub(crate) const fn copies(&self) -> bool {
        !matches!(self, Self::Litepcie(_) | Self::Gemm8(_) | Self::Gated(_))
    }

    /// Does a copy take it a fifth of a second?
    pub(crate) const fn is_slow(&self) -> bool {
        matches!(self, Self::Edu(_) | Self::EduVfio(_))
    }

    pub(crate) fn label(&self) -> String {
        match self {
            Self::Sim(kind) => format!("simulated {}", kind.name()),
            Self::Soc { found, linked: true, .. } => format!("{}, linked", found.label()),
            Self::Soc { found, .. } => found.label(),
            Self::Edu(_) | Self::EduVfio(_) => "edu".into(),
            Self::Litepcie(_) => "litepcie".into(),
            Self::Gemm8(_) => "gemm8".into(),
            Self::Gated(_) => "gemm8, gated".into(),
        }
    }
}

const FUNCTIONS: &str = "/sys/bus/pci/devices";

const HEAPS: &str = "/dev/dma_heap";

/// Do addresses of the PCI function `address` go through an IOMMU?
pub(crate) fn is_behind_iommu(address: &str) -> bool {
    Path::new(&format!("{FUNCTIONS}/{address}/iommu_group")).exists()
}

/// The platform device that the lab has made of the PCI function `address`
/// (`cross/lab/module/lab_platform.c`), where the module contigo has it.
fn platform_device(address: &str) -> Option<String> {
    names(&format!("{FUNCTIONS}/{address}"))
        .into_iter()
        .find(|name| Path::new(&format!("/sys/class/contigo/{name}")).exists())
}

/// The heaps of contiguous memory. The system heap is scattered pages: no device without an IOMMU
/// can use it, and `Region` refuses its blocks.
pub(crate) fn heaps() -> Vec<String> {
    names(HEAPS).into_iter().filter(|name| name != "system").collect()
}

/// Is this a 32-bit program on a 64-bit kernel?
pub(crate) fn is_compat() -> bool {
    let is_64 =
        |machine: &OsStr| [b"aarch64".as_slice(), b"x86_64"].contains(&machine.as_encoded_bytes());
    cfg!(target_pointer_width = "32") && uname().is_ok_and(|system| is_64(system.machine()))
}

/// A number of `/proc/meminfo`, in its own unit.
pub(crate) fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn text(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

/// The names in a folder, in order; nothing where there is no folder.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

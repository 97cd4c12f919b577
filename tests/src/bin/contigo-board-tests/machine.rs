//! What this machine has: memory, engines, and what keeps some of it from being used. Files are read; nothing is opened.

use crate::setup::VIRT_PCIE;
use contigo::Port;
use contigo_boards::DmaKind;
use contigo_testkit::uio::FoundEngine;
use nix::sys::utsname::uname;
use std::{ffi::OsStr, fs, path::Path};

/// Where memory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The simulated board's.
    Sim,
    HugeTlb,
    /// By its name; `*` stands for one that is not there.
    UDmaBuf(String),
    DmaHeap(String),
    /// A dma-heap's, with its address and its syncs by the module contigo: the names of the port and of the heap.
    Imported {
        port: String,
        heap: String,
    },
    /// The I/O address space of the PCI function with this address.
    Vfio(String),
}

/// Who copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The simulated board's.
    Sim(DmaKind),
    /// A UIO device.
    Uio {
        found: FoundEngine,
        /// ZDMA by descriptors in memory, not by its registers.
        linked: bool,
        port: Port,
    },
    /// QEMU's edu with no IOMMU before it, or behind one by the module contigo: the PCI function with this address.
    EduPci { address: String },
    /// QEMU's edu behind an IOMMU, by VFIO.
    EduVfio { address: String },
}

/// edu's vendor and device (QEMU `docs/specs/edu.rst`).
const EDU: [&str; 2] = ["0x1234", "0x11e8"];
/// The name of what is not there.
const ANY: &str = "*";
/// Since then `/proc/self/pagemap` shows nothing for a dma-heap's mapping.
const NO_HEAP_ADDRESS_SINCE: (u32, u32) = (6, 9);

impl Memory {
    /// Every kind, each at least once: what is there by its name, what is not as `*`.
    pub(crate) fn kinds() -> Vec<Self> {
        let named = |names: Vec<String>, kind: fn(String) -> Self| {
            let names = if names.is_empty() { vec![ANY.to_owned()] } else { names };
            names.into_iter().map(kind).collect::<Vec<_>>()
        };
        let mut kinds = vec![Self::HugeTlb];
        let heaps = heaps();
        kinds.extend(named(heaps, Self::DmaHeap));
        kinds.extend(named([names("/sys/class/u-dma-buf"), names("/sys/class/udmabuf")].concat(), Self::UDmaBuf));
        kinds
    }

    /// Why it cannot be used here, if that can be known without opening it.
    pub(crate) fn absent(&self) -> Option<String> {
        match self {
            Self::HugeTlb => match number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") {
                None => Some("this kernel has no huge pages of 2 MiB".into()),
                Some(0) => Some("no huge page is free: echo 16 > /proc/sys/vm/nr_hugepages".into()),
                Some(_) => None,
            },
            Self::UDmaBuf(name) if name == ANY => Some("needs the kernel module u-dma-buf (CONTIGO_MODULES)".into()),
            Self::DmaHeap(name) if name == ANY => Some("this kernel has no dma-heap (CONFIG_DMABUF_HEAPS_CMA)".into()),
            Self::DmaHeap(_) if !heaps_have_addresses() => {
                Some("from Linux 6.9 on a dma-heap's address needs the kernel module contigo (CONTIGO_MODULES)".into())
            }
            _ => None,
        }
    }

    /// Does it have a name of its own?
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Self::UDmaBuf(name) | Self::DmaHeap(name) if name == ANY)
    }

    pub(crate) fn label(&self) -> String {
        match self {
            Self::Sim => "sim".into(),
            Self::HugeTlb => "hugetlb".into(),
            Self::UDmaBuf(name) => format!("u-dma-buf:{name}"),
            Self::DmaHeap(name) => format!("dma-heap:{name}"),
            Self::Imported { heap, .. } => format!("dma-heap:{heap} by contigo{}", if is_compat() { ", 32 bits" } else { "" }),
            Self::Vfio(_) => "vfio".into(),
        }
    }
}

impl Engine {
    /// Every one that is there.
    pub(crate) fn all() -> Vec<Self> {
        let found = FoundEngine::all(Path::new("/")).into_iter().filter_map(|found| Some((found.engine?.port, found)));
        let mut engines: Vec<_> = found
            .flat_map(|(port, found)| {
                let modes: &[bool] = if found.kind == DmaKind::Zdma { &[false, true] } else { &[false] };
                modes.iter().map(move |&linked| Self::Uio { found: found.clone(), linked, port })
            })
            .collect();
        for address in names(FUNCTIONS) {
            let [vendor, device] = ["vendor", "device"].map(|file| text(&format!("{FUNCTIONS}/{address}/{file}")).unwrap_or_default());
            if [vendor.as_str(), device.as_str()] == EDU {
                let by_vfio = is_behind_iommu(&address) && kernel_port(&address).is_none();
                engines.push(if by_vfio { Self::EduVfio { address } } else { Self::EduPci { address } });
            }
        }
        engines
    }

    /// The memory that it can be given: an engine behind an IOMMU has an address space of its own.
    pub(crate) fn memories(&self) -> Vec<Memory> {
        match self {
            Self::Sim(_) => vec![Memory::Sim],
            Self::EduVfio { address } => vec![Memory::Vfio(address.clone())],
            Self::Uio { .. } | Self::EduPci { .. } => {
                let mut kinds = Memory::kinds();
                if let Some(port) = self.kernel_port() {
                    if let Self::EduPci { address } = self
                        && is_behind_iommu(address)
                    {
                        // Physical addresses are none of this device's; and what is scattered is in one run for it.
                        let heaps = names("/dev/dma_heap").into_iter();
                        return heaps.map(|heap| Memory::Imported { port: port.clone(), heap }).collect();
                    }
                    // Where the module gives a heap's blocks an address, nothing is missing.
                    kinds.retain(|memory| !matches!(memory, Memory::DmaHeap(_)) || memory.absent().is_none());
                    kinds.extend(heaps().into_iter().map(|heap| Memory::Imported { port: port.clone(), heap }));
                }
                kinds
            }
        }
    }

    /// What the module contigo calls this engine's port, where it is bound: after its registers' address, or its PCI function.
    pub(crate) fn kernel_port(&self) -> Option<String> {
        let begins = match self {
            Self::Uio { found, .. } => format!("{:x}.", found.engine?.registers),
            Self::EduPci { address } => address.clone(),
            Self::Sim(_) | Self::EduVfio { .. } => return None,
        };
        kernel_port(&begins)
    }

    /// Which driver it takes; `None`: edu's.
    pub(crate) const fn kind(&self) -> Option<DmaKind> {
        match self {
            Self::Sim(kind) => Some(*kind),
            Self::Uio { found, .. } => Some(found.kind),
            Self::EduPci { .. } | Self::EduVfio { .. } => None,
        }
    }

    /// Its way to memory, as silicon has it.
    pub(crate) fn port(&self) -> Port {
        match self {
            Self::Uio { port, .. } => *port,
            // What simulated boards and VFIO say takes its place.
            Self::EduPci { .. } | Self::EduVfio { .. } | Self::Sim(_) => VIRT_PCIE,
        }
    }

    /// Does a copy take it a fifth of a second?
    pub(crate) const fn is_slow(&self) -> bool {
        matches!(self, Self::EduPci { .. } | Self::EduVfio { .. })
    }

    pub(crate) fn label(&self) -> String {
        match self {
            Self::Sim(kind) => format!("simulated {}", kind.name()),
            Self::Uio { found, linked: true, .. } => format!("{}, linked", found.label()),
            Self::Uio { found, .. } => found.label(),
            Self::EduPci { .. } | Self::EduVfio { .. } => "edu".into(),
        }
    }
}

/// The kernel's PCI functions.
const FUNCTIONS: &str = "/sys/bus/pci/devices";

/// Do addresses of the PCI function `address` go through an IOMMU?
pub(crate) fn is_behind_iommu(address: &str) -> bool {
    Path::new(&format!("{FUNCTIONS}/{address}/iommu_group")).exists()
}

/// The port of the module contigo whose name begins like this.
fn kernel_port(begins: &str) -> Option<String> {
    names("/sys/class/contigo").into_iter().find(|name| name.starts_with(begins))
}

/// The heaps of contiguous memory. The system heap is scattered pages: no device without an IOMMU can use it, and `Region` says so.
pub(crate) fn heaps() -> Vec<String> {
    names("/dev/dma_heap").into_iter().filter(|name| name != "system").collect()
}

/// Does pagemap tell the addresses of a dma-heap's pages?
pub(crate) fn heaps_have_addresses() -> bool {
    kernel_version().is_some_and(|version| version < NO_HEAP_ADDRESS_SINCE)
}

fn kernel_version() -> Option<(u32, u32)> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Is this a 32-bit program on a 64-bit kernel?
pub(crate) fn is_compat() -> bool {
    let is_64 = |machine: &OsStr| [b"aarch64".as_slice(), b"x86_64"].contains(&machine.as_encoded_bytes());
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

fn number(path: &str) -> Option<u64> {
    text(path)?.parse().ok()
}

/// What is in a folder, in order; nothing where there is no folder.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

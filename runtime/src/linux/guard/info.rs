//! The kernel's word about a guarded device: distrusted, and then kept.

use super::abi::{
    ABI, INFO_ARMED, INFO_COHERENT, INFO_CONFINED, INFO_IOMMU, INFO_PCI, INFO_RESET, INFO_TRANSLATED, Info, MAX_INTERRUPTS, MAX_WINDOWS,
    Window,
};
use crate::types::{Align, Error};

/// The facts about a guarded device and its file, as they were when the kernel was asked:
/// [`Guard::info`](crate::Guard::info).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardInfo {
    /// The device snoops the CPU's caches (`dma-coherent`).
    pub coherent: bool,
    /// Its bus addresses are not physical ones, by `dma-ranges` or an IOMMU.
    pub translated: bool,
    /// An IOMMU translates them.
    pub iommu: bool,
    /// It reaches what was imported for it, and nothing else. An IOMMU stands before it, forgets an
    /// address at once, and has no other device in its group.
    pub confined: bool,
    /// It is a PCI function.
    pub pci: bool,
    /// The kernel can reset it, and does so when the file goes.
    pub can_reset: bool,
    /// The kernel has a program that stops it.
    pub armed: bool,
    /// Its interrupts.
    pub interrupts: u32,
    /// Buffers that this file holds.
    pub imports: u32,
    /// Buffers that are kept for the device, because it has not stopped. An import counts with
    /// them, and 256 are the most.
    pub kept: u32,
    /// How long those are.
    pub kept_bytes: u64,
    /// Address lines that the kernel assumes.
    pub addr_bits: u32,
    /// The highest bus address that the interconnect carries (`dma-ranges`), or all ones.
    pub last_addr: u64,
    /// How many bytes each window of registers has; 0: there is none.
    pub window_len_bytes: [u64; MAX_WINDOWS],
}

impl From<&Info> for GuardInfo {
    fn from(info: &Info) -> Self {
        let has = |flag| info.flags & flag != 0;
        Self {
            coherent: has(INFO_COHERENT),
            translated: has(INFO_TRANSLATED),
            iommu: has(INFO_IOMMU),
            confined: has(INFO_CONFINED),
            pci: has(INFO_PCI),
            can_reset: has(INFO_RESET),
            armed: has(INFO_ARMED),
            interrupts: info.interrupts,
            imports: info.imports,
            kept: info.kept,
            kept_bytes: info.kept_bytes,
            addr_bits: info.dma_bits,
            last_addr: info.dma_limit,
            window_len_bytes: info.window.map(|window| window.len_bytes),
        }
    }
}

/// `info`, as the kernel filled it in, where it can be.
pub(super) fn checked(info: Info) -> Result<(Info, Align), Error> {
    if info.abi != ABI {
        return Err(other_abi(info.abi));
    }
    let unexpected = |name, value: u32| Error::Unexpected { name, value: value.into() };
    if info.argsz < Info::ARGSZ {
        return Err(unexpected("argsz of CONTIGO_GET_INFO", info.argsz));
    }
    if info.interrupts as usize > MAX_INTERRUPTS {
        return Err(unexpected("interrupts of CONTIGO_GET_INFO", info.interrupts));
    }
    for (at, window) in info.window.iter().enumerate() {
        let end = last(window).ok_or(Error::Unexpected { name: "mmap_offset of CONTIGO_GET_INFO", value: window.mmap_offset })?;
        // Two mappings of the same registers would be two drivers.
        let meets = |other: &Window| other.len_bytes > 0 && first(other) < end && last(other).is_none_or(|last| first(window) < last);
        if window.len_bytes > 0 && info.window.iter().skip(at + 1).any(meets) {
            return Err(Error::Unexpected { name: "mmap_offset of CONTIGO_GET_INFO", value: window.mmap_offset });
        }
    }
    Ok((info, granule(info.granule_bytes)?))
}

/// Where in the file the first register of `window` is.
const fn first(window: &Window) -> u64 {
    window.mmap_offset.saturating_add(window.in_page_bytes as u64)
}

/// Where its registers end.
fn last(window: &Window) -> Option<u64> {
    first(window).checked_add(window.len_bytes)
}

/// The unit that two owners may not share. A PC's kernel says 1, because every bus master snoops;
/// the kernels of the boards here say 32 to 128, and 4,096 is a page.
fn granule(bytes: u32) -> Result<Align, Error> {
    let refused = Error::Unexpected { name: "granule_bytes of CONTIGO_GET_INFO", value: bytes.into() };
    if !bytes.is_power_of_two() || bytes as usize > Align::PAGE.bytes() {
        return Err(refused);
    }
    Align::new((bytes as usize).max(Align::MIN.bytes())).map_err(|_| refused)
}

/// The module is another one than this program's.
pub(super) const fn other_abi(abi: u32) -> Error {
    const _: () = assert!(ABI == 2, "the text below says so");
    let fix = "this program needs 2: install the kernel module of the same version (kernel-helpers/README.md)";
    Error::Setting { name: "the ABI of the kernel module contigo", value: abi as u64, fix }
}

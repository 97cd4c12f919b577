//! What the kernel reports about a contigo device: checked, and then kept.

use super::abi::{
    INFO_ARMED, INFO_COHERENT, INFO_CONFINED, INFO_IOMMU, INFO_RESET, INFO_TRANSLATED, Info,
    MAX_INTERRUPTS, MAX_WINDOWS, WINDOW_STOP, Window,
};
use crate::types::{Align, Error};

/// The facts about a contigo device and its file, as the kernel reported them:
/// [`DevNode::info`](crate::linux::dev_node::DevNode::info).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevNodeInfo {
    /// The device snoops the CPU's caches (`dma-coherent`).
    pub coherent: bool,
    /// Its bus addresses are not physical ones, because of `dma-ranges` or an IOMMU.
    pub translated: bool,
    /// An IOMMU translates them.
    pub iommu: bool,
    /// It reaches this file's memory, and nothing else: an IOMMU stands before it, drops an address
    /// at once, and has no other device in its group; and the kernel can reset it.
    pub confined: bool,
    /// The kernel can reset it, and does so when the file is closed.
    pub can_reset: bool,
    /// The kernel has a stop program for it.
    pub armed: bool,
    /// Its interrupts.
    pub interrupts: u32,
    /// Buffers that this file holds.
    pub buffers: u32,
    /// Buffers in quarantine, because the device has not stopped. They count together with this
    /// file's buffers, and 256 is the limit.
    pub quarantined: u32,
    /// The total length of the buffers in quarantine.
    pub quarantined_bytes: u64,
    /// Address lines that the kernel assumes.
    pub addr_bits: u32,
    /// How many bytes each window of registers has; 0: there is no such window.
    pub window_len_bytes: [u64; MAX_WINDOWS],
    /// Windows that a stop sequence may access for a program without `CAP_SYS_RAWIO`: the node says
    /// that each register in them answers (`contigo,stop-windows`).
    pub stop_windows: [bool; MAX_WINDOWS],
}

impl From<&Info> for DevNodeInfo {
    fn from(info: &Info) -> Self {
        let has = |flag| info.flags & flag != 0;
        Self {
            coherent: has(INFO_COHERENT),
            translated: has(INFO_TRANSLATED),
            iommu: has(INFO_IOMMU),
            confined: has(INFO_CONFINED),
            can_reset: has(INFO_RESET),
            armed: has(INFO_ARMED),
            interrupts: info.interrupts,
            buffers: info.buffers,
            quarantined: info.quarantined,
            quarantined_bytes: info.quarantined_bytes,
            addr_bits: info.dma_bits,
            window_len_bytes: info.window.map(|window| window.len_bytes),
            stop_windows: info.window.map(|window| window.flags & WINDOW_STOP != 0),
        }
    }
}

/// Checks `info`, as the kernel filled it in, for impossible values.
pub(super) fn checked(info: Info) -> Result<(Info, Align), Error> {
    let unexpected = |name, value: u32| Error::Unexpected { name, value: value.into() };
    if info.argsz < Info::ARGSZ {
        return Err(unexpected("argsz of CONTIGO_GET_INFO", info.argsz));
    }
    if info.interrupts as usize > MAX_INTERRUPTS {
        return Err(unexpected("interrupts of CONTIGO_GET_INFO", info.interrupts));
    }
    for (at, window) in info.window.iter().enumerate() {
        let end = last(window).ok_or(Error::Unexpected {
            name: "mmap_offset of CONTIGO_GET_INFO",
            value: window.mmap_offset,
        })?;
        // Two mappings of the same registers would be two drivers.
        let meets = |other: &Window| {
            other.len_bytes > 0
                && other.mmap_offset < end
                && last(other).is_none_or(|last| window.mmap_offset < last)
        };
        if window.len_bytes > 0 && info.window.iter().skip(at + 1).any(meets) {
            return Err(Error::Unexpected {
                name: "mmap_offset of CONTIGO_GET_INFO",
                value: window.mmap_offset,
            });
        }
    }
    Ok((info, granule(info.granule_bytes)?))
}

/// Where in the file the registers of `window` end.
const fn last(window: &Window) -> Option<u64> {
    window.mmap_offset.checked_add(window.len_bytes)
}

/// The unit that two owners may not share. A PC's kernel says 1, because every bus master snoops;
/// the kernels of the boards here say 32 to 128, and 4,096 is a page.
fn granule(bytes: u32) -> Result<Align, Error> {
    let refused =
        Error::Unexpected { name: "granule_bytes of CONTIGO_GET_INFO", value: bytes.into() };
    if !bytes.is_power_of_two() || bytes as usize > Align::PAGE.bytes() {
        return Err(refused);
    }
    Align::new((bytes as usize).max(Align::MIN.bytes())).map_err(|_| refused)
}

//! The device and its module, as a test wants them.

use contigo::{Align, linux::memory::u_dma_buf::seam::DevInfo};
use std::time::Duration;

/// The fake's settings; `Default` is a module of today with 64 KiB on a non-coherent ARM SoC.
#[derive(Clone, Debug)]
pub struct Config {
    /// The device's name.
    pub name: String,
    /// `u-dma-buf`, or `udmabuf` before version 2.
    pub class: &'static str,
    /// The size that was asked of the module.
    pub size_bytes: u64,
    /// The block's address.
    pub phys_addr: u64,
    /// Is the device coherent? `None` for a module that could not find out: then there is no
    /// attribute.
    pub coherent: Option<bool>,
    /// The width of the DMA mask.
    pub dma_mask_bits: u8,
    /// 1 off, 2 on, 3 automatic, 4 by pages; 0 for a module built without the quirk: then there is
    /// no attribute.
    pub quirk_mmap_mode: u8,
    /// 0 to 7.
    pub sync_mode: u64,
    /// `false` for a module before 4.7.0: every ioctl is ENOTTY.
    pub ioctls: bool,
    /// `GET_DEV_INFO` answers this instead of the truth.
    pub dev_info: Option<Result<DevInfo, i32>>,
    /// How long a call rests between storing its arguments and using them: it makes a race certain
    /// to show.
    pub rest: Duration,
    /// The device is gone (ENODEV) after this many effective syncs.
    pub vanish_after: u64,
    /// The machine's cache line. Lines move whole.
    pub line: Align,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "udmabuf0".into(),
            class: "u-dma-buf",
            size_bytes: 64 << 10,
            phys_addr: 0x3820_0000,
            coherent: Some(false),
            dma_mask_bits: 32,
            quirk_mmap_mode: 3,
            sync_mode: 1,
            ioctls: true,
            dev_info: None,
            rest: Duration::ZERO,
            vanish_after: u64::MAX,
            line: Align::LINE,
        }
    }
}

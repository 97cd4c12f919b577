//! A contigo device's registers.

use super::DevNode;
use super::abi::{MAX_WINDOWS, WINDOW_MMAP, Window};
use crate::linux::device::{Extent, Registers};
use crate::linux::os::pagemap;
use crate::types::Error;
use core::sync::atomic::Ordering;
use nix::libc::EBUSY;

impl DevNode {
    /// The registers of window `window`, an entry of the node's `reg`. Each window is handed out
    /// once, and a child of fork(2) does not inherit it.
    ///
    /// They keep the contigo device's file open, and with it the device: the kernel stops the
    /// device when both are gone. If the device is taken away earlier (unbound, reset through
    /// sysfs), the registers reach no device from then on, and read ones until the program writes.
    /// A write then reads back, at the same place of every page and window. So trust only a
    /// register that the program does not write, with a bit in it that the device never sets.
    ///
    /// ```no_run
    /// use contigo::{Mmio, linux::dev_node::DevNode};
    /// let dev_node = DevNode::open("40000000.gemm8")?;
    /// println!("identification: {:#x}", dev_node.registers(0)?.read32(0));
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Argument`] past the sixth; [`Error::NotFound`] where the device has no such
    ///   window. [`Error::InUse`] where it was given already.
    /// - [`Error::Unsupported`]: it is not of whole pages, so another device may have registers in
    ///   them.
    /// - [`Error::Os`] with `mmap(/dev/contigo/)`: ENODEV, the device was taken away.
    ///   [`Error::Unexpected`]: the module reports impossible values.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn registers(&self, window: u32) -> Result<Registers, Error> {
        const SHARED: Error = Error::Unsupported {
            what: "this window cannot be mapped: it is not of whole pages, so another device may \
             have registers in them",
            fix: "give its node a reg of whole pages in the block design",
        };
        let max = MAX_WINDOWS as u64 - 1;
        let no_such =
            Error::Argument { name: "window", value: window.into(), min: 0, max, multiple_of: 1 };
        let found = self.0.info.window.get(window as usize).ok_or(no_such)?;
        if found.len_bytes == 0 {
            let among = crate::types::Among::of(
                self.0
                    .info
                    .window
                    .iter()
                    .fold(0, |all, window| all + u32::from(window.len_bytes > 0)),
            );
            return Err(Error::NotFound {
                what: "window of this contigo device's registers",
                among,
            });
        }
        if found.flags & WINDOW_MMAP == 0 {
            return Err(SHARED);
        }
        let extent = extent(found)?;
        let bit = 1 << window;
        // Acquire and Release: of two threads one gets it.
        if self.0.taken.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(Error::InUse { errno: EBUSY });
        }
        let mapped =
            Registers::map(&self.0.kernel, &self.0.file, "mmap(/dev/contigo/)", extent, None);
        mapped.inspect_err(|_| {
            self.0.taken.fetch_and(!bit, Ordering::AcqRel);
        })
    }
}

/// Where the file has the registers of `window`.
fn extent(window: &Window) -> Result<Extent, Error> {
    let page_bytes = pagemap::page_bytes()? as u64;
    let Window { len_bytes, mmap_offset: offset_bytes, .. } = *window;
    if !offset_bytes.is_multiple_of(page_bytes) {
        return Err(Error::Unexpected {
            name: "mmap_offset of CONTIGO_GET_INFO",
            value: offset_bytes,
        });
    }
    Ok(Extent { offset_bytes, in_page_bytes: 0, len_bytes })
}

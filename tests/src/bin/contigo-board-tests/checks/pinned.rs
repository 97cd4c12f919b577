//! A huge page whose frame the kernel is asked to give up: it moves where nothing pins it, and
//! stays where it is pinned.
#![allow(unsafe_code, reason = "madvise(2) on a block's mapping")]

use super::{Verdict, Wrong, ensure, ok};
use contigo::{Backend as _, Error, Region, linux::memory::HugeTlb};
use std::fs;

/// 0: programs may make an io_uring. 2: none may. Since Linux 6.6.
const KNOB: &str = "/proc/sys/kernel/io_uring_disabled";

/// Forbids io_uring to all programs while it lives.
struct Forbidden(String);

impl Forbidden {
    fn new() -> Result<Self, Wrong> {
        let skipped = |error| Wrong::Skipped(format!("{KNOB}: {error}"));
        let before = fs::read_to_string(KNOB).map_err(skipped)?;
        fs::write(KNOB, "2").map_err(skipped)?;
        Ok(Self(before))
    }
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        let _ = fs::write(KNOB, &self.0);
    }
}

/// Each moved page costs the machine one of 2 MiB until it is started anew.
pub(super) fn pinned() -> Verdict {
    let loose = {
        let _forbidden = Forbidden::new()?;
        ok(HugeTlb::new(1))?
    };
    ensure(!loose.is_pinned(), "pinned without io_uring".to_owned())?;
    match soft_offline(&loose) {
        Ok(()) => {}
        Err(libc::EINVAL | libc::EPERM) => {
            return Err(Wrong::Skipped("needs CONFIG_MEMORY_FAILURE and root".into()));
        }
        Err(errno) => return Err(Wrong::Failed(format!("without a pin: errno {errno}"))),
    }
    let moved = match loose.verify() {
        Err(moved @ Error::NotContiguous { offset_bytes: 0, .. }) => moved,
        other => return Err(Wrong::Failed(format!("a page that was moved: {other:?}"))),
    };

    let block = ok(HugeTlb::new(1))?;
    ensure(block.is_pinned(), "not pinned, though this kernel has io_uring".to_owned())?;
    let offline = soft_offline(&block);
    ensure(
        offline == Err(libc::EBUSY),
        format!("a pinned page, taken out of service: {offline:?}"),
    )?;
    ok(block.verify())?;
    let region = ok(Region::new(block))?;
    ok(region.verify())?;
    Ok(format!("without a pin: {moved}; with one: EBUSY, still at {:#x}", region.base().raw()))
}

/// MADV_SOFT_OFFLINE of the first page: its contents go to another frame, and this one is used no
/// more.
fn soft_offline(block: &HugeTlb) -> Result<(), i32> {
    let cpu = block.mapping().cpu.as_ptr();
    // SAFETY: one page of a live mapping that no other code uses. Its bytes stay what they are.
    let status = unsafe { libc::madvise(cpu.cast(), 4096, libc::MADV_SOFT_OFFLINE) };
    if status == 0 { Ok(()) } else { Err(nix::errno::Errno::last_raw()) }
}

//! What a user can hold that is gone: neither the device nor the system's sleep. Root has both
//! back.

use super::{
    super::{
        Verdict, Wrong,
        as_user::{USER, allow, opens},
        ensure,
    },
    gone::{Gone, LEFT_BYTES, other_user},
    subject::{Subject, file, refused, sys},
    suspended::suspend,
};
use crate::raw::{RawGuard, info};
use nix::errno::Errno;
use std::fs;

pub(super) fn sleep_held(subject: &Subject) -> Verdict {
    if !fs::exists("/sys/power/pm_test").unwrap_or(false) {
        return Err(Wrong::Skipped("this kernel has no /sys/power/pm_test".into()));
    }
    allow(&subject.guard)?;
    let user = other_user(subject)?;

    // Given nothing, it has nothing to stop, armed or not.
    Gone { user, is_armed: true, has_memory: false }.from(subject)?;
    ensure(
        subject.quarantined_bytes()? == 0,
        "nothing was allocated, and something is in quarantine",
    )?;
    file("system sleep after a user who had nothing", suspend())?;
    drop(subject.open()?);

    // A device that does not stop; a reset line that it has fails, too.
    let flags = sys("GET_INFO", subject.open()?.info())?.flags;
    Gone { user, is_armed: true, has_memory: true }.from(subject)?;
    let bytes = subject.quarantined_bytes()?;
    ensure(
        bytes == LEFT_BYTES as u64,
        format!("its poll was not met, and {bytes} bytes are in quarantine"),
    )?;
    file("system sleep over a device that has not stopped", suspend())?;
    let bytes = subject.quarantined_bytes()?;
    ensure(
        bytes == LEFT_BYTES as u64,
        format!("the system has slept, and {bytes} bytes are in quarantine"),
    )?;
    if flags & (info::IOMMU | info::RESET) == info::IOMMU {
        refused("open", RawGuard::open(&subject.guard), Errno::EBUSY)?;
    }

    subject.end_quarantine()?;
    ensure(subject.quarantined_bytes()? == 0, "the administrator ended it, and something is left")?;
    ensure(
        opens(&subject.guard)?.is_ok() || user.is_none(),
        format!("it was ended, and user {USER} cannot open the device"),
    )?;
    let info = sys("GET_INFO", subject.open()?.info())?;
    ensure(
        info.quarantined == 0,
        format!("it was ended, and {} buffers are in quarantine", info.quarantined),
    )?;
    let who = user.map_or_else(|| "root".to_owned(), |user| format!("user {user}"));
    Ok(format!(
        "{who} left a device that does not stop: the system slept, and root ended the quarantine; nothing was left by one who had nothing"
    ))
}

//! A kernel that is locked down lets no process, not even root's, open a device that nothing
//! confines. It stays locked down until it is started anew.

use super::{
    super::{Verdict, ensure},
    subject::{Subject, file, refused, sys},
};
use crate::raw::{RawGuard, info};
use nix::errno::Errno;
use std::fs;

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

pub(super) fn is_possible() -> bool {
    fs::read_to_string(LOCKDOWN)
        .is_ok_and(|levels| levels.contains("[none]") || levels.contains("[integrity]"))
}

pub(super) fn locked_down(subject: &Subject) -> Verdict {
    let flags = sys("GET_INFO", subject.open()?.info())?.flags;
    file(LOCKDOWN, fs::write(LOCKDOWN, "integrity"))?;
    let after = RawGuard::open(&subject.guard);
    if flags & info::CONFINED != 0 {
        ensure(after.is_ok(), format!("it is confined, and yet: {after:?}"))?;
        return Ok("it is confined, and can be opened".into());
    }
    refused("open", after, Errno::EPERM)?;
    Ok("EPERM for root".into())
}

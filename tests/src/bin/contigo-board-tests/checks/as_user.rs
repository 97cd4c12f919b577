#![allow(unsafe_code, reason = "fork")]
//! The answers that an ordinary user gets, in a child that has no more rights than one.

use super::Wrong;
use crate::{child::become_user, raw::RawGuard};
use nix::{
    errno::Errno,
    libc,
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork},
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
};

/// The lab's ordinary user, and its group.
pub(super) const USER: u32 = 1000;

/// Opens a guard as that user.
pub(super) fn opens(guard: &str) -> Result<Result<(), Errno>, Wrong> {
    let work = || {
        become_user(USER)
            .and_then(|()| RawGuard::open(guard).map(drop))
            .err()
            .map_or(0, |errno| errno as i32)
    };
    // SAFETY: this process has one thread.
    let child = match unsafe { fork() }.map_err(|errno| Wrong::Failed(format!("fork: {errno}")))? {
        // SAFETY: `exit_group`, and nothing before it.
        ForkResult::Child => unsafe { libc::_exit(work()) },
        ForkResult::Parent { child } => child,
    };
    match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, 0)) => Ok(Ok(())),
        Ok(WaitStatus::Exited(_, errno)) => Ok(Err(Errno::from_raw(errno))),
        other => Err(Wrong::Failed(format!("user {USER}: {other:?}"))),
    }
}

/// Hands a guard to that user's group, as a udev rule would.
pub(super) fn allow(guard: &str) -> Result<(), Wrong> {
    let node = format!("/dev/contigo/{guard}");
    let shared = chown(&node, None, Some(USER))
        .and_then(|()| fs::set_permissions(&node, fs::Permissions::from_mode(0o660)));
    shared.map_err(|error| Wrong::Failed(format!("{node}: {error}")))
}

#![allow(unsafe_code, reason = "signal handlers that store a number")]
//! SIGINT, SIGTERM and SIGHUP (a terminal that is lost): the round under way ends, and then the
//! soak.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicI32, Ordering};

static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn came_now(signal: i32) {
    CAME.store(signal, Ordering::SeqCst);
}

/// From here on they are noted.
pub(super) fn listen() -> nix::Result<()> {
    // A wait for a child goes on: a round is short.
    let action =
        SigAction::new(SigHandler::Handler(came_now), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler stores a number, which any thread may do at any time.
        unsafe { sigaction(signal, &action)? };
    }
    Ok(())
}

/// The one that came.
pub(super) fn came() -> Option<&'static str> {
    match Signal::try_from(CAME.load(Ordering::SeqCst)) {
        Ok(Signal::SIGINT) => Some("SIGINT"),
        Ok(Signal::SIGTERM) => Some("SIGTERM"),
        Ok(Signal::SIGHUP) => Some("SIGHUP"),
        _ => None,
    }
}

//! Ctrl-C and the end of the session: what was started is ended, and temporary files go, because
//! the signal only sets a flag and every wait looks at it.

use crate::failure::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// To be called once, before anything is started. The second Ctrl-C ends the program at once.
pub fn listen() -> io::Result<()> {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag still down and raises it.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(asked))?;
        flag::register(signal, Arc::clone(asked))?;
    }
    Ok(())
}

/// Whether the user asked for the end.
pub fn asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// The same, as an error for `?` between two steps.
pub fn check() -> Result<()> {
    if asked() { Err(Failure::Interrupted.into()) } else { Ok(()) }
}

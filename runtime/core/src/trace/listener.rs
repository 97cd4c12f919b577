//! The listener of a program's events.

use super::{Event, Site, happened};
use core::panic::Location;
use spin::{Mutex, Once};

/// Receives every event of the runtime, on the thread where it happens, in the middle of that
/// thread's work. So it must be quick, must not panic, and must call nothing of the runtime that
/// makes events. `site` is the line of the program that called the runtime. It is `None` if
/// something was dropped or came back from a framework on its thread. It is also `None` for an
/// accelerator's own work: a copy to a GPU's memory, when it is queued.
///
/// ```
/// use contigo::{trace::{Event, Listener}};
/// use std::{panic::Location, sync::atomic::{AtomicU64, Ordering::Relaxed}};
/// struct CopiedBytes(AtomicU64);
/// impl Listener for CopiedBytes {
///     fn happened(&self, event: &Event, _site: Option<&'static Location<'static>>) {
///         if let Event::CopyBytes { len_bytes } = event {
///             self.0.fetch_add(*len_bytes as u64, Relaxed);
///         }
///     }
/// }
/// ```
pub trait Listener: Sync {
    /// `event` begins: a first touch, a sync or a copy, which take time.
    /// [`happened`](Self::happened) follows on the same thread, with the same event and site, even
    /// if it failed.
    fn begins(&self, event: &Event, site: Option<&'static Location<'static>>) {
        let _ = (event, site);
    }

    /// `event` happened.
    fn happened(&self, event: &Event, site: Option<&'static Location<'static>>);
}

static LISTENER: Once<&'static dyn Listener> = Once::new();
/// Held by the thread that sets it. With `Once` another thread would spin without a bound.
static SETTING: Mutex<()> = Mutex::new(());

/// Makes `listener` receive every event from now to the end of the program. There is only one, as
/// there is only one logger.
///
/// # Errors
/// `listener` comes back: there is another one already, or another thread is setting one now.
pub fn set_listener(listener: &'static dyn Listener) -> Result<(), &'static dyn Listener> {
    let Some(_alone) = SETTING.try_lock() else { return Err(listener) };
    let mut mine = false;
    LISTENER.call_once(|| {
        mine = true;
        listener
    });
    if mine { Ok(()) } else { Err(listener) }
}

/// Reports to the listener something that the program itself did, beside the runtime: a copy into
/// memory of its own, a mapping. Its site is the line that calls this.
///
/// ```
/// use contigo::{trace::{self, Event}};
/// let (mut staging, frame) = ([0; 64], [1; 64]);
/// staging.copy_from_slice(&frame);
/// trace::note(Event::CopyBytes { len_bytes: 64 });
/// ```
#[track_caller]
pub fn note(event: Event) {
    happened(event, Site::here());
}

#[inline]
pub(super) fn get() -> Option<&'static dyn Listener> {
    LISTENER.get().copied()
}

//! Who hears the events.

use super::{Event, Site, happened};
use core::panic::Location;
use spin::{Mutex, Once};

/// Hears every event of the runtime, on the thread where it happens, in the middle of that thread's
/// work. So it is quick, does not panic, and calls nothing of the runtime that makes events. `site`
/// is the line of the program that called the runtime. It is `None` where something was dropped or
/// came back from a framework on its thread. It is also `None` for an accelerator's own work: a
/// copy to a GPU's memory, when it is queued.
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
    /// [`happened`](Self::happened) follows on the same thread, with the same event and site, also
    /// where it failed.
    fn begins(&self, event: &Event, site: Option<&'static Location<'static>>) {
        let _ = (event, site);
    }

    /// `event` happened.
    fn happened(&self, event: &Event, site: Option<&'static Location<'static>>);
}

static LISTENER: Once<&'static dyn Listener> = Once::new();
/// Held by the thread that sets it: `Once` would let another one spin without a bound meanwhile.
static SETTING: Mutex<()> = Mutex::new(());

/// Lets `listener` hear every event from now to the end of the program. There is one, as there is
/// one logger.
///
/// # Errors
/// `listener` comes back: there is another one already, or another thread sets one now.
pub fn set_listener(listener: &'static dyn Listener) -> Result<(), &'static dyn Listener> {
    let Some(_alone) = SETTING.try_lock() else { return Err(listener) };
    let mut mine = false;
    LISTENER.call_once(|| {
        mine = true;
        listener
    });
    if mine { Ok(()) } else { Err(listener) }
}

/// Tells the listener of something that the program itself did, beside the runtime: a copy into
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

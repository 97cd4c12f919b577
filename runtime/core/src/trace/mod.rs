//! The steps of a run: its allocations, mappings, copies and syncs, and the line of the program
//! that asked for each.
//!
//! Every step of the runtime is an [`Event`]. With the feature `audit` one `Listener` of the
//! program receives them all, each with its site: the line that called the runtime. A `Ledger`
//! counts them, with no heap. `contigo demo --trace FILE` has one, and a listener of its own that
//! writes a timeline. The features `log` and `defmt` send the same events to these crates as text,
//! without sites.
//!
//! Without the feature `audit` none of it is in the program. With it and no listener an event costs
//! one load and one branch.
//!
//! ```standalone_crate
//! # #[cfg(feature = "audit")] {
//! use contigo::{Align, Region, sim::SimBoard, trace::{self, Kind, Ledger}};
//! static LEDGER: Ledger<64> = Ledger::new();
//! trace::set_listener(&LEDGER).ok();
//! let board = SimBoard::new(1);
//! let region = Region::new(board.memory(4096)?)?;
//! let mut buf = region.alloc(1024, Align::LINE)?;
//! buf.copy_from_slice(&[7; 100])?;                                 // this line is the site
//! let copies: Vec<_> = LEDGER.rows().filter(|row| row.kind == Kind::CopyBytes).collect();
//! assert_eq!((copies[0].count.calls, copies[0].count.bytes), (1, 100));
//! println!("{} of {} bytes at {}", copies[0].kind.name(), copies[0].count.bytes, copies[0].site.unwrap());
//! # }
//! # Ok::<(), contigo::Error>(())
//! ```

mod event;
#[cfg(feature = "audit")]
mod ledger;
#[cfg(feature = "audit")]
mod listener;
mod site;
#[doc(hidden)]
pub mod stats;

pub use event::{Event, Kind};
#[cfg(feature = "audit")]
pub use ledger::{Count, Ledger, Row};
#[cfg(feature = "audit")]
pub use listener::{Listener, note, set_listener};
pub(crate) use site::Site;
pub use stats::Stats;

/// Reports that `event` is about to happen and takes time, so that a listener can measure it.
#[inline]
pub(crate) fn begins(event: Event, site: Site) {
    #[cfg(feature = "audit")]
    if let Some(listener) = listener::get() {
        listener.begins(&event, site.get());
    }
    let _ = (event, site);
}

/// Does something hear of events? For those of each job, which are made only then.
#[inline]
pub(crate) fn is_heard() -> bool {
    #[cfg(feature = "audit")]
    let is_listener = listener::get().is_some();
    #[cfg(not(feature = "audit"))]
    let is_listener = false;
    cfg!(any(feature = "log", feature = "defmt")) || is_listener
}

/// Reports to the program's listener, and to `log` and `defmt`, that `event` happened.
#[inline]
pub(crate) fn happened(event: Event, site: Site) {
    #[cfg(feature = "log")]
    log::trace!(target: "contigo", "{event}");
    #[cfg(feature = "defmt")]
    defmt::trace!("{}", event);
    #[cfg(feature = "audit")]
    if let Some(listener) = listener::get() {
        listener.happened(&event, site.get());
    }
    let _ = (event, site);
}

//! The bytes of an event of the runtime, as docs/log.md has them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo::trace::Event;
use contigo_log::{Clock, Reader, Settings};
use tempfile::TempDir;

const EVENTS: u32 = 10_000;

#[test]
fn an_event_takes_13_bytes_with_its_time() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("size.log");
    contigo_log::start(
        &path,
        &Settings { clock: Clock::Monotonic, panics: false, ring_bytes: 4096 },
    )
    .unwrap();
    for slot in 0..EVENTS {
        defmt::trace!("{}", Event::Take { slot: slot as usize & 7, len_bytes: 4096 });
    }
    let written = Reader::open(&path).unwrap().header().unwrap().written as f64 / f64::from(EVENTS);
    assert!((7.0..=13.0).contains(&written), "{written} bytes an event");
    assert_eq!(contigo_log::dropped(), 0);
}

//! Decodes frames into text, with the symbols of the program's ELF file.

use super::{Header, Refused};
use crate::BuildId;
use defmt_decoder::{Locations, Table};
use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// The texts of one build of a program.
pub struct Decoder {
    table: Table,
    locations: Locations,
}

/// One event, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds since the log began; 0 if the program records no time.
    pub time_us: u64,
    /// `TRACE` to `ERROR`; `None` for an event of `defmt::println!`.
    pub level: Option<&'static str>,
    /// The file and the line in the program's source, if the ELF file has them. A release build
    /// does not.
    pub place: Option<(String, u64)>,
    /// The event's text.
    pub text: String,
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

impl Decoder {
    /// Reads the texts in `elf`, which must be the file of the program that `header` names.
    ///
    /// # Errors
    /// [`Refused::OtherBuild`], [`Refused::NoTexts`].
    pub fn new(elf: &[u8], header: &Header) -> Result<Self, Refused> {
        let own = BuildId::of(elf);
        if own.is_none() || own != header.build_id {
            return Err(Refused::OtherBuild { ring: header.build_id, elf: own });
        }
        let parsed = caught(|| {
            let table = Table::parse(elf)
                .map_err(|error| error.to_string())?
                .ok_or("it has no section .defmt")?;
            // Without debug information there are no places, but the events are complete.
            let locations = table.get_locations(elf).unwrap_or_default();
            Ok::<_, String>(Self { table, locations })
        });
        let own =
            parsed.unwrap_or_else(|| Err("it is damaged".into())).map_err(Refused::NoTexts)?;
        if own.table.is_empty() {
            return Err(Refused::NoTexts("it is stripped, or no event is in it".into()));
        }
        Ok(own)
    }

    /// Decodes a frame. `None`: it is not an event of this program.
    #[must_use]
    pub fn entry(&self, frame: &[u8]) -> Option<Entry> {
        caught(|| {
            let (frame, _) = self.table.decode(frame).ok()?;
            let time = frame.display_timestamp().map(|time| time.to_string()).unwrap_or_default();
            let place = self
                .locations
                .get(&frame.index())
                .map(|place| (place.file.display().to_string(), place.line));
            let level = frame.level().map(|level| match level.as_str() {
                "trace" => "TRACE",
                "debug" => "DEBUG",
                "info" => "INFO",
                "warn" => "WARN",
                _ => "ERROR",
            });
            Some(Entry {
                time_us: microseconds(&time),
                level,
                place,
                text: frame.display_message().to_string(),
            })
        })?
    }
}

/// The microseconds of a time in defmt's format: `SECONDS.MICROSECONDS`.
fn microseconds(time: &str) -> u64 {
    let (seconds, rest) = time.split_once('.').unwrap_or((time, "0"));
    seconds
        .parse::<u64>()
        .unwrap_or(0)
        .saturating_mul(1_000_000)
        .saturating_add(rest.parse().unwrap_or(0))
}

/// The result of `act`; `None` if it panics, without a message. defmt's decoder panics on some
/// frames that no program writes.
fn caught<T>(act: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !DECODING.get() {
                before(panic);
            }
        }));
    });
    DECODING.set(true);
    let answer = panic::catch_unwind(AssertUnwindSafe(act)).ok();
    DECODING.set(false);
    answer
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("places", &self.locations.len()).finish_non_exhaustive()
    }
}

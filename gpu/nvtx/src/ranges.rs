#![allow(unsafe_code, reason = "a handle of the tool's goes to any thread")]
//! The runtime's events, as a tool for NVTX hears them.

use crate::abi::{
    COLOR_ARGB, Domain, EventAttributes, MESSAGE_TYPE_ASCII, PAYLOAD_TYPE_UNSIGNED_INT64, RangeId,
    VERSION,
};
use crate::injection::{self, Error};
use contigo::trace::{Event, Kind, Listener};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io::Write;
use std::panic::Location;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The name of our domain: a row of its own in a timeline.
const DOMAIN: &CStr = c"contigo";
/// A copy is easy to see: opaque red.
const RED_ARGB: u32 = 0xffd0_2020;
/// Jobs that are in flight in a program at once. Those of a deeper ring are marks, and not ranges.
const MAX_JOBS: usize = 4096;
/// `job on PORT`, with its null: ports of the runtime and of boards have names of some 20 letters.
const JOB_NAME_BYTES: usize = 64;

/// Each event of the runtime, told to the tool for NVTX that is attached to this program. To tell
/// one allocates nothing.
#[derive(Debug)]
pub struct Ranges {
    domain: Handle,
    /// The names of all kinds, by their numbers.
    names: Vec<CString>,
    /// Its room is taken when it is made.
    jobs: Mutex<Vec<Job>>,
}

#[derive(Debug)]
struct Handle(Domain);

// SAFETY: NVTX's functions take a domain on every thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// A job in flight.
#[derive(Debug)]
struct Job {
    port: &'static str,
    job: u64,
    range: RangeId,
}

thread_local! {
    /// The range that this thread has begun: the runtime begins no second one inside.
    static BEGUN: Cell<Option<Event>> = const { Cell::new(None) };
}

impl Ranges {
    /// The program's one, attached to the tool that `NVTX_INJECTION64_PATH` names. `None`: the
    /// variable is not set. The tool is loaded at the first call.
    ///
    /// # Errors
    /// The variable names no tool that attaches.
    pub fn attached() -> Result<Option<&'static Self>, Error> {
        static RANGES: OnceLock<Result<Option<Ranges>, Error>> = OnceLock::new();
        let ranges = RANGES.get_or_init(|| Ok(injection::attach()?.then(Self::new)));
        ranges.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    fn new() -> Self {
        Self {
            domain: Handle(injection::create_domain(DOMAIN)),
            names: Kind::ALL.map(|kind| CString::new(kind.name()).unwrap_or_default()).into(),
            jobs: Mutex::new(Vec::with_capacity(MAX_JOBS)),
        }
    }

    fn name(&self, kind: Kind) -> &CStr {
        self.names.get(kind as usize).map_or(c"", CString::as_c_str)
    }

    fn begin_job(&self, event: &Event, port: &'static str, job: u64) {
        let mut name = [0; JOB_NAME_BYTES];
        // A longer name is cut; the last byte stays the null.
        let _ = name.split_last_mut().map(|(_, mut room)| write!(room, "job on {port}"));
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.len() < jobs.capacity() {
            let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
            jobs.push(Job {
                port,
                job,
                range: injection::start(self.domain.0, &attributes(name, None, Some(job))),
            });
        } else {
            drop(jobs);
            self.mark(event);
        }
    }

    /// Ends the job's range, if it has one. Engines count their jobs each: of two with one port and
    /// number, the later ends first.
    fn end_job(&self, port: &'static str, job: u64) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = jobs.iter().rposition(|begun| begun.job == job && begun.port == port) {
            injection::end(self.domain.0, jobs.swap_remove(at).range);
        }
    }

    fn mark(&self, event: &Event) {
        injection::mark(self.domain.0, &self.shown(event));
    }

    fn shown(&self, event: &Event) -> EventAttributes {
        let kind = event.kind();
        let payload = match *event {
            Event::Submit { job, .. } | Event::Complete { job, .. } | Event::Stop { job, .. } => {
                Some(job)
            }
            _ => u64::try_from(event.len_bytes()).ok().filter(|bytes| *bytes != 0),
        };
        attributes(self.name(kind), (kind == Kind::CopyBytes).then_some(RED_ARGB), payload)
    }
}

impl Listener for Ranges {
    fn begins(&self, event: &Event, _site: Option<&'static Location<'static>>) {
        injection::push(self.domain.0, &self.shown(event));
        BEGUN.set(Some(*event));
    }

    fn happened(&self, event: &Event, _site: Option<&'static Location<'static>>) {
        if BEGUN.get() == Some(*event) {
            BEGUN.set(None);
            injection::pop(self.domain.0);
            return;
        }
        match *event {
            Event::Submit { port, job } => self.begin_job(event, port, job),
            Event::Complete { port, job } => self.end_job(port, job),
            Event::Stop { port, job } => {
                self.end_job(port, job);
                self.mark(event);
            }
            _ => self.mark(event),
        }
    }
}

/// Something with a name, and perhaps with a color and a number. It is read while `name` lives.
fn attributes(name: &CStr, color: Option<u32>, payload: Option<u64>) -> EventAttributes {
    EventAttributes {
        version: VERSION,
        #[allow(clippy::cast_possible_truncation, reason = "it has 48 bytes")]
        size: size_of::<EventAttributes>() as u16,
        category: 0,
        color_type: color.map_or(0, |_| COLOR_ARGB),
        color: color.unwrap_or(0),
        payload_type: payload.map_or(0, |_| PAYLOAD_TYPE_UNSIGNED_INT64),
        reserved0: 0,
        payload: payload.unwrap_or(0),
        message_type: if name.is_empty() { 0 } else { MESSAGE_TYPE_ASCII },
        message: if name.is_empty() { ptr::null() } else { name.as_ptr() },
    }
}

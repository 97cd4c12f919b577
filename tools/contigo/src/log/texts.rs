#![allow(unsafe_code, reason = "a child of fork, which is this process with less memory")]
//! The texts of a log: the file of the program that logged, decoded in a child process.
//!
//! defmt's decoder trusts the counts in a frame and the formats in a program. A bad one makes it
//! use all memory, its stack, or unlimited time. So it runs in a process of its own, with limits:
//! an event that ends that process counts as damaged, and the next child goes on behind it.

use contigo_bringup::file::{self, FileError};
use contigo_log::{BuildId, Decoder, Header, Refused};
use nix::sys::resource::{RLIM_INFINITY, Resource, rlim_t, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, Uid, dup2_stderr, fork, geteuid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A frame takes microseconds; loading a program with debug information takes a few seconds.
const MOST_FRAME_TIME: Duration = Duration::from_secs(5);
const MOST_START_TIME: Duration = Duration::from_secs(60);
/// A frame of 512 bytes has no useful text that is longer.
const MOST_ANSWER_BYTES: u32 = 1 << 20;
/// If more frames than this end the decoder, that is no accident.
const MOST_ENDS: u32 = 8;
/// The child's memory beside the program's file: tables of symbols and of lines.
const ROOM_BYTES: u64 = 512 << 20;
const ROOM_TIMES_FILE: u64 = 4;

/// A program with debug information has some 100 MiB at most.
const MOST_BYTES: u64 = 256 << 20;

/// Linkers put the note of the build ID into the first page that is loaded.
const HEAD_BYTES: u64 = 64 << 10;

/// Opens a program's file. `named_by` is the owner of the log that names the file, or `None` if
/// this tool's user names it. A file that another user's log names is not opened.
pub(super) fn open(path: &Path, named_by: Option<u32>) -> Result<File, String> {
    if let Some(owner) = named_by.map(Uid::from_raw).filter(|owner| *owner != geteuid()) {
        return Err(format!(
            "the log is user {owner}'s, and no file is opened that another user's log names"
        ));
    }
    file::open(path, MOST_BYTES).map_err(|error| match error {
        FileError::TooLong { bytes, most } => {
            format!(
                "it has {bytes} bytes, and no program has more than {most}: strip \
                     --strip-debug keeps the events, without their places"
            )
        }
        error => error.to_string(),
    })
}

/// The program's build ID, from its first bytes: only the right program is read as a whole.
fn build_id(file: &File) -> io::Result<Option<BuildId>> {
    let mut head =
        vec![0; usize::try_from(file.metadata()?.len().min(HEAD_BYTES)).map_err(io::Error::other)?];
    file.read_exact_at(&mut head, 0)?;
    Ok(BuildId::of(&head))
}

#[derive(Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) time_us: u64,
    pub(super) level: Option<String>,
    pub(super) place: Option<(String, u64)>,
    pub(super) text: String,
}

pub(super) struct Texts {
    elf: File,
    header: Header,
    child: Child,
    ends: u32,
}

impl Texts {
    /// Reads the texts in `elf`, which must be the file of the program that `header` names.
    pub(super) fn new(elf: File, header: Header) -> Result<Self, String> {
        let own = build_id(&elf).map_err(|error| error.to_string())?;
        if own.is_none() || own != header.build_id {
            return Err(Refused::OtherBuild { ring: header.build_id, elf: own }.to_string());
        }
        let child = Child::start(&elf, &header)?;
        Ok(Self { elf, header, child, ends: 0 })
    }

    /// Decodes a frame. `None`: it is no event, or it ends the decoder.
    pub(super) fn event(&mut self, frame: &[u8]) -> Result<Option<Event>, String> {
        if let Ok(event) = self.child.event(frame) {
            return Ok(event);
        }
        self.ends += 1;
        if self.ends > MOST_ENDS {
            return Err(format!(
                "{} of its events take more memory or time than any event: the log is damaged or \
                 hostile",
                self.ends
            ));
        }
        self.child = Child::start(&self.elf, &self.header)?;
        Ok(None)
    }
}

struct Child {
    pid: Pid,
    stream: UnixStream,
}

impl Child {
    fn start(elf: &File, header: &Header) -> Result<Self, String> {
        let os = |error: io::Error| error.to_string();
        let (stream, theirs) = UnixStream::pair().map_err(os)?;
        // SAFETY: this command has one thread, so the child has every thread of this process.
        match unsafe { fork() }.map_err(|errno| os(errno.into()))? {
            ForkResult::Child => {
                drop(stream);
                let _ = answer_all(theirs, elf, header);
                // SAFETY: ends the child, and runs no code of the parent.
                unsafe { nix::libc::_exit(0) }
            }
            ForkResult::Parent { child: pid } => {
                let mut own = Self { pid, stream };
                own.stream.set_read_timeout(Some(MOST_START_TIME)).map_err(os)?;
                own.stream.set_write_timeout(Some(MOST_FRAME_TIME)).map_err(os)?;
                let refused: Option<String> = own.answer().map_err(|_| {
                    "its tables take more memory or time than a program's".to_owned()
                })?;
                own.stream.set_read_timeout(Some(MOST_FRAME_TIME)).map_err(os)?;
                refused.map_or(Ok(own), Err)
            }
        }
    }

    fn event(&mut self, frame: &[u8]) -> io::Result<Option<Event>> {
        put(&mut self.stream, frame)?;
        self.answer()
    }

    fn answer<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<T> {
        serde_json::from_slice(&get(&mut self.stream)?).map_err(io::Error::other)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A child that has already ended stays until it is waited for.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

/// The child's loop, until its parent ends.
fn answer_all(mut parent: UnixStream, elf: &File, header: &Header) -> io::Result<()> {
    // The child's last messages do not help the user: the parent reports what they mean.
    dup2_stderr(File::options().write(true).open("/dev/null")?)?;
    let len_bytes = elf.metadata()?.len();
    let most = len_bytes.saturating_mul(ROOM_TIMES_FILE).saturating_add(ROOM_BYTES);
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // In a 32-bit process the limit's type is only that wide.
    #[allow(clippy::useless_conversion, reason = "32 bits wide on armv7")]
    let most = rlim_t::try_from(most).unwrap_or(RLIM_INFINITY);
    setrlimit(Resource::RLIMIT_AS, most, most)?;
    let mut bytes = vec![0; usize::try_from(len_bytes).map_err(io::Error::other)?];
    let read = elf.read_exact_at(&mut bytes, 0).map_err(|error| error.to_string());
    let decoder =
        read.and_then(|()| Decoder::new(&bytes, header).map_err(|refused| refused.to_string()));
    drop(bytes);
    put(&mut parent, &serde_json::to_vec(&decoder.as_ref().err())?)?;
    let Ok(decoder) = decoder else { return Ok(()) };
    // Each turn waits for the parent. When the parent ends, the stream closes.
    loop {
        let frame = get(&mut parent)?;
        let event = decoder.entry(&frame).map(|entry| Event {
            time_us: entry.time_us,
            level: entry.level.map(str::to_owned),
            place: entry.place,
            text: entry.text,
        });
        put(&mut parent, &serde_json::to_vec(&event)?)?;
    }
}

/// Sends `bytes`, after their length.
fn put(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&len.to_le_bytes())?;
    stream.write_all(bytes)
}

/// Receives bytes that [`put`] sent.
fn get(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len > MOST_ANSWER_BYTES {
        return Err(io::Error::other("no event is that long"));
    }
    let mut bytes = vec![0; len as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

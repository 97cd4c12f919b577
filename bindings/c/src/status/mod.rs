//! Every call returns 0, or a negative number for each class of refusal. A number never
//! changes its meaning.

mod codes;

pub use codes::*;

use crate::fault::{ArgumentError, Fault, Misuse};
use contigo::Error;
use contigo_objects::Refusal;
use core::ffi::CStr;

pub use contigo_objects::driver::contigo_status;

/// It was done.
pub const CONTIGO_OK: contigo_status = 0;

// ---- Mistakes that Rust's types would refuse: -1 and on.
/// A pointer that must not be `NULL` is.
pub const CONTIGO_E_NULL: contigo_status = -1;
/// A number that is no handle.
pub const CONTIGO_E_HANDLE: contigo_status = -2;
/// The object is gone: released, closed, ended, or given away. Also the second release of one
/// handle.
pub const CONTIGO_E_STALE: contigo_status = -3;
/// A handle, a port, or a register of another kind; or the device has no interrupt, or is none that
/// the kernel module stops.
pub const CONTIGO_E_KIND: contigo_status = -4;
/// Another thread is in a call with this object. Use a handle from one thread at a time.
pub const CONTIGO_E_IN_CALL: contigo_status = -5;
/// Others still use this object: its buffers, its engines, a call of another thread. Release them
/// first.
pub const CONTIGO_E_STILL_USED: contigo_status = -6;
/// A fixed table of this library is full (`CONTIGO_MAX_...`).
pub const CONTIGO_E_TABLE_FULL: contigo_status = -7;
/// The buffer is mapped, so that it cannot be given away or released. Unmap it first.
pub const CONTIGO_E_MAPPED: contigo_status = -8;
/// The buffer is not mapped.
pub const CONTIGO_E_NOT_MAPPED: contigo_status = -9;
/// The buffer is a device's. Wait for its job, or take it back with `contigo_buf_take_back`.
pub const CONTIGO_E_DEVICE_OWNED: contigo_status = -10;
/// The buffer is the CPU's, and has no bus address. Hand it over with `contigo_buf_give`.
pub const CONTIGO_E_CPU_OWNED: contigo_status = -11;
/// A structure's `struct_size` cannot be, or it has something set that this library does not know.
pub const CONTIGO_E_STRUCT: contigo_status = -13;
/// A text is not UTF-8, or too long.
pub const CONTIGO_E_TEXT: contigo_status = -14;
/// A number is none of those that this header lists for it.
pub const CONTIGO_E_VALUE: contigo_status = -15;
/// One buffer is two operands of one job, or a copy is from a buffer into itself.
pub const CONTIGO_E_SAME_BUFFER: contigo_status = -16;
/// The engine has jobs whose end no call took. Wait for them, or stop the engine.
pub const CONTIGO_E_HAS_JOB: contigo_status = -17;
/// A defect of this library was caught. Please report it.
pub const CONTIGO_E_INTERNAL: contigo_status = -18;

/// The device was stopped before this job ended. Its buffers are back.
pub const CONTIGO_E_CANCELLED: contigo_status = -157;

/// A refusal that is newer than this list. The text says what.
pub const CONTIGO_E_OTHER: contigo_status = -999;

impl Fault {
    /// The code of this refusal.
    pub(crate) const fn status(&self) -> contigo_status {
        match *self {
            Self::Runtime(error)
            | Self::Load { error, .. }
            | Self::Job { error, .. }
            | Self::Memory { error, .. }
            | Self::Device { error, .. }
            | Self::Setting { error, .. } => error.row().code,
            Self::NoSuchIn { .. } => CONTIGO_E_NOT_FOUND,
            Self::Name(_) => CONTIGO_E_BAD_NAME,
            Self::Map(_) | Self::Design(_) => CONTIGO_E_BAD_MAP,
            Self::Argument(error) => of_argument(error),
            Self::Object(refusal) => of_object(refusal),
            Self::Misuse(misuse) => of_misuse(misuse),
        }
    }
}

const fn of_object(refusal: Refusal) -> contigo_status {
    match refusal {
        Refusal::NoHandle { .. } => CONTIGO_E_HANDLE,
        Refusal::Stale { .. } | Refusal::Freed | Refusal::HandOverEnded => CONTIGO_E_STALE,
        Refusal::WrongKind { .. } => CONTIGO_E_KIND,
        Refusal::InCall { .. } => CONTIGO_E_IN_CALL,
        Refusal::StillUsed { .. } => CONTIGO_E_STILL_USED,
        Refusal::TableFull { .. } | Refusal::NamesFull { .. } => CONTIGO_E_TABLE_FULL,
        Refusal::Viewed { .. } => CONTIGO_E_MAPPED,
        Refusal::NotViewed => CONTIGO_E_NOT_MAPPED,
        Refusal::OnDevice | Refusal::InJob => CONTIGO_E_DEVICE_OWNED,
        Refusal::OnCpu => CONTIGO_E_CPU_OWNED,
        Refusal::HasJobs { .. } => CONTIGO_E_HAS_JOB,
        Refusal::Argument(error) => of_argument(error),
        Refusal::Runtime(error) => error.row().code,
    }
}

const fn of_argument(error: ArgumentError) -> contigo_status {
    match error {
        ArgumentError::Null { .. } => CONTIGO_E_NULL,
        ArgumentError::StructSize { .. } | ArgumentError::NewerStruct { .. } => CONTIGO_E_STRUCT,
        ArgumentError::Text { .. } => CONTIGO_E_TEXT,
        ArgumentError::Value { .. } => CONTIGO_E_VALUE,
    }
}

const fn of_misuse(misuse: Misuse) -> contigo_status {
    match misuse {
        Misuse::NoDevNode
        | Misuse::NoGpu { .. }
        | Misuse::NoInterrupt
        | Misuse::Register { .. } => CONTIGO_E_KIND,
        Misuse::NoPort => CONTIGO_E_NOT_FOUND,
        Misuse::Cancelled => CONTIGO_E_CANCELLED,
        Misuse::SameBuffer { .. } | Misuse::Overlap => CONTIGO_E_SAME_BUFFER,
        Misuse::Panicked => CONTIGO_E_INTERNAL,
    }
}

/// The name of a code, as this header spells it; `"?"` for a number that is none.
pub(crate) fn name(status: contigo_status) -> &'static CStr {
    let own = NAMES.iter().find(|(code, _)| *code == status).map(|(_, name)| *name);
    let row = Error::ROWS.iter().position(|row| row.code == status);
    let of_runtime = || CStr::from_bytes_until_nul(RUNTIME.get(row?)?).ok();
    own.or_else(of_runtime).unwrap_or(c"?")
}

/// Room for a name of the runtime's table, with its NUL.
const NAME_BYTES: usize = 40;

/// The names of the runtime's codes, in the order of its table, with a NUL behind each.
#[allow(clippy::indexing_slicing, reason = "it runs in the compiler, which checks each index")]
static RUNTIME: [[u8; NAME_BYTES]; Error::ROWS.len()] = {
    const PREFIX: &[u8] = b"CONTIGO_E_";
    let (mut names, mut row) = ([[0; NAME_BYTES]; Error::ROWS.len()], 0);
    while row < names.len() {
        let name = Error::ROWS[row].name.as_bytes();
        assert!(PREFIX.len() + name.len() < NAME_BYTES);
        let (_, after) = names[row].split_at_mut(PREFIX.len());
        after.split_at_mut(name.len()).0.copy_from_slice(name);
        names[row].split_at_mut(PREFIX.len()).0.copy_from_slice(PREFIX);
        row += 1;
    }
    names
};

/// Of those that are not in the runtime's table.
const NAMES: &[(contigo_status, &CStr)] = &[
    (CONTIGO_OK, c"CONTIGO_OK"),
    (CONTIGO_E_NULL, c"CONTIGO_E_NULL"),
    (CONTIGO_E_HANDLE, c"CONTIGO_E_HANDLE"),
    (CONTIGO_E_STALE, c"CONTIGO_E_STALE"),
    (CONTIGO_E_KIND, c"CONTIGO_E_KIND"),
    (CONTIGO_E_IN_CALL, c"CONTIGO_E_IN_CALL"),
    (CONTIGO_E_STILL_USED, c"CONTIGO_E_STILL_USED"),
    (CONTIGO_E_TABLE_FULL, c"CONTIGO_E_TABLE_FULL"),
    (CONTIGO_E_MAPPED, c"CONTIGO_E_MAPPED"),
    (CONTIGO_E_NOT_MAPPED, c"CONTIGO_E_NOT_MAPPED"),
    (CONTIGO_E_DEVICE_OWNED, c"CONTIGO_E_DEVICE_OWNED"),
    (CONTIGO_E_CPU_OWNED, c"CONTIGO_E_CPU_OWNED"),
    (CONTIGO_E_STRUCT, c"CONTIGO_E_STRUCT"),
    (CONTIGO_E_TEXT, c"CONTIGO_E_TEXT"),
    (CONTIGO_E_VALUE, c"CONTIGO_E_VALUE"),
    (CONTIGO_E_SAME_BUFFER, c"CONTIGO_E_SAME_BUFFER"),
    (CONTIGO_E_HAS_JOB, c"CONTIGO_E_HAS_JOB"),
    (CONTIGO_E_INTERNAL, c"CONTIGO_E_INTERNAL"),
    (CONTIGO_E_CANCELLED, c"CONTIGO_E_CANCELLED"),
    (CONTIGO_E_OTHER, c"CONTIGO_E_OTHER"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_negative_and_different() {
        let rows = Error::ROWS.iter().map(|row| row.code);
        let all: Vec<_> = NAMES.iter().map(|(code, _)| *code).chain(rows).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|code| *code < 0 || *code == CONTIGO_OK));
        assert_eq!((name(CONTIGO_E_STALE), name(1), name(-50)), (c"CONTIGO_E_STALE", c"?", c"?"));
        assert_eq!(name(CONTIGO_E_PAGEMAP_HIDDEN), c"CONTIGO_E_PAGEMAP_HIDDEN");
    }
}

#![allow(
    unsafe_code,
    reason = "the values that C hands over are read and written here, after the checks that are \
              possible"
)]
//! Pointers from C: checked for NULL, read and written at any alignment, never kept.

use crate::fault::Fault;
use crate::last_error::call;
use crate::status::contigo_status;
use contigo_objects::{ArgumentError, struct_size};
use core::ffi::c_char;
use core::{mem, ptr, slice};

pub(super) use contigo_objects::{Versioned, read, text, text_within};

/// Refuses a structure that could not be filled; NULL is one that is not wanted.
///
/// # Safety
/// As `fill`.
#[inline]
pub(super) unsafe fn room<T: Versioned>(to: *const T) -> Result<(), ArgumentError> {
    // SAFETY: the caller's promise.
    if to.is_null() { Ok(()) } else { unsafe { struct_size(to) }.map(drop) }
}

/// Fills a structure as far as the caller knows it; `struct_size` stays. The fields that a newer
/// one adds become 0.
///
/// # Safety
/// `to` is NULL, or points to as many writable bytes as its `struct_size` says.
pub(super) unsafe fn fill<T: Versioned>(to: *mut T, value: &T) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    let given = unsafe { struct_size(to)? };
    let (known, size) = (given.min(mem::size_of::<T>()), mem::size_of::<usize>());
    let bytes = to.cast::<u8>();
    // SAFETY: `known` bytes are there on both sides, the first of them `struct_size`; then up to
    // `given` on the caller's.
    unsafe {
        ptr::copy_nonoverlapping(
            ptr::from_ref(value).cast::<u8>().add(size),
            bytes.add(size),
            known - size,
        );
        bytes.add(known).write_bytes(0, given - known);
    }
    Ok(())
}

/// Runs a call that answers one value, and leaves what is there where it is refused: of a new
/// object's handle that may be a good one, which the program has only there.
///
/// # Safety
/// `to` is NULL, or points to a writable `T`.
#[inline]
pub(super) unsafe fn opened<T>(
    to: *mut T,
    what: &'static str,
    act: impl FnOnce() -> Result<T, Fault>,
) -> contigo_status {
    call(|| {
        if to.is_null() {
            return Err(Fault::null(what));
        }
        let value = act()?;
        // SAFETY: not null, and the caller's promise.
        unsafe { to.write_unaligned(value) };
        Ok(())
    })
}

/// Runs a call that answers one value: 0 where it is refused.
///
/// # Safety
/// `to` is NULL, or points to a writable `T`.
#[inline]
pub(super) unsafe fn answer<T: Default>(
    to: *mut T,
    what: &'static str,
    act: impl FnOnce() -> Result<T, Fault>,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { answer_or(T::default(), to, what, act) }
}

/// Runs one call that answers one value: `refused` where it is refused.
///
/// # Safety
/// As `answer`.
#[inline]
pub(super) unsafe fn answer_or<T>(
    refused: T,
    to: *mut T,
    what: &'static str,
    act: impl FnOnce() -> Result<T, Fault>,
) -> contigo_status {
    if !to.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { to.write_unaligned(refused) };
    }
    // SAFETY: the caller's promise.
    unsafe { opened(to, what, act) }
}

/// Bytes to read, not kept.
///
/// # Safety
/// `from` is NULL, or `len_bytes` bytes are there, initialised, and stay as they are for as long as
/// `'a`.
pub(super) unsafe fn bytes<'a>(
    from: *const u8,
    len_bytes: usize,
    what: &'static str,
) -> Result<&'a [u8], ArgumentError> {
    match (from.is_null(), len_bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(ArgumentError::Null { what }),
        // No object is larger (`slice::from_raw_parts`, "Safety").
        _ if isize::try_from(len_bytes).is_err() => {
            Err(ArgumentError::Value { what, value: len_bytes as u64 })
        }
        // SAFETY: not null, at most `isize::MAX`, and the caller's promise.
        _ => Ok(unsafe { slice::from_raw_parts(from, len_bytes) }),
    }
}

/// Copies a text into a structure's field of zeroes: as much as fits before a NUL.
pub(super) fn put_text(field: &mut [c_char], text: &str) {
    let room = field.len().saturating_sub(1);
    for (place, byte) in field.iter_mut().take(room).zip(text.bytes()) {
        // `c_char` has a sign on some processors.
        *place = c_char::from_ne_bytes([byte]);
    }
}

/// 0 or 1.
pub(super) fn flag(value: u32, what: &'static str) -> Result<bool, Fault> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(Fault::value(what, value)),
    }
}

/// The number of a window of registers.
pub(super) fn window(value: u32, what: &'static str) -> Result<u8, Fault> {
    u8::try_from(value).map_err(|_| Fault::value(what, value))
}

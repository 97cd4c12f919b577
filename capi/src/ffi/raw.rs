#![allow(unsafe_code, reason = "the values that C hands over are read and written here, after the checks that are possible")]
//! Pointers from C: checked for NULL, read and written at any alignment, never kept.

use crate::{
    fault::{Fault, Misuse},
    last_error::call,
    limits,
    status::contigo_status,
};
use core::{
    ffi::{CStr, c_char},
    mem::{self, MaybeUninit},
    ptr, slice,
};

/// A structure whose first field is its size, so that a newer one can have more fields.
///
/// # Implementation safety
/// It is `repr(C)`, begins with a `usize`, and every bit pattern is a value of it, padding aside.
pub(super) unsafe trait Versioned: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// The size of its first version.
    const LEAST: usize;
}

/// The most that a structure of any version has: a larger one is none of ours.
const STRUCT_MAX_BYTES: usize = 4096;

/// Its size as the caller knows it.
///
/// # Safety
/// `from` is NULL, or points to `struct_size`.
unsafe fn struct_size<T: Versioned>(from: *const T) -> Result<usize, Misuse> {
    if from.is_null() {
        return Err(Misuse::Null { what: T::NAME });
    }
    // SAFETY: not null, and the caller's promise.
    let given = unsafe { from.cast::<usize>().read_unaligned() };
    if (T::LEAST..=STRUCT_MAX_BYTES).contains(&given) {
        Ok(given)
    } else {
        Err(Misuse::StructSize { what: T::NAME, given, least: T::LEAST, most: STRUCT_MAX_BYTES })
    }
}

/// A structure of an older or newer caller. The fields that an older one lacks are 0, and the
/// fields that a newer one adds must be 0.
///
/// # Safety
/// `from` is NULL, or points to as many bytes as its `struct_size` says, initialised.
pub(super) unsafe fn read<T: Versioned>(from: *const T) -> Result<T, Misuse> {
    // SAFETY: the caller's promise.
    let given = unsafe { struct_size(from)? };
    let mut value = MaybeUninit::<T>::zeroed();
    let known = given.min(mem::size_of::<T>());
    // SAFETY: `known` bytes are there on both sides, and they are different objects.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), known) };
    for at in known..given {
        // SAFETY: `at` is below `given`.
        if unsafe { from.cast::<u8>().add(at).read() } != 0 {
            return Err(Misuse::NewerStruct { what: T::NAME, known, at });
        }
    }
    // SAFETY: every bit pattern is a value (`Versioned`).
    Ok(unsafe { value.assume_init() })
}

/// Refuses a structure that could not be filled; NULL is one that is not wanted.
///
/// # Safety
/// As `fill`.
#[inline]
pub(super) unsafe fn room<T: Versioned>(to: *const T) -> Result<(), Misuse> {
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
        ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>().add(size), bytes.add(size), known - size);
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
pub(super) unsafe fn opened<T>(to: *mut T, what: &'static str, act: impl FnOnce() -> Result<T, Fault>) -> contigo_status {
    call(|| {
        if to.is_null() {
            return Err(Misuse::Null { what }.into());
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
pub(super) unsafe fn answer<T: Default>(to: *mut T, what: &'static str, act: impl FnOnce() -> Result<T, Fault>) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { answer_or(T::default(), to, what, act) }
}

/// Runs one call that answers one value: `refused` where it is refused.
///
/// # Safety
/// As `answer`.
#[inline]
pub(super) unsafe fn answer_or<T>(refused: T, to: *mut T, what: &'static str, act: impl FnOnce() -> Result<T, Fault>) -> contigo_status {
    if !to.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { to.write_unaligned(refused) };
    }
    // SAFETY: the caller's promise.
    unsafe { opened(to, what, act) }
}

/// A text, not kept.
///
/// # Safety
/// `text` is NULL, or points to a NUL-terminated text that stays as it is for as long as `'a`.
pub(super) unsafe fn text<'a>(text: *const c_char, what: &'static str) -> Result<&'a str, Misuse> {
    if text.is_null() {
        return Err(Misuse::Null { what });
    }
    let refusal = Misuse::Text { what, max_bytes: limits::NAME_BYTES };
    // SAFETY: every byte up to the NUL is there, and no byte after it is read.
    let len = (0..=limits::NAME_BYTES).find(|&at| unsafe { text.add(at).read() } == 0).ok_or(refusal)?;
    // SAFETY: `len` bytes and the NUL were read above.
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), len + 1) };
    CStr::from_bytes_with_nul(bytes).ok().and_then(|text| text.to_str().ok()).ok_or(refusal)
}

/// Bytes to read, not kept.
///
/// # Safety
/// `from` is NULL, or `len_bytes` bytes are there, initialised, and stay as they are for as long as
/// `'a`.
pub(super) unsafe fn bytes<'a>(from: *const u8, len_bytes: usize, what: &'static str) -> Result<&'a [u8], Misuse> {
    match (from.is_null(), len_bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Misuse::Null { what }),
        // No object is larger (`slice::from_raw_parts`, "Safety").
        _ if isize::try_from(len_bytes).is_err() => Err(Misuse::Value { what, value: len_bytes as u64 }),
        // SAFETY: not null, at most `isize::MAX`, and the caller's promise.
        _ => Ok(unsafe { slice::from_raw_parts(from, len_bytes) }),
    }
}

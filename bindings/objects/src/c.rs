#![allow(
    unsafe_code,
    reason = "the values that C hands over are read here, after the checks that are possible"
)]
//! Values from C: checked for NULL, read at any alignment, never kept.

use crate::ArgumentError;
use core::ffi::{CStr, c_char};
use core::mem::{self, MaybeUninit};
use core::{ptr, slice};

/// The longest name of a port, kernel, driver or setting, in bytes.
pub const NAME_BYTES: usize = 127;

/// A structure whose first field is its size, so that a newer one can have more fields.
///
/// # Safety
/// Callers owe nothing.
///
/// # Implementation safety
/// It is `repr(C)`, begins with a `usize`, and every bit pattern is a valid value, padding aside.
pub unsafe trait Versioned: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// The size of its first version.
    const LEAST: usize;
}

/// The most bytes of a structure of any version. A larger one is not ours.
const STRUCT_MAX_BYTES: usize = 4096;

/// The size of the structure, as the caller's header has it.
///
/// # Errors
/// [`ArgumentError::Null`], [`ArgumentError::StructSize`].
///
/// # Safety
/// `from` is NULL, or points to a readable `struct_size`.
pub unsafe fn struct_size<T: Versioned>(from: *const T) -> Result<usize, ArgumentError> {
    if from.is_null() {
        return Err(ArgumentError::Null { what: T::NAME });
    }
    // SAFETY: not null, and the caller's promise.
    let given = unsafe { from.cast::<usize>().read_unaligned() };
    if (T::LEAST..=STRUCT_MAX_BYTES).contains(&given) {
        Ok(given)
    } else {
        Err(ArgumentError::StructSize {
            what: T::NAME,
            given,
            least: T::LEAST,
            most: STRUCT_MAX_BYTES,
        })
    }
}

/// Reads a structure of an older or newer caller. Fields that an older caller lacks are 0, and
/// fields that a newer caller adds must be 0.
///
/// # Errors
/// Those of [`struct_size`]; [`ArgumentError::NewerStruct`].
///
/// # Safety
/// `from` is NULL, or points to as many bytes as its `struct_size` says, initialised.
pub unsafe fn read<T: Versioned>(from: *const T) -> Result<T, ArgumentError> {
    // SAFETY: the caller's promise.
    let given = unsafe { struct_size(from)? };
    let mut value = MaybeUninit::<T>::zeroed();
    let known = given.min(mem::size_of::<T>());
    // SAFETY: both sides have `known` bytes, and they are different objects.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), known) };
    for at in known..given {
        // SAFETY: `at` is below `given`.
        if unsafe { from.cast::<u8>().add(at).read() } != 0 {
            return Err(ArgumentError::NewerStruct { what: T::NAME, known, at });
        }
    }
    // SAFETY: every bit pattern is a value (`Versioned`).
    Ok(unsafe { value.assume_init() })
}

/// A text of at most [`NAME_BYTES`].
///
/// # Errors
/// As [`text_within`].
///
/// # Safety
/// As [`text_within`].
pub unsafe fn text<'a>(text: *const c_char, what: &'static str) -> Result<&'a str, ArgumentError> {
    // SAFETY: the caller's promise.
    unsafe { text_within(text, what, NAME_BYTES) }
}

/// A text of at most `max_bytes`.
///
/// # Errors
/// [`ArgumentError::Null`], [`ArgumentError::Text`].
///
/// # Safety
/// `text` is NULL, or points to a NUL-terminated text that does not change for as long as `'a`.
pub unsafe fn text_within<'a>(
    text: *const c_char,
    what: &'static str,
    max_bytes: usize,
) -> Result<&'a str, ArgumentError> {
    if text.is_null() {
        return Err(ArgumentError::Null { what });
    }
    let refusal = ArgumentError::Text { what, max_bytes };
    // SAFETY: every byte up to the NUL is readable, and no byte after it is read.
    let len = (0..=max_bytes).find(|&at| unsafe { text.add(at).read() } == 0).ok_or(refusal)?;
    // SAFETY: `len` bytes and the NUL were read above.
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), len + 1) };
    CStr::from_bytes_with_nul(bytes).ok().and_then(|text| text.to_str().ok()).ok_or(refusal)
}

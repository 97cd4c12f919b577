#![allow(unsafe_code, reason = "functions that C calls")]
//! The library itself: its version, and the text of the last refusal.

use crate::last_error::with_text;
use crate::status::{self, contigo_status};
use core::ffi::{c_char, c_uint};
use core::ptr;

/// The version of this header, which is also the number in the shared library's name. It grows
/// where a program that was compiled with an older header would not work any more. New functions
/// and codes, and new fields at the end of a structure, do not change it.
pub const CONTIGO_ABI_VERSION: c_uint = 2;

/// The library's version as a text, such as "0.1.0". It is static: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The name of a status, such as "CONTIGO_E_STALE"; "?" for a number that is none. It is static:
/// never free it.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_status_name(status: contigo_status) -> *const c_char {
    status::name(status).as_ptr()
}

/// The text of this thread's last refusal, with its numbers, as UTF-8 with a NUL. A call that
/// succeeds leaves it.
///
/// Writes at most `len` bytes to `buf`, the NUL included, and cuts a text that does not fit.
/// Returns the text's length without the NUL, so that `contigo_last_error(NULL, 0)` asks how long
/// it is; 0: nothing was refused yet. 4,096 bytes hold every text; a longer one is cut.
///
/// # Safety
/// `buf` is NULL, or `len` bytes are writable there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_last_error(buf: *mut c_char, len: usize) -> usize {
    let copied = with_text(|text| {
        if let (false, Some(room)) = (buf.is_null(), len.checked_sub(1)) {
            let cut = text.len().min(room);
            // SAFETY: `cut + 1` is at most `len`, and the text is this library's own.
            unsafe {
                ptr::copy_nonoverlapping(text.as_ptr(), buf.cast::<u8>(), cut);
                buf.add(cut).write(0);
            }
        }
        text.len()
    });
    copied.unwrap_or(0)
}

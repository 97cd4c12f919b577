//! Files under `/sys`: numbers and names, read without a heap and distrusted.

use super::fd::Fd;
use crate::types::Error;
use core::ffi::CStr;
use nix::libc::{EINTR, ENOENT, O_NOCTTY, O_NONBLOCK, O_RDONLY, c_int};

/// Flags to open an attribute with, beside the access mode: a pipe or a terminal in its place, in a
/// tree that another user may write to, does not block the caller.
pub(crate) const ATTRIBUTE: c_int = O_NONBLOCK | O_NOCTTY;

/// The longest text that a number has is 20 digits and a newline, or `0x` and 16 digits; this
/// leaves room to detect a longer one.
const TEXT_MAX_BYTES: usize = 64;

/// A driver's handlers may wait for a mutex interruptibly, so a signal can end them with EINTR
/// before they did anything. More than this many signals during one call of a few microseconds is a
/// storm that a retry does not cure.
const EINTR_TRIES: u32 = 16;

/// The number that the attribute holds, or `None` where there is no such attribute in `folder`.
pub fn number(folder: &Fd, attribute: &'static CStr) -> Result<Option<u64>, Error> {
    let mut buffer = [0; TEXT_MAX_BYTES];
    match read(folder, attribute, &mut buffer)? {
        Some(raw) => parse(text(attribute), raw).map(Some),
        None => Ok(None),
    }
}

/// As [`number`], for an attribute that must exist.
pub(crate) fn required(folder: &Fd, attribute: &'static CStr) -> Result<u64, Error> {
    number(folder, attribute)?.ok_or(Error::AttributeMissing { name: text(attribute) })
}

/// The attribute's contents, as much as fits in `buffer`; `None` where there is no such attribute.
pub fn read<'b>(
    folder: &Fd,
    attribute: &'static CStr,
    buffer: &'b mut [u8],
) -> Result<Option<&'b [u8]>, Error> {
    let name = text(attribute);
    let file = match folder.open_at(attribute, O_RDONLY | ATTRIBUTE) {
        Ok(file) => file,
        Err(ENOENT) => return Ok(None),
        Err(errno) => return Err(Error::AttributeUnreadable { name, errno }),
    };
    let count = retry(|| file.read_start(buffer))
        .map_err(|errno| Error::AttributeUnreadable { name, errno })?;
    Ok(Some(buffer.get(..count).unwrap_or(&[])))
}

/// The attribute's name, for errors.
pub(crate) fn text(attribute: &'static CStr) -> &'static str {
    attribute.to_str().unwrap_or("attribute")
}

/// Calls again after a signal, a bounded number of times.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, i32>) -> Result<T, i32> {
    for _ in 1..EINTR_TRIES {
        match call() {
            Err(EINTR) => {}
            result => return result,
        }
    }
    call()
}

/// Digits, or `0x` and hexadecimal digits, then white space to the end; nothing else.
pub(crate) fn parse(name: &'static str, raw: &[u8]) -> Result<u64, Error> {
    let trimmed = raw.trim_ascii_end();
    let (digits, radix) = match trimmed {
        [] => return Err(Error::AttributeEmpty { name }),
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    let nonsense = |value| Error::Unexpected { name, value };
    // A full buffer may have been cut.
    if digits.is_empty() || raw.len() >= TEXT_MAX_BYTES {
        return Err(nonsense(0));
    }
    digits.iter().try_fold(0_u64, |value, &byte| {
        let digit = char::from(byte).to_digit(radix).ok_or(nonsense(value))?;
        value
            .checked_mul(u64::from(radix))
            .and_then(|shifted| shifted.checked_add(u64::from(digit)))
            .ok_or(nonsense(value))
    })
}

//! Paths of bounded length. `std`'s `CString` and `PathBuf` allocate, so a path is built in place.

use crate::types::Error;
use core::ffi::CStr;

/// The longest name of a device or a heap. A char device's name has 64 bytes with its NUL. So has a
/// CMA area's (`CMA_MAX_NAME`, Linux `include/linux/cma.h`), which is the name of its heap.
pub(crate) const NAME_MAX_BYTES: usize = 63;

/// The longest path, with its NUL: `/sys/class/u-dma-buf/` + 63, or a temporary directory's root +
/// as much, and room to spare.
const PATH_MAX_BYTES: usize = 256;

/// Refuses what is not the name of one file directly inside a directory.
///
/// # Errors
/// [`Error::BadName`]: empty, longer than [`NAME_MAX_BYTES`], `.`, `..`, or with a `/` or a NUL
/// inside.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let length_fits = (1..=NAME_MAX_BYTES).contains(&name.len());
    if length_fits
        && name != "."
        && name != ".."
        && !name.bytes().any(|byte| byte == b'/' || byte == 0)
    {
        return Ok(());
    }
    Err(Error::BadName { len_bytes: name.len(), max_bytes: NAME_MAX_BYTES })
}

/// A path, built in place.
#[derive(Debug)]
pub struct Path {
    // INVARIANT: ends with the only NUL.
    bytes: heapless::Vec<u8, PATH_MAX_BYTES>,
}

impl Path {
    /// The parts, with a `/` between each two.
    ///
    /// # Errors
    /// [`Error::BadName`] where they do not fit, or hold a NUL.
    pub fn join(parts: &[&str]) -> Result<Self, Error> {
        let len_bytes = parts
            .iter()
            .fold(parts.len().saturating_sub(1), |sum, part| sum.saturating_add(part.len()));
        let refused = Error::BadName { len_bytes, max_bytes: PATH_MAX_BYTES - 1 };
        let mut bytes = heapless::Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if part.bytes().any(|byte| byte == 0) {
                return Err(refused);
            }
            if index > 0 {
                bytes.push(b'/').map_err(|_| refused)?;
            }
            bytes.extend_from_slice(part.as_bytes()).map_err(|_| refused)?;
        }
        bytes.push(0).map_err(|_| refused)?;
        Ok(Self { bytes })
    }

    /// The path as system calls take it.
    pub fn as_c_str(&self) -> &CStr {
        // The invariant makes this an Ok; the other arm names no file.
        CStr::from_bytes_with_nul(&self.bytes).unwrap_or(c"")
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Path};

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let long = "d".repeat(300);
        for (root, len_bytes) in [(&*long, 309), ("a\0b", 12)] {
            let refused = Path::join(&[root, "udmabuf0"]).map(drop);
            assert_eq!(refused, Err(Error::BadName { len_bytes, max_bytes: 255 }));
        }
    }
}

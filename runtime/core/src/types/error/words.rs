//! Parts of texts that depend on the numbers.

use core::fmt;

/// The limits of a number: `2`, `between 1 and 8`, `a multiple of 4 between 4 and 64`.
pub(super) struct Limits {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) multiple_of: u64,
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, max, multiple_of } = *self;
        match multiple_of {
            0 | 1 if min == max => write!(f, "{min}"),
            0 | 1 => write!(f, "between {min} and {max}"),
            _ => write!(f, "a multiple of {multiple_of} between {min} and {max}"),
        }
    }
}

/// Names, one after the other; `none` where there are none.
pub(super) struct List(pub(super) &'static [&'static str]);

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else { return f.write_str("none") };
        f.write_str(first)?;
        others.iter().try_for_each(|name| write!(f, ", {name}"))
    }
}

/// An errno with its name, and errno(3)'s words for it.
pub(super) struct Errno(pub(super) i32);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ERRNOS.iter().find(|(errno, ..)| *errno == self.0) {
            Some((errno, name, words)) => write!(f, "{errno}, {name}: {words}"),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The errnos that drivers, files and memory answer with, as Linux numbers them on the processors
/// of every board here. `tests/tests/runtime/errors.rs` compares them.
const ERRNOS: &[(i32, &str, &str)] = &[
    (1, "EPERM", "operation not permitted"),
    (2, "ENOENT", "no such file or directory"),
    (3, "ESRCH", "no such process"),
    (4, "EINTR", "interrupted system call"),
    (5, "EIO", "I/O error"),
    (6, "ENXIO", "no such device or address"),
    (7, "E2BIG", "argument list too long"),
    (9, "EBADF", "bad file number"),
    (11, "EAGAIN", "try again"),
    (12, "ENOMEM", "out of memory"),
    (13, "EACCES", "permission denied"),
    (14, "EFAULT", "bad address"),
    (16, "EBUSY", "device or resource busy"),
    (17, "EEXIST", "file exists"),
    (19, "ENODEV", "no such device"),
    (20, "ENOTDIR", "not a directory"),
    (21, "EISDIR", "is a directory"),
    (22, "EINVAL", "invalid argument"),
    (23, "ENFILE", "file table overflow"),
    (24, "EMFILE", "too many open files"),
    (25, "ENOTTY", "no ioctl of this device"),
    (26, "ETXTBSY", "text file busy"),
    (27, "EFBIG", "file too large"),
    (28, "ENOSPC", "no space left on device"),
    (29, "ESPIPE", "illegal seek"),
    (30, "EROFS", "read-only file system"),
    (32, "EPIPE", "broken pipe"),
    (34, "ERANGE", "math result not representable"),
    (36, "ENAMETOOLONG", "file name too long"),
    (38, "ENOSYS", "function not implemented"),
    (40, "ELOOP", "too many symbolic links encountered"),
    (61, "ENODATA", "no data available"),
    (62, "ETIME", "timer expired"),
    (71, "EPROTO", "protocol error"),
    (75, "EOVERFLOW", "value too large for defined data type"),
    (95, "EOPNOTSUPP", "operation not supported"),
    (105, "ENOBUFS", "no buffer space available"),
    (110, "ETIMEDOUT", "timed out"),
    (121, "EREMOTEIO", "remote I/O error"),
    (122, "EDQUOT", "quota exceeded"),
    (125, "ECANCELED", "operation canceled"),
];

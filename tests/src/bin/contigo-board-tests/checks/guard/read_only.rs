//! A dma-buf that was opened for reading alone is imported for reading alone.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    subject::{Subject, refused, sys},
};
use crate::{heap, raw::import};
use nix::errno::Errno;

pub(super) fn read_only(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let buffer = match heap::read_only(&subject.heap, 1 << 16) {
        Err(contigo::Error::Os { errno: nix::libc::EACCES, .. }) => return Err(Wrong::Skipped("this user may not open the heap".into())),
        made => ok(made)?,
    };
    refused("a buffer for reading, imported for writing", guard.import(&buffer, import::CONTIGUOUS, 0), Errno::EACCES)?;
    ensure(sys("GET_INFO", guard.info())?.imports == 0, "what was refused was kept")?;
    let mapped = sys("imported for reading", guard.import(&buffer, import::CONTIGUOUS | import::READ_ONLY, 0))?;
    sys("RELEASE", guard.release(mapped.handle))?;
    refused("a flag that nobody knows", guard.import(&buffer, 1 << 31 | import::READ_ONLY, 0), Errno::EINVAL)?;
    Ok(format!("EACCES for writing; {} bytes at {:#x} for reading", mapped.len_bytes, mapped.addr))
}

//! A device's reset line: released while its guard is open, asserted at the end of one that nothing
//! else stops.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    own,
    subject::{Subject, file, refused, sys},
};
use crate::{heap, raw::RawGuard};
use nix::errno::Errno;

const MARK: u8 = 0x5A;

pub(super) fn reset(subject: &Subject) -> Verdict {
    let line =
        subject.reset().ok_or_else(|| Wrong::Skipped("its reset line is not the lab's".into()))?;
    let number = |what| file(what, line.number(what));
    let (is, before) = (number("asserted")?, number("asserts")?);
    let guard = subject.open()?;
    ensure(!Subject::has_no_reset(&guard)?, "its info says that it has no reset")?;
    let opened = number("asserts")? - before;
    ensure(
        opened == 1 && number("asserted")? == 0,
        format!("opened: asserted {opened} times, and now {}", number("asserted")?),
    )?;
    let memory = sys("ALLOC", guard.alloc(4096, 0))?;
    let pages = own::map(&guard, memory.mmap_offset, 4096)?;
    pages.write(0, MARK);
    sys("RESET", guard.reset())?;
    ensure(pages.read(0) == MARK, "CONTIGO_RESET changed the memory")?;
    ensure(
        number("asserts")? - before == 2 && number("asserted")? == 0,
        "CONTIGO_RESET did not reset it",
    )?;
    // No program: only the line stops it, and so nothing is kept.
    let block = ok(heap::block(&subject.heap, 1 << 16))?;
    sys("IMPORT", guard.import(&block, 0))?;
    drop((guard, block, pages));
    ensure(
        number("asserts")? - before == 3 && number("asserted")? == 1,
        "closed, and its line is not asserted",
    )?;
    let kept = sys("GET_INFO", subject.open()?.info())?.quarantined;
    ensure(kept == 0, format!("{kept} buffers are kept, though it was reset"))?;

    let fails = file("fail", line.told("fail"))?;
    refused("open without its reset", RawGuard::open(&subject.guard), Errno::EIO)?;
    drop(fails);
    drop(subject.open()?);
    Ok(format!(
        "asserted {is} before; once to open, once by CONTIGO_RESET, and at the end; EIO where it fails"
    ))
}

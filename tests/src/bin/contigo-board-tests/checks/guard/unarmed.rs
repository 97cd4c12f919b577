//! A user that left no program: what it imported is kept where it may have started the device, and
//! only there.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    subject::{Subject, file, sys},
};
use crate::{heap, raw::info};

const BLOCK_BYTES: usize = 64 << 10;

pub(super) fn unarmed(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    if sys("GET_INFO", guard.info())?.flags & info::IOMMU != 0 {
        return Err(Wrong::Skipped(
            "behind an IOMMU no process could open the device again".into(),
        ));
    }
    let block = ok(heap::block(&subject.heap, BLOCK_BYTES))?;
    sys("IMPORT", guard.import(&block, 0))?;
    drop((block, guard));
    let kept = |when: &str, expected: u32| -> Result<(), Wrong> {
        let info = sys("GET_INFO", subject.open()?.info())?;
        let bytes = u64::from(expected) * BLOCK_BYTES as u64;
        ensure(
            info.quarantined == expected && info.quarantined_bytes == bytes,
            format!(
                "{when}: {} buffers, {} bytes are kept",
                info.quarantined, info.quarantined_bytes
            ),
        )
    };
    kept("no register was touched", 0)?;

    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    let _ = registers.read(subject.steady());
    let block = ok(heap::block(&subject.heap, BLOCK_BYTES))?;
    sys("IMPORT", guard.import(&block, 0))?;
    drop((registers, block, guard));
    kept("a register was touched, and nothing says that the device stopped", 1)?;

    // Nothing tells when it stops: not another user, for whom it is stopped.
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    sys("ARM", guard.arm(&subject.always(&registers)))?;
    drop((registers, guard));
    kept("another user's stop sequence was met", 1)?;
    file(
        "quarantine",
        std::fs::write(format!("/sys/class/contigo/{}/quarantine", subject.guard), "0"),
    )?;
    kept("the administrator ended it", 0)?;
    Ok("kept where a register was touched, until the administrator ends it; nothing kept where none was".into())
}

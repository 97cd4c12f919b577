#![allow(unsafe_code, reason = "memory is read through raw pointers that a device may still write")]
//! A process is killed while the device writes into its memory. The next one has the same
//! addresses, and turns bus mastering on without a reset of its own.

use super::Seen;
use crate::checks::{self, Wrong};
use contigo::{
    Backend as _, Result,
    linux::vfio::{Interrupt, Vfio, VfioDevice},
};
use std::{io::PipeWriter, thread::sleep, time::Duration};

/// The most memory of a process that is killed. The next owner's covers its addresses, wherever in
/// the first 2 MiB of the address space each begins.
pub(super) const KILLED_BYTES: usize = 4 << 20;
const NEXT_BYTES: usize = 8 << 20;
/// In which a device that could write would have.
const A_WHILE: Duration = Duration::from_millis(50);
/// No process that is killed writes this byte.
pub(super) const CANARY: u8 = 0x5A;
/// The kill comes up to so many milliseconds after the device was seen at work.
const AFTER_MS: u64 = 20;

/// Kills `kills` processes. `work` says by its pipe that the device writes, and never returns.
pub(super) fn killed(
    address: &str,
    kills: u64,
    work: fn(&str, &mut PipeWriter) -> Result<()>,
) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut at_work = 0;
    for round in 0..kills {
        // 7 and 20 have no common divisor: each millisecond has its turn.
        let after = Duration::from_millis(round * 7 % AFTER_MS);
        match checks::killed_while(|mut tell| work(address, &mut tell), after) {
            Ok((told, _)) => at_work += u64::from(told),
            Err(Wrong::Skipped(why) | Wrong::Failed(why)) => return Ok(Seen::failed(why)),
        }
        seen.canary_hits += next_owner(address)?;
    }
    seen.failed = at_work != kills;
    seen.detail = format!(
        "{at_work} of {kills} processes killed at work; {} bytes of the next owners were written",
        seen.canary_hits
    );
    Ok(seen)
}

/// How many bytes of the next owner's memory the device has written.
fn next_owner(address: &str) -> Result<u64> {
    let vfio = Vfio::open(address)?;
    let memory = vfio.memory(NEXT_BYTES)?;
    let words = memory.mapping().cpu.cast::<u64>();
    let canary = u64::from_ne_bytes([CANARY; 8]);
    let indices = 0..NEXT_BYTES / 8;
    for index in indices.clone() {
        // SAFETY: `index` is below the mapping's length, which begins at a page, and the memory is
        // alive. No view of it exists: a device that writes it all the same is what is looked for.
        unsafe { words.add(index).write_volatile(canary) };
    }
    // SAFETY: no job of this process runs; whether one of another does, is the question.
    let device = unsafe { VfioDevice::open_unreset(&vfio, 0, Interrupt::Polled, |_| Ok(())) }?;
    sleep(A_WHILE);
    // SAFETY: as above.
    let found = indices.map(|index| unsafe { words.add(index).read_volatile() });
    let written: u64 = found
        .map(|word| word.to_ne_bytes().iter().filter(|byte| **byte != CANARY).count() as u64)
        .sum();
    drop(device);
    Ok(written)
}

//! A device that is taken from the module while a program uses it.

use super::{Verdict, Wrong, ensure, ok};
use contigo::{
    Backend as _, Direction, Error,
    linux::{guard::Guard, memory::DmaHeap},
};
use std::{fs, path::PathBuf};

/// ENODEV for everything from then on, nothing worse, and all works again when it is bound again.
pub(super) fn unbound(name: &str, heap: &str) -> Verdict {
    let class = PathBuf::from("/sys/class/contigo").join(name).join("device");
    let device = fs::canonicalize(&class)
        .map_err(|error| Wrong::Failed(format!("{}: {error}", class.display())))?;
    let driver = fs::canonicalize(device.join("driver"))
        .map_err(|error| Wrong::Failed(format!("driver: {error}")))?;
    let bound = device.file_name().unwrap_or_default().to_os_string();
    let write = |file: &str| {
        fs::write(driver.join(file), bound.as_encoded_bytes())
            .map_err(|error| Wrong::Failed(format!("{file}: {error}")))
    };
    let guard = ok(Guard::open(name))?;
    let block = ok(DmaHeap::allocate_for(&guard, heap, 1 << 16))?;
    write("unbind")?;
    let gone =
        |error: Option<Error>| matches!(error, Some(Error::Os { errno: nix::libc::ENODEV, .. }));
    // SAFETY: no reference to the block was made.
    #[allow(unsafe_code, reason = "a sync of memory to which no reference exists")]
    let sync = unsafe { block.sync_for_device(0..64, Direction::ToDevice) };
    // On a port that snoops nothing is asked; every other call is.
    ensure(guard.is_coherent() || gone(sync.err()), format!("sync: {sync:?}"))?;
    let import = DmaHeap::allocate_for(&guard, heap, 4096).map(drop);
    ensure(gone(import.err()), format!("import: {import:?}"))?;
    let bits = guard.set_addr_bits(32);
    ensure(gone(bits.err()), format!("address bits: {bits:?}"))?;
    let again = Guard::open(name).map(drop);
    ensure(
        matches!(again, Err(Error::NotFound { .. } | Error::Os { .. })),
        format!("open: {again:?}"),
    )?;
    drop(block);
    drop(guard);
    write("bind")?;
    let guard = ok(Guard::open(name))?;
    drop(ok(DmaHeap::allocate_for(&guard, heap, 1 << 16))?);
    Ok("ENODEV from every call; bound again, it works".into())
}

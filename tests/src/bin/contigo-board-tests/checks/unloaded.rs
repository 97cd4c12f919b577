//! The module itself, taken out of the kernel and put back.

use super::{Verdict, Wrong, ensure, ok};
use contigo::{DmaHeap, Error, Guard};
use nix::{
    errno::Errno,
    kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module},
};
use std::{
    ffi::CStr,
    fs::{self, File},
};

const MODULE: &CStr = c"contigo";
/// Where the lab's guests say which file each module came from, and with which parameters: a line
/// each.
const LOADED_FROM: &str = "/lab/modules";

/// Refused while a guard is open; done when none is; and all works again when it is loaded again.
pub(super) fn unloaded(name: &str, heap: &str) -> Verdict {
    let file = module_file(LOADED_FROM)?;
    let guard = ok(Guard::open(name))?;
    let block = ok(DmaHeap::allocate_for(&guard, heap, 1 << 16))?;
    let unload = || delete_module(MODULE, DeleteModuleFlags::O_NONBLOCK);
    let refused = unload();
    ensure(refused == Err(Errno::EWOULDBLOCK), format!("in use, and yet: {refused:?}"))?;
    drop(block);
    drop(guard);
    unload().map_err(|errno| Wrong::Failed(format!("delete_module: {errno}")))?;
    for left in ["/sys/module/contigo", "/sys/class/contigo", "/dev/contigo"] {
        // devtmpfs keeps a folder that is empty.
        let empty = fs::read_dir(left).map_or(true, |mut entries| entries.next().is_none());
        ensure(empty, format!("unloaded, and there still is {left}"))?;
    }
    let gone = Guard::open(name).map(drop);
    ensure(matches!(gone, Err(Error::NotFound { .. } | Error::Os { .. })), format!("open: {gone:?}"))?;
    let module = File::open(&file).map_err(|error| Wrong::Failed(format!("{file}: {error}")))?;
    finit_module(&module, c"", ModuleInitFlags::empty()).map_err(|errno| Wrong::Failed(format!("finit_module({file}): {errno}")))?;
    let guard = ok(Guard::open(name))?;
    drop(ok(DmaHeap::allocate_for(&guard, heap, 1 << 16))?);
    Ok("refused in use; unloaded, nothing is left; loaded again, it works".into())
}

/// The module's file, as the lab's guest has noted it.
fn module_file(list: &str) -> Result<String, Wrong> {
    let lines = fs::read_to_string(list).unwrap_or_default();
    let mut modules = lines.lines().map(|line| line.split_ascii_whitespace());
    let file = modules.find_map(|mut words| {
        let file = words.next()?;
        (words.next()?.as_bytes() == MODULE.to_bytes()).then(|| file.to_owned())
    });
    file.ok_or_else(|| Wrong::Skipped(format!("which file the module came from is not known here: no line for it in {list}")))
}

//! The module itself, taken out of the kernel and put back.

use super::{
    Verdict, Wrong,
    as_user::{USER, allow, opens},
    ensure, ok,
};
use crate::raw::{RawGuard, info};
use contigo::{
    Error,
    linux::{guard::Guard, memory::DmaHeap},
};
use nix::{
    errno::Errno,
    kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module},
};
use std::{
    ffi::{CStr, CString},
    fs::{self, File},
};

const MODULE: &CStr = c"contigo";
/// Where the lab's guests say which file each module came from, and with which parameters: a line
/// each.
const LOADED_FROM: &str = "/lab/modules";

/// Refused while a guard is open; done when none is; and all works again when it is loaded again.
/// Without its parameter an ordinary user may not open what nothing confines.
pub(super) fn unloaded(name: &str, heap: &str) -> Verdict {
    let (file, parameters) = module_file(LOADED_FROM)?;
    let guard = ok(Guard::open(name))?;
    let block = ok(DmaHeap::allocate_for(&guard, heap, 1 << 16))?;
    let unload = || delete_module(MODULE, DeleteModuleFlags::O_NONBLOCK);
    let refused = unload();
    ensure(refused == Err(Errno::EWOULDBLOCK), format!("in use, and yet: {refused:?}"))?;
    drop(block);
    drop(guard);
    let unloaded = || unload().map_err(|errno| Wrong::Failed(format!("delete_module: {errno}")));
    let load = |parameters: &str| {
        let module =
            File::open(&file).map_err(|error| Wrong::Failed(format!("{file}: {error}")))?;
        let parameters = CString::new(parameters).unwrap_or_default();
        let loaded = finit_module(&module, &parameters, ModuleInitFlags::empty());
        loaded.map_err(|errno| Wrong::Failed(format!("finit_module({file}): {errno}")))
    };
    unloaded()?;
    for left in ["/sys/module/contigo", "/sys/class/contigo", "/dev/contigo"] {
        // devtmpfs keeps a folder that is empty.
        let empty = fs::read_dir(left).map_or(true, |mut entries| entries.next().is_none());
        ensure(empty, format!("unloaded, and there still is {left}"))?;
    }
    let gone = Guard::open(name).map(drop);
    ensure(
        matches!(gone, Err(Error::NotFound { .. } | Error::Os { .. })),
        format!("open: {gone:?}"),
    )?;

    load(&parameters.replace("unprivileged=1", ""))?;
    let confined = RawGuard::open(name)
        .and_then(|guard| guard.info())
        .is_ok_and(|info| info.flags & info::CONFINED != 0);
    allow(name)?;
    let user = opens(name)?;
    let expected = if confined { Ok(()) } else { Err(Errno::EPERM) };
    ensure(
        user == expected,
        format!("without the parameter user {USER} is answered {user:?}, not {expected:?}"),
    )?;
    if parameters.contains("unprivileged=1") {
        unloaded()?;
        load(&parameters)?;
        allow(name)?;
        let user = opens(name)?;
        ensure(user.is_ok(), format!("with the parameter user {USER} is answered {user:?}"))?;
    }
    let guard = ok(Guard::open(name))?;
    drop(ok(DmaHeap::allocate_for(&guard, heap, 1 << 16))?);
    Ok(format!(
        "refused in use; unloaded, nothing is left; loaded without its parameter, user {USER} is answered {user:?}"
    ))
}

/// The module's file and its parameters, as the lab's guest has noted them.
fn module_file(list: &str) -> Result<(String, String), Wrong> {
    let lines = fs::read_to_string(list).unwrap_or_default();
    let mut modules = lines.lines().map(|line| line.split_ascii_whitespace());
    let file = modules.find_map(|mut words| {
        let file = words.next()?;
        (words.next()?.as_bytes() == MODULE.to_bytes())
            .then(|| (file.to_owned(), words.collect::<Vec<_>>().join(" ")))
    });
    file.ok_or_else(|| {
        Wrong::Skipped(format!(
            "which file the module came from is not known here: no line for it in {list}"
        ))
    })
}

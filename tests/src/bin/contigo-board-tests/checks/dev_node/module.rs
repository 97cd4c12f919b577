//! The device taken from the module while a program uses it, and the module taken out of the
//! kernel.

use super::Subject;
use crate::apart::{USER, allow, opens};
use crate::raw::info;
use crate::verdict::{Verdict, Wrong, ensure, must, same};
use contigo::linux::dev_node::DevNode;
use contigo::linux::memory::DmaHeap;
use contigo::{Backend as _, Direction, Error};
use nix::errno::Errno;
use nix::kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module};
use std::ffi::{CStr, CString};
use std::fs::{self, File};

/// ENODEV for everything from then on, nothing worse, and all works again when it is bound again.
pub(crate) fn unbound(subject: &Subject) -> Verdict {
    let Subject { dev_node: name, heap, .. } = subject;
    let dev_node = DevNode::open(name)?;
    let block = DmaHeap::allocate_for(&dev_node, heap, 1 << 16)?;
    let unbound = subject.unbind()?;
    let gone =
        |error: Option<Error>| matches!(error, Some(Error::Os { errno: nix::libc::ENODEV, .. }));
    // SAFETY: no reference to the block was made.
    #[allow(unsafe_code, reason = "a sync of memory to which no reference exists")]
    let sync = unsafe { block.sync_for_device(0..64, Direction::ToDevice) };
    // On a port that snoops nothing is asked; every other call is.
    ensure(dev_node.is_coherent() || gone(sync.err()), format!("sync: {sync:?}"))?;
    let import = DmaHeap::allocate_for(&dev_node, heap, 4096).map(drop);
    ensure(gone(import.err()), format!("import: {import:?}"))?;
    let bits = dev_node.set_addr_bits(32);
    ensure(gone(bits.err()), format!("address bits: {bits:?}"))?;
    ensure_gone(name)?;
    drop(block);
    drop(dev_node);
    unbound.bind()?;
    let dev_node = DevNode::open(name)?;
    drop(DmaHeap::allocate_for(&dev_node, heap, 1 << 16)?);
    Ok("ENODEV from every call; bound again, it works".into())
}

/// It cannot be opened, by a runtime error.
fn ensure_gone(name: &str) -> Result<(), Wrong> {
    let opened = DevNode::open(name).map(drop);
    let is_gone = matches!(opened, Err(Error::NotFound { .. } | Error::Os { .. }));
    ensure(is_gone, format!("open: {opened:?}"))
}

const MODULE: &CStr = c"contigo";
/// Where the lab's guests say which file each module came from, and with which parameters: a line
/// each.
const LOADED_FROM: &str = "/lab/modules";

/// Refused while a contigo device is open; done when none is; and all works again when it is loaded
/// again. Without its parameter an ordinary user may not open what nothing confines.
pub(crate) fn unloaded(subject: &Subject) -> Verdict {
    let Subject { dev_node: name, heap, .. } = subject;
    let (file, parameters) = module_file(LOADED_FROM)?;
    let dev_node = DevNode::open(name)?;
    let block = DmaHeap::allocate_for(&dev_node, heap, 1 << 16)?;
    let unload = || delete_module(MODULE, DeleteModuleFlags::O_NONBLOCK);
    same("unloading what is in use", unload(), Err(Errno::EWOULDBLOCK))?;
    drop(block);
    drop(dev_node);
    let unloaded = || must("delete_module", unload());
    let load = |parameters: &str| {
        let module = must(&file, File::open(&file))?;
        let parameters = CString::new(parameters).unwrap_or_default();
        must("finit_module", finit_module(&module, &parameters, ModuleInitFlags::empty()))
    };
    unloaded()?;
    for left in ["/sys/module/contigo", "/sys/class/contigo", "/dev/contigo"] {
        // devtmpfs keeps a folder that is empty.
        let empty = fs::read_dir(left).map_or(true, |mut entries| entries.next().is_none());
        ensure(empty, format!("unloaded, and there still is {left}"))?;
    }
    ensure_gone(name)?;

    load(&parameters.replace("unprivileged=1", ""))?;
    let confined = subject.info().is_ok_and(|info| info.flags & info::CONFINED != 0);
    allow(name)?;
    let user = opens(name)?;
    let expected = if confined { Ok(()) } else { Err(Errno::EPERM) };
    same("the ordinary user, without the parameter", user, expected)?;
    if parameters.contains("unprivileged=1") {
        unloaded()?;
        load(&parameters)?;
        allow(name)?;
        same("the ordinary user, with the parameter", opens(name)?, Ok(()))?;
    }
    let dev_node = DevNode::open(name)?;
    drop(DmaHeap::allocate_for(&dev_node, heap, 1 << 16)?);
    Ok(format!(
        "refused in use; unloaded, nothing is left; loaded without its parameter, user {USER} is \
         answered {user:?}"
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
    file.ok_or_else(|| Wrong::Skipped(format!("{list} has no line for the module's file")))
}

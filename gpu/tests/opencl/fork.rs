//! What a child of fork is refused. A library before the machine's loader ends it with 77 where it
//! calls the driver (`broken.c`).

use super::broken::BROKEN;
use super::child::{said, skipped};
use super::forks::Inherited;
use super::{built, scale};
use contigo::{Backend, Direction, Driver, Result};
use contigo_gpu::opencl::{Log, OpenClKernel, OpenClModule};
use std::process::Command;

pub(super) fn said_by(mut child: Command) -> String {
    let library = built("broken", "-Wl,--no-as-needed,-l:libOpenCL.so.1");
    match &library {
        Ok(library) => {
            child.env("OPENCL_DYLIB_PATH", library).env(BROKEN, "forked");
        }
        Err(why) => skipped(why),
    }
    let said = said(child);
    let _ = library.map(std::fs::remove_file);
    said
}

pub(super) fn answers(child: &mut Inherited<'_>) -> Vec<Result<()>> {
    let (memory, opened) = (child.memory, child.opened);
    let source = std::str::from_utf8(child.code).unwrap();
    child.busy.check(child.operands, child.words).unwrap();
    // SAFETY: nothing is handed over, and no kernel is made.
    unsafe {
        vec![
            memory.sync_for_device(0..4096, Direction::Bidirectional),
            memory.sync_for_cpu(0..4096, Direction::Bidirectional),
            memory.settled(0..4096),
            OpenClModule::build(opened.gpu, source, c"", &mut Log::new()).map(drop),
            OpenClKernel::new(&opened.module, c"scale", scale()).map(drop),
        ]
    }
}

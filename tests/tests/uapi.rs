//! `kernel-helpers/uapi/contigo.h`, compiled, says the same as the runtime's mirror of it: sizes, offsets and request codes, for this processor.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
#![allow(clippy::unnecessary_cast, reason = "request codes have 32 bits on armv7")]

use contigo::kernel_port::seam::{Import, Info, SegmentAt, Step, SyncRange, code};
use contigo_tests::emulated;
use std::{fs, mem::offset_of, path::Path, process::Command};

/// The C expressions, and what they are in Rust.
fn expected() -> Vec<(&'static str, u64)> {
    let size = |bytes: usize| bytes as u64;
    vec![
        ("CONTIGO_ABI", 1),
        ("CONTIGO_MAX_STEPS", 32),
        ("CONTIGO_MAX_WINDOWS", 6),
        ("CONTIGO_INFO_COHERENT", 1),
        ("CONTIGO_INFO_TRANSLATED", 1 << 4),
        ("CONTIGO_SYNC_FOR_CPU", 1),
        ("CONTIGO_SYNC_FOR_DEVICE", 2),
        ("CONTIGO_STEP_WRITE", 1),
        ("CONTIGO_STEP_POLL", 2),
        ("CONTIGO_STEP_POLL_NOT", 3),
        ("sizeof(struct contigo_info)", size(size_of::<Info>())),
        ("__builtin_offsetof(struct contigo_info, dma_limit)", size(offset_of!(Info, dma_limit))),
        ("__builtin_offsetof(struct contigo_info, window_len_bytes)", size(offset_of!(Info, window_len_bytes))),
        ("sizeof(struct contigo_import)", size(size_of::<Import>())),
        ("__builtin_offsetof(struct contigo_import, handle)", size(offset_of!(Import, handle))),
        ("__builtin_offsetof(struct contigo_import, addr)", size(offset_of!(Import, addr))),
        ("sizeof(struct contigo_segment)", size(size_of::<SegmentAt>())),
        ("sizeof(struct contigo_range)", size(size_of::<SyncRange>())),
        ("__builtin_offsetof(struct contigo_range, offset_bytes)", size(offset_of!(SyncRange, offset_bytes))),
        ("sizeof(struct contigo_step)", size(size_of::<Step>())),
        ("__builtin_offsetof(struct contigo_step, timeout_us)", size(offset_of!(Step, timeout_us))),
        ("CONTIGO_GET_INFO", code::GET_INFO as u64),
        ("CONTIGO_SET_DMA_BITS", code::SET_DMA_BITS as u64),
        ("CONTIGO_IMPORT", code::IMPORT as u64),
        ("CONTIGO_GET_SEGMENTS", code::GET_SEGMENTS as u64),
        ("CONTIGO_RELEASE", code::RELEASE as u64),
        ("CONTIGO_SYNC", code::SYNC as u64),
        ("CONTIGO_ARM", code::ARM as u64),
        ("CONTIGO_SET_BUS_MASTER", code::SET_BUS_MASTER as u64),
    ]
}

#[test]
fn the_header_says_the_same() {
    const NAME: &str = "uapi::the_header_says_the_same";
    if let Some(why) = emulated::why() {
        return emulated::skipped(NAME, &format!("the compiler is not for this processor: {why}"));
    }
    let header = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel-helpers/uapi/contigo.h"));
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("check.c");
    let asserts: String = expected()
        .iter()
        .map(|(expression, value)| format!("_Static_assert(({expression}) == {value}u, \"{}\");\n", expression.replace('"', "'")))
        .collect();
    fs::write(&source, format!("#include \"{}\"\n{asserts}", header.display())).unwrap();
    let Ok(output) =
        Command::new("cc").args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]).arg(&source).output()
    else {
        return emulated::skipped(NAME, "there is no C compiler (cc) here");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

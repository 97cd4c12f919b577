//! `kernel-helpers/uapi/contigo.h`, compiled, says the same as the runtime's mirror of it: sizes,
//! offsets and request codes, for this processor.
#![allow(clippy::unnecessary_cast, reason = "request codes have 32 bits on armv7")]

use self::abi::code;
use contigo_testkit::emulated;
use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// The runtime's mirror, private parts included.
#[allow(dead_code, unreachable_pub, reason = "the runtime uses what this test does not")]
#[path = "../../../runtime/core/src/linux/dev_node/abi.rs"]
mod abi;

/// The size of a structure, and where each of its fields is.
macro_rules! layout {
    ($c:literal, $rust:ident, $($field:ident)*) => {
        [
            (concat!("sizeof(struct ", $c, ")"), size_of::<abi::$rust>() as u64),
            $((
                concat!("__builtin_offsetof(struct ", $c, ", ", stringify!($field), ")"),
                offset_of!(abi::$rust, $field) as u64,
            )),*
        ]
    };
}

/// The C expressions, and what they are in Rust.
fn expected() -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("CONTIGO_MAX_BUFFERS", abi::MAX_BUFFERS.into()),
        ("CONTIGO_MAX_STEPS", abi::MAX_STEPS as u64),
        ("CONTIGO_MAX_WINDOWS", abi::MAX_WINDOWS as u64),
        ("CONTIGO_MAX_INTERRUPTS", abi::MAX_INTERRUPTS as u64),
        ("CONTIGO_WINDOW_MMAP", abi::WINDOW_MMAP.into()),
        ("CONTIGO_WINDOW_STOP", abi::WINDOW_STOP.into()),
        ("CONTIGO_INFO_COHERENT", abi::INFO_COHERENT.into()),
        ("CONTIGO_INFO_IOMMU", abi::INFO_IOMMU.into()),
        ("CONTIGO_INFO_ARMED", abi::INFO_ARMED.into()),
        ("CONTIGO_INFO_TRANSLATED", abi::INFO_TRANSLATED.into()),
        ("CONTIGO_INFO_RESET", abi::INFO_RESET.into()),
        ("CONTIGO_INFO_CONFINED", abi::INFO_CONFINED.into()),
        ("CONTIGO_ALLOC_COHERENT", abi::ALLOC_COHERENT.into()),
        ("CONTIGO_SYNC_FOR_CPU", abi::SYNC_FOR_CPU.into()),
        ("CONTIGO_SYNC_FOR_DEVICE", abi::SYNC_FOR_DEVICE.into()),
        ("CONTIGO_STEP_WRITE", abi::STEP_WRITE.into()),
        ("CONTIGO_STEP_POLL", abi::STEP_POLL.into()),
        ("CONTIGO_STEP_POLL_NOT", abi::STEP_POLL_NOT.into()),
        ("CONTIGO_STEP_ELSE", abi::STEP_ELSE.into()),
        ("CONTIGO_GET_INFO", code::GET_INFO as u64),
        ("CONTIGO_SET_DMA_BITS", code::SET_DMA_BITS as u64),
        ("CONTIGO_IMPORT", code::IMPORT as u64),
        ("CONTIGO_GET_SEGMENTS", code::GET_SEGMENTS as u64),
        ("CONTIGO_RELEASE", code::RELEASE as u64),
        ("CONTIGO_SYNC", code::SYNC as u64),
        ("CONTIGO_ARM", code::ARM as u64),
        ("CONTIGO_UNMASK", code::UNMASK as u64),
        ("CONTIGO_WAIT", code::WAIT as u64),
        ("CONTIGO_SET_EVENTFD", code::SET_EVENTFD as u64),
        ("CONTIGO_RESET", code::RESET as u64),
        ("CONTIGO_ALLOC", code::ALLOC as u64),
        ("CONTIGO_EXPORT", code::EXPORT as u64),
    ];
    all.extend(layout!("contigo_window", Window, len_bytes mmap_offset flags reserved));
    all.extend(layout!("contigo_info", Info, argsz flags dma_bits buffers quarantined interrupts
            granule_bytes reserved quarantined_bytes window));
    all.extend(layout!("contigo_dma_bits", DmaBits, bits reserved));
    all.extend(layout!("contigo_alloc", Alloc, len_bytes flags handle addr mmap_offset));
    all.extend(layout!("contigo_export", Export, handle fd));
    all.extend(layout!("contigo_import", Import, fd flags handle segments addr len_bytes));
    all.extend(layout!("contigo_segment", SegmentAt, addr len_bytes));
    all.extend(layout!("contigo_segments", Segments, handle count offset_bytes ptr));
    all.extend(layout!("contigo_release", Release, handle reserved));
    all.extend(layout!("contigo_range", SyncRange, handle flags offset_bytes len_bytes));
    all.extend(layout!("contigo_sync", Sync, count reserved ptr));
    all.extend(layout!("contigo_step", Step, kind window offset_bytes mask value timeout_us));
    all.extend(layout!("contigo_stop_sequence", StopSequence, count reserved ptr));
    all.extend(layout!("contigo_unmask", Unmask, interrupts reserved));
    all.extend(layout!("contigo_eventfd", EventFd, interrupt fd));
    all.extend(layout!("contigo_wait", WaitFor, interrupts timeout_us));
    all
}

#[test]
fn the_header_says_the_same() {
    const NAME: &str = "uapi::the_header_says_the_same";
    if let Some(why) = emulated::why() {
        return contigo_testkit::skipped(
            NAME,
            &format!("the compiler is not for this processor: {why}"),
        );
    }
    let header =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel-helpers/uapi/contigo.h"));
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("check.c");
    let asserts: String = expected()
        .iter()
        .map(|(expression, value)| {
            format!(
                "_Static_assert(({expression}) == {value}u, \"{}\");\n",
                expression.replace('"', "'")
            )
        })
        .collect();
    fs::write(&source, format!("#include \"{}\"\n{asserts}", header.display())).unwrap();
    let Ok(output) = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
        .arg(&source)
        .output()
    else {
        return contigo_testkit::skipped(NAME, "there is no C compiler (cc) here");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

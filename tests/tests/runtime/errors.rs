//! Every variant of `Error`: a test names it, its text has all of its numbers, and its row in the
//! table of codes is its own. Bad blocks, allocations, ports, devices and settings are provoked in
//! this folder.

mod devices;
mod jobs;
mod memory;
mod page;

use contigo::types::{Among, TensorRule};
use contigo::{Backend, Bus, Direction, Error, forward};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An example of each.
const EXAMPLES: &[Error] = &[
    Error::NotPowerOfTwo { align_bytes: 3 },
    Error::View { len_bytes: 12, element_bytes: 8, align_bytes: 4 },
    Error::OutOfRange { start: 64, end: 129, len_bytes: 128 },
    Error::NotContiguous { offset_bytes: 64, expected: 0x1000, found: 0x2000 },
    Error::Misaligned { addr: 0x2020, align_bytes: 64 },
    Error::BlockSize { len_bytes: 96, need_bytes: 77, line_bytes: 64 },
    Error::TooHigh { last: 0x2FFF, addr_bits: 12 },
    Error::NotOurs { addr: 0x2FFF, len_bytes: 77 },
    Error::Exhausted { need_bytes: 8193, capacity_bytes: 8192 },
    Error::NoSlots { slots: 77 },
    Error::TooMany { what: "blocks", most: 32 },
    Error::TooManyParts { limit: 256 },
    Error::Argument { name: "m", value: 77, min: 1, max: 64, multiple_of: 1 },
    Error::Argument { name: "n", value: 17, min: 16, max: 4096, multiple_of: 16 },
    Error::Argument { name: "k", value: 17, min: 16, max: 16, multiple_of: 1 },
    Error::CoherencyMismatch { port: "sim-hp0", memory_coherent: true },
    Error::CannotSync { port: "sim-hp0", install: "the module" },
    Error::WholeBlock { shared_bytes: 77 },
    Error::Unreachable { port: "p", addr: 0x1000, len_bytes: 64, first: 0, last: 0xFFF },
    Error::WrongBus { port: "sim-hp0", memory: Bus::Soc },
    Error::RegisterWindow { device: "gemm8", need_bytes: 144, have_bytes: 140 },
    Error::WrongDevice { device: "gemm8", register: "ID", expected: 7, found: 0 },
    Error::NotANumber { name: "channel", min: 3, max: 31 },
    Error::UnknownSetting { place: 77, known: &["channel", "event"] },
    Error::BadMap { line: 77, rule: "expected a name" },
    Error::OtherModel { what: "channel", value: 77, min: 3, max: 31 },
    Error::Gpu { call: "vkQueueSubmit", code: -4, name: "VK_ERROR_DEVICE_LOST" },
    Error::WrongDirection { index: 77, expected: Direction::ToDevice },
    Error::SharedLine { start: 32, end: 77, line_bytes: 64 },
    Error::BufferSize { index: 77, need_bytes: 64, have_bytes: 63 },
    Error::BufferAlign { index: 77, addr: 0x1020, align_bytes: 64 },
    Error::NoSuchJob { device: "scripted", slot: 77 },
    Error::BadCompletion { device: "scripted", slot: 77, bytes: 257, most_bytes: 256 },
    Error::QueueStopped { in_flight: 77 },
    Error::QueueFull { depth: 77 },
    Error::Busy,
    Error::Timeout { timeout_us: 77 },
    Error::HasDriver,
    Error::WillNotStop { device: "gemm8", status: 0x80, waited_us: 10_000 },
    Error::WrongAccess { device: "filler", unowned: 77, stray: 78 },
    Error::NotComputed { device: "fir", jobs: 79 },
    Error::Contended { tries: 77 },
    Error::Tensor { rule: TensorRule::Size, found: 4100, need: 4096 },
    Error::TensorOut,
    Error::OperandTooLong { index: 77, have_bytes: 1024, max_bytes: 1023 },
    Error::ReadsBeside {
        index: 77,
        word_bytes: 128,
        from: 0x1400,
        last: 0x147F,
        block_from: 0x1000,
        block_last: 0x143F,
    },
    Error::FaultAt { device: "axi_dma", status: 0x10, what: "DMASlvErr", addr: 0x1000 },
    Error::LengthCut { device: "d", length_bits: 15, need_bytes: 16_384, done_bytes: 77 },
    Error::Fault { device: "zdma", status: 0x10, what: "it failed" },
    Error::ShortTransfer { need_bytes: 100, done_bytes: 77 },
    Error::EndedByReset { device: "twin" },
    Error::BadName { len_bytes: 64, max_bytes: 63 },
    Error::AttributeMissing { name: "size" },
    Error::AttributeUnreadable { name: "size", errno: 13 },
    Error::AttributeEmpty { name: "size" },
    Error::Setting { name: "sync_mode", value: 7, fix: "set it to 1" },
    Error::Unexpected { name: "size", value: 77 },
    Error::InUse { errno: 11 },
    Error::NoAddress { install: "something" },
    Error::Os { call: "mmap", errno: 12 },
    Error::PagemapHidden { page: 0x7F12 },
    Error::NoMemory { need_bytes: 4096, errno: 122, fix: "raise max_mib" },
    Error::PinLimit { need_bytes: 8192, limit_bytes: 4096 },
    Error::Denied { what: "/dev/uioN", errno: 13, fix: "add a udev rule" },
    Error::NotFound { what: "UIO device", among: Among::of(3) },
    Error::Ambiguous { what: "UIO device", matches: 2 },
    Error::NeedsDevice { kind: "vfio" },
    Error::Cuda { call: "cuInit", code: 100, name: "CUDA_ERROR_NO_DEVICE" },
    Error::Unsupported { what: "cuInit", fix: "update it" },
    Error::NoLibrary { name: "libcuda.so.1", fix: "install the driver" },
    Error::Forked { owner_pid: 77 },
    Error::NotBuiltIn { kind: "cuda", feature: "cuda" },
    Error::SlotSize { slot_bytes: 100, line_bytes: 64 },
    Error::DriverCheck { driver: "mover", why: "too short", answer: 3 },
    Error::Driver { driver: "mover", why: "open", answer: 5 },
];

/// Folders and files whose tests name them, from the root of the repository.
const TESTS: [&str; 5] = [
    "tests/tests",
    "bindings/objects/tests",
    "bindings/c/src/object/buf.rs",
    "runtime/contigo/src/names/memory_name.rs",
    "runtime/core/src/types/platform/process.rs",
];

/// All of their text, except for the list here.
fn tests(path: &Path) -> String {
    match fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| tests(&entry.unwrap().path())).collect(),
        Err(_) if path.ends_with("runtime/errors.rs") => String::new(),
        Err(_) => fs::read_to_string(path).unwrap_or_default(),
    }
}

/// `Busy` and its like: `Debug` up to the numbers.
fn variant(error: Error) -> String {
    format!("{error:?}").split([' ', '{']).next().unwrap().to_owned()
}

#[test]
fn every_variant_is_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text: String = TESTS.map(|path| tests(&root.join(path))).concat();
    let ends_a_name = |letter: char| !letter.is_alphanumeric();
    let mentioned: BTreeSet<_> =
        text.split("Error::").skip(1).filter_map(|rest| rest.split(ends_a_name).next()).collect();
    let examples: BTreeSet<_> = EXAMPLES.iter().copied().map(variant).collect();
    for (name, ..) in Error::ABOUT {
        assert!(mentioned.contains(name), "no test names {name}");
        assert!(examples.contains(*name), "{name} has no example here");
    }
}

/// Every number and every name that the error carries, in decimal or in hexadecimal.
#[test]
fn texts_have_all_numbers() {
    for error in EXAMPLES.iter().copied() {
        let (mut fields, text) = (format!("{error:?}"), error.to_string());
        if let Error::Argument { min, max, .. } = error {
            // A limit that limits nothing is not told.
            fields = fields.replace(", multiple_of: 1 }", "");
            let ends =
                if min == max { format!("must be {min}") } else { format!("{min} and {max}") };
            assert!(text.ends_with(&ends), "{text}");
        }
        for (at, part) in fields.split('"').enumerate() {
            if at % 2 == 1 {
                assert!(text.contains(part), "{fields}: {part} is not in \"{text}\"");
                continue;
            }
            for word in part.split(|letter: char| !letter.is_alphanumeric()) {
                let Ok(number) = word.parse::<u64>() else {
                    assert!(!word.starts_with("0x") || text.contains(word), "{word}: \"{text}\"");
                    continue;
                };
                let shown = [word.to_owned(), format!("{number:#x}"), format!("{number:#010x}")];
                let is_shown = shown.iter().any(|shown| text.contains(shown));
                assert!(is_shown, "{fields}: {number} is not in \"{text}\"");
            }
        }
        // A register or an address is hexadecimal in both; a tensor's numbers are shown both ways.
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let mut words = words.filter(|word| word.starts_with("0x"));
        let is_tensor = matches!(error, Error::Tensor { .. });
        assert!(is_tensor || words.all(|word| fields.contains(word)), "{fields}: \"{text}\"");
        assert!(text.len() > 10 && !text.contains("Error"), "\"{text}\" is for people");
        assert!(!text.contains("::") && !text.contains("(..)"), "\"{text}\" is for C and Python");
        let goes_on = [": ", "; ", "errno"].iter().any(|mark| text.contains(mark));
        assert!(goes_on, "\"{text}\" says how to go on");
    }
}

/// A program acts by class and errno: the row of each error says the same as its methods, and no
/// number or name stands for two.
#[test]
fn the_table_is_one_to_one() {
    let (codes, names): (BTreeSet<_>, BTreeSet<_>) =
        Error::ROWS.iter().map(|row| (row.code, row.name)).unzip();
    assert_eq!((codes.len(), names.len()), (Error::ROWS.len(), Error::ROWS.len()));
    assert!(codes.iter().all(|code| (-200..=-100).contains(code)), "{codes:?}");
    for error in EXAMPLES.iter().copied() {
        let at = Error::ABOUT.iter().position(|(name, ..)| *name == variant(error)).unwrap();
        assert_eq!((&Error::ROWS[at], error.kind()), (error.row(), error.row().kind), "{error:?}");
        let own = match error {
            Error::Os { errno, .. }
            | Error::Denied { errno, .. }
            | Error::AttributeUnreadable { errno, .. }
            | Error::NoMemory { errno, .. } => errno,
            _ => error.errno(),
        };
        assert!(error.errno() == own && own > 0, "{error:?}");
    }
}

/// The table of errnos in the runtime, beside libc's words as nix has them.
#[test]
fn an_errno_has_its_name() {
    let mut named = 0;
    for number in 1..=133 {
        let told = Error::Os { call: "it", errno: number }.to_string();
        let begins = format!("it failed: errno {number}");
        let rest = told.strip_prefix(&begins).unwrap();
        let Some((name, words)) = rest.split_once(": ") else {
            assert_eq!(rest, "");
            continue;
        };
        assert_eq!(name, format!(", {:?}", nix::errno::Errno::from_raw(number)), "{told}");
        assert!(!words.is_empty() && words.is_ascii(), "{told}");
        named += 1;
    }
    assert!(named > 30, "{named}");
}

/// A backend that counts how often it was freed.
struct Watched<B> {
    inner: B,
    freed: Arc<AtomicUsize>,
}

impl<B> Watched<B> {
    fn new(inner: B) -> (Self, Arc<AtomicUsize>) {
        let freed = Arc::new(AtomicUsize::new(0));
        (Self { inner, freed: Arc::clone(&freed) }, freed)
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: `inner` keeps all of it.
unsafe impl<B: Backend> Backend for Watched<B> {
    forward!(|this| this.inner => name, mapping, segment, sync_for_device, sync_for_cpu, held_by,
        wrong_accesses);
}

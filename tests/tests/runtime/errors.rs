//! Every variant of `Error`, provoked once, with its numbers. Nothing is lost by it: buffers come
//! back, pools are full again, regions free their block. All errors for bad input are in this one
//! place.
//!
//! The enum's own source is read, so that a variant without a test fails here.

mod devices;
mod jobs;
mod memory;
mod page;
mod queues;
mod tensors;

use contigo::{Backend, Error, forward};
use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Every section; each returns what it provoked.
const SECTIONS: [fn() -> Vec<Error>; 12] = [
    memory::numbers,
    memory::blocks,
    memory::allocations_and_addresses,
    memory::pools_and_allocations,
    jobs::memory_against_port,
    jobs::operands_refused,
    queues::that_refuse,
    devices::that_fail,
    devices::that_will_not_stop,
    devices::that_are_not_there,
    devices::whose_settings_are_wrong,
    tensors::refused,
];

/// The errors that only a kernel's backend makes, or only the C interface: an example of each, and
/// the file that provokes it.
const KERNEL: [(Error, &str); 24] = [
    (Error::NoAddress { install: "something" }, include_str!("../linux/dma_heap.rs")),
    (Error::Os { call: "mmap", errno: 12 }, include_str!("../linux/hugetlb.rs")),
    (
        Error::BadName { len_bytes: 64, max_bytes: 63 },
        include_str!("../linux/u_dma_buf/refused.rs"),
    ),
    (Error::AttributeMissing { name: "size" }, include_str!("../linux/u_dma_buf/refused.rs")),
    (
        Error::AttributeUnreadable { name: "size", errno: 13 },
        include_str!("../linux/u_dma_buf/refused.rs"),
    ),
    (Error::AttributeEmpty { name: "size" }, include_str!("../linux/u_dma_buf/refused.rs")),
    (
        Error::Setting { name: "sync_mode", value: 7, fix: "set it to 1" },
        include_str!("../linux/u_dma_buf/refused.rs"),
    ),
    (Error::Unexpected { name: "size", value: 77 }, include_str!("../linux/u_dma_buf/refused.rs")),
    (Error::PagemapHidden { page: 0x7F12 }, include_str!("../linux/hugetlb.rs")),
    (Error::InUse { errno: 11 }, include_str!("../linux/u_dma_buf/refused.rs")),
    (
        Error::NoMemory { need_bytes: 4096, errno: 122, fix: "raise max_mib" },
        include_str!("../linux/dev_node/memory.rs"),
    ),
    (
        Error::PinLimit { need_bytes: 8192, limit_bytes: 4096 },
        include_str!("../linux/vfio/memory.rs"),
    ),
    (
        Error::Forked { owner_pid: 77 },
        include_str!("../../../runtime/core/src/types/platform/process.rs"),
    ),
    (
        Error::Denied { what: "/dev/uioN", errno: 13, fix: "add a udev rule" },
        include_str!("../linux/uio.rs"),
    ),
    (
        Error::NotFound { what: "UIO device", among: contigo::types::Among::of(3) },
        include_str!("../linux/uio.rs"),
    ),
    (Error::Ambiguous { what: "UIO device", matches: 2 }, include_str!("../linux/uio.rs")),
    (
        Error::NotBuiltIn { kind: "cuda", feature: "cuda" },
        include_str!("../../../runtime/contigo/src/names/memory_name.rs"),
    ),
    (Error::NeedsDevice { kind: "vfio" }, include_str!("../design/names.rs")),
    (
        Error::Cuda { call: "cuInit", code: 100, name: "CUDA_ERROR_NO_DEVICE" },
        include_str!("../cuda/main.rs"),
    ),
    (Error::Unsupported { what: "cuInit", fix: "update it" }, include_str!("../cuda/gpus.rs")),
    (
        Error::SlotSize { slot_bytes: 100, line_bytes: 64 },
        include_str!("../../../bindings/c/src/object/buf.rs"),
    ),
    (
        Error::DriverCheck { driver: "mover", why: "too short", answer: 3 },
        include_str!("../../../bindings/objects/tests/loaded.rs"),
    ),
    (
        Error::Driver { driver: "mover", why: "open", answer: 5 },
        include_str!("../../../bindings/objects/tests/loaded.rs"),
    ),
    (
        Error::NoLibrary { name: "libcuda.so.1", fix: "install the driver" },
        include_str!("../cuda/gpus.rs"),
    ),
];

/// `Busy` and its like: `Debug` up to the numbers.
fn variant(error: Error) -> String {
    format!("{error:?}").split([' ', '{']).next().unwrap().to_owned()
}

/// The names of the enum's variants, from their table.
fn variants() -> BTreeSet<String> {
    Error::ABOUT.iter().map(|(name, ..)| (*name).to_owned()).collect()
}

/// The message has every number and every name that the error carries, in decimal or in
/// hexadecimal.
fn message_is_complete(error: Error) {
    let (mut fields, message) = (format!("{error:?}"), error.to_string());
    println!(
        "{:<9} {:>4} errno {:<4} {message}",
        error.kind().name(),
        error.row().code,
        error.errno()
    );
    if let Error::Argument { min, max, multiple_of, .. } = error {
        // A limit that limits nothing is not told.
        fields = if multiple_of == 1 { fields.replace(", multiple_of: 1", "") } else { fields };
        assert!(
            message.ends_with(&if min == max {
                format!("must be {min}")
            } else {
                format!("{min} and {max}")
            }),
            "{message}"
        );
    }
    let mut parts = fields.split('"');
    while let Some(plain) = parts.next() {
        for word in plain.split(|letter: char| !letter.is_alphanumeric()) {
            if word.starts_with("0x") {
                assert!(message.contains(word), "{fields}: {word} is not in \"{message}\"");
            } else if let Ok(number) = word.parse::<u64>() {
                let shown = [number.to_string(), format!("{number:#x}"), format!("{number:#010x}")];
                assert!(
                    shown.iter().any(|shown| message.contains(shown)),
                    "{fields}: {number} is not in \"{message}\""
                );
            }
        }
        if let Some(text) = parts.next() {
            assert!(message.contains(text), "{fields}: {text} is not in \"{message}\"");
        }
    }
    // A register or an address in hexadecimal is so in both; a tensor's numbers are shown both
    // ways.
    let hexadecimal = message
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.starts_with("0x"));
    for word in hexadecimal.filter(|_| !matches!(error, Error::Tensor { .. })) {
        assert!(fields.contains(word), "{word} of \"{message}\" is not in {fields}");
    }
    assert!(message.len() > 10 && !message.contains("Error"), "\"{message}\" is for people");
    assert!(
        !message.contains("::") && !message.contains("(..)"),
        "\"{message}\" is read in C and Python too"
    );
    assert!(
        message.contains(": ") || message.contains("; ") || message.contains("errno"),
        "\"{message}\" says how to go on"
    );
}

#[test]
fn every_variant_is_provoked() {
    let provoked: Vec<_> = SECTIONS.iter().flat_map(|section| section()).collect();
    provoked.iter().copied().chain(KERNEL.map(|(error, _)| error)).for_each(message_is_complete);
    let mut names: BTreeSet<_> = provoked.into_iter().map(variant).collect();
    for (error, file) in KERNEL {
        let name = variant(error);
        assert!(
            file.contains(&format!("Error::{name} {{")),
            "{name} is provoked in its backend's tests"
        );
        names.insert(name);
    }
    assert_eq!(names, variants());
}

/// A program acts by class and errno: the row of each error says the same as its methods, and no
/// number or name stands for two.
#[test]
fn the_table_is_one_to_one() {
    let (codes, names): (BTreeSet<_>, BTreeSet<_>) =
        Error::ROWS.iter().map(|row| (row.code, row.name)).unzip();
    assert_eq!((codes.len(), names.len()), (Error::ROWS.len(), Error::ROWS.len()));
    assert!(codes.iter().all(|code| (-200..=-100).contains(code)), "{codes:?}");
    let errors =
        KERNEL.iter().map(|(error, _)| *error).chain(SECTIONS.iter().flat_map(|section| section()));
    for error in errors {
        let row =
            Error::ABOUT.iter().zip(Error::ROWS).find(|((name, ..), _)| *name == variant(error));
        assert_eq!(
            (row.map(|(_, row)| row), error.kind()),
            (Some(error.row()), error.row().kind),
            "{error:?}"
        );
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

/// `docs/errors.md`, made from the table.
#[test]
fn the_page_of_errors_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let page = page::errors();
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|old| old == page),
        "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test runtime errors"
    );
}

/// A backend that counts how often it was freed.
struct Watched<B> {
    inner: B,
    freed: Arc<AtomicUsize>,
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

/// The table of errnos in the runtime, beside libc's words as nix has them.
#[test]
fn an_errno_has_its_name() {
    let mut named = 0;
    for number in 1..=133 {
        let told = Error::Os { call: "it", errno: number }.to_string();
        let Some((name, words)) = told
            .strip_prefix(&format!("it failed: errno {number}, "))
            .and_then(|rest| rest.split_once(": "))
        else {
            assert_eq!(told, format!("it failed: errno {number}"));
            continue;
        };
        assert_eq!(name, format!("{:?}", nix::errno::Errno::from_raw(number)), "{told}");
        assert!(!words.is_empty() && words.is_ascii(), "{told}");
        named += 1;
    }
    assert!(named > 30, "{named}");
    assert_eq!(
        Error::Os { call: "it", errno: 2 }.to_string(),
        "it failed: errno 2, ENOENT: no such file or directory"
    );
}
